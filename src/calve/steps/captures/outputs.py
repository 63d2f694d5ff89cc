"""What a capture gives the steps after it: a report as the outputs that capture steps declare. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from calve.capture import CaptureReport, Mode, TableReport
from calve.capture.relations import filtered
from calve.steps.captures.predicates import Range, predicate

NOTHING = -1
"""Stands for a snapshot that there is none of, and for a number that is not known."""
_COUNTS = ("files", "records", "bytes")
_TEXTS = ("source_table", "icdc_table", "filter", "deletes_table", "exactness")
_SNAPSHOTS = ("from_snapshot_id", "to_snapshot_id")


def outputs_of(report: CaptureReport, aliases: Sequence[str], *, is_mapped: bool) -> dict[str, Any]:
    """Return the outputs of a capture step.

    Args:
        report: the capture.
        aliases: what its tables are called, in the report's order.
        is_mapped: whether each table is told of in a map of its own; a single one on the step itself too.
    """
    found = {"capture_id": report.capture_id or "", **_of_all(report.tables), **_of_ranges(report.ranges)}
    told = [_of_table(table, Mode(report.mode)) for table in report.tables]
    return found | (told[0] if len(told) == 1 else {}) | (dict(zip(aliases, told, strict=True)) if is_mapped else {})


def _of_all(tables: Sequence[TableReport]) -> dict[str, Any]:
    counts = {name: sum(getattr(table, name) for table in tables) for name in _COUNTS}
    deleted = [table.deleted_records for table in tables]
    return {
        "changed": any(table.changed for table in tables),
        "pending": any(table.pending for table in tables),
        **counts,
        "rows": counts["records"],
        "deleted_records": NOTHING if None in deleted else sum(number or 0 for number in deleted),
    }


def _of_table(table: TableReport, mode: Mode) -> dict[str, Any]:
    return {
        **_of_all([table]),
        **_relations(table, mode),
        **_of_ranges(table.ranges),
        **{name: getattr(table, name) or "" for name in _TEXTS},
        **{name: _number(getattr(table, name)) for name in _SNAPSHOTS},
    }


def _relations(table: TableReport, mode: Mode) -> dict[str, str]:
    """Return what goes after FROM, so that a query holds in every run: where no row came or left, it finds none.

    Of rows that left, only the keys may be known, or nothing at all. Then there is no relation to give, and a step that
    asks for it fails, rather than work on something that is not so.
    """
    if mode is Mode.RANGE:
        return {"relation": "", "deletes_relation": ""}
    nothing = filtered(table.source_table, "false")
    is_unknown = table.deletes_relation is None and (bool(table.delete_keys) or table.deleted_records is None)
    gone = {} if is_unknown else {"deletes_relation": table.deletes_relation or nothing}
    return {"relation": table.relation or nothing, **gone}


def _of_ranges(ranges: Mapping[str, Range]) -> dict[str, str]:
    ends = {
        f"{column.replace('.', '_')}_{side}": _shown(found[side])
        for column, found in ranges.items()
        for side in ("lower", "upper")
    }
    return {"range_predicate": predicate(ranges), **ends}


def _number(value: int | None) -> int:
    return NOTHING if value is None else value


def _shown(value: Any) -> str:
    """Return an end of a range as text; empty where it is open."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)
