"""From the fields of a capture step to what is asked of capture. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calve.capture import Limits, Mode, OnGap, OnSchemaChange, Operation, Wanted
from calve.definition.step_types.captures import tables_of
from calve.steps.failures import fatal

_MODES = {"ICDC": Mode.TABLE, "RANGE": Mode.RANGE, "VIEW": Mode.VIEW, "PATH": Mode.PATH}


@dataclass(frozen=True, slots=True)
class Request:
    """What a capture step is to capture."""

    tables: Mapping[str, str]
    """By alias."""
    is_mapped: bool
    wanted: Wanted
    is_leased: bool
    consumer: str | None


def request_of(config: Mapping[str, Any]) -> Request:
    """Return what the fields of a capture step ask for.

    Raises:
        StepFailed: no table is named, or two cannot be told apart.
    """
    given = _listed(config["source_tables"])
    tables = tables_of({"source_tables": given}) or {}
    if not tables or (isinstance(given, list) and len(tables) < len(given)):
        raise fatal(
            f"source_tables is {given!r}: at least one table, each with a name of its own, is needed.",
            remedy="Write source_tables as a map: {some_name: db.table, other_name: db.table}.",
        )
    return Request(
        tables=tables,
        is_mapped=len(tables) > 1 or isinstance(given, Mapping),
        wanted=_wanted(config),
        is_leased=config["lease"],
        consumer=config.get("consumer"),
    )


def _listed(given: Any) -> Any:
    """Return a list or a map that came as text, since the whole value was a reference."""
    is_written = isinstance(given, str) and given.lstrip().startswith(("[", "{"))
    found = json.loads(given) if is_written else given
    return list(found) if isinstance(found, tuple) else found


def _wanted(config: Mapping[str, Any]) -> Wanted:
    return Wanted(
        operations=frozenset(Operation(word) for word in config["data_operations"]),
        mode=_MODES[config.get("capture_mode", "ICDC")],
        ranges=tuple(config.get("range_columns", ())),
        limits=Limits(config.get("max_files"), config.get("max_bytes")),
        start=_text(config.get("initial")),
        is_start_initial=True,
        end=_text(config.get("until")),
        on_gap=OnGap(config["on_gap"]),
        on_schema_change=OnSchemaChange(config["on_schema_change"]),
    )


def _text(value: str | int | None) -> str | None:
    return None if value is None or value == "" else str(value)
