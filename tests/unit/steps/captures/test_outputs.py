"""A report becomes the outputs that capture steps declare."""

from dataclasses import replace
from typing import Any

from calve.capture import CaptureReport, TableReport
from calve.steps.captures.outputs import outputs_of

TABLE = TableReport(
    source_table="db.events",
    table_uuid="u",
    from_snapshot_id=None,
    to_snapshot_id=7,
    from_sequence_number=None,
    to_sequence_number=1,
    snapshots=[],
    icdc_table="icdc.events_1",
    relation="icdc.events_1",
    filter=None,
    deletes_table=None,
    deletes_relation=None,
    carried_table=None,
    delete_keys=[],
    metadata_location=None,
    changed=True,
    files=1,
    records=2,
    bytes=3,
    deleted_records=0,
    exactness="exact",
    ranges={},
    partitions=[],
    pending=False,
)


def _outputs(*tables: TableReport, mode: str = "table", is_mapped: bool = False) -> dict[str, Any]:
    report = CaptureReport("c1", "w/capture", mode, "open", changed=True, ranges={}, tables=list(tables))
    return outputs_of(report, ["a", "b"][: len(tables)], is_mapped=is_mapped)


def test_what_there_is_none_of_is_empty() -> None:
    """A query finds no row where none left; a snapshot that there is none of is -1."""
    found = _outputs(TABLE)
    assert (found["filter"], found["deletes_table"], found["from_snapshot_id"]) == ("", "", -1)
    assert found["deletes_relation"] == "(SELECT * FROM db.events WHERE false)"
    assert found["range_predicate"] == "true"


def test_rows_that_left_are_not_made_up() -> None:
    """Where only their keys are known, or nothing, there is no relation to ask for."""
    assert "deletes_relation" not in _outputs(replace(TABLE, delete_keys=[{"table": "k", "columns": ["id"]}]))
    unknown = _outputs(replace(TABLE, deleted_records=None))
    assert ("deletes_relation" in unknown, unknown["deleted_records"]) == (False, -1)


def test_ranges_alone_leave_nothing_to_read() -> None:
    """No relation, rather than one of all rows."""
    found = _outputs(replace(TABLE, relation=None, icdc_table=None), mode="range")
    assert (found["relation"], found["deletes_relation"], found["icdc_table"]) == ("", "", "")


def test_several_tables_are_summed_up_and_told_apart() -> None:
    """Each in a map of its own."""
    found = _outputs(TABLE, replace(TABLE, source_table="db.users", records=5, pending=True), is_mapped=True)
    assert (found["records"], found["rows"], found["pending"]) == (7, 7, True)
    assert (found["a"]["records"], found["b"]["records"]) == (2, 5)
    assert "relation" not in found
