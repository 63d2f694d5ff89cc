"""The request that the fields of a capture step describe, and the targets that a workflow declares. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calve.capture import CaptureLimits, Mode, OnGap, OnSchemaChange, Operation, Wanted
from calve.definition.model import TypedStep, Workflow
from calve.definition.step_types import tables_of
from calve.steps.failures import fatal

_MODES = {"ICDC": Mode.TABLE, "RANGE": Mode.RANGE, "VIEW": Mode.VIEW, "PATH": Mode.PATH}


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What a capture step captures."""

    tables: Mapping[str, str]
    """The names of the tables by alias."""
    is_mapped: bool
    wanted: Wanted
    is_leased: bool
    consumer: str | None


def capture_request(config: Mapping[str, Any]) -> CaptureRequest:
    """Return the request of a capture step.

    Raises:
        StepFailed: no table is named, or two have the same alias.
    """
    given = _listed(config["source_tables"])
    tables = tables_of({"source_tables": given}) or {}
    if not tables or (isinstance(given, list) and len(tables) < len(given)):
        raise fatal(
            f"source_tables is {given!r}: name at least one table, each with a different name.",
            remedy="Write source_tables as a map: {some_name: db.table, other_name: db.table}.",
        )
    return CaptureRequest(
        tables=tables,
        is_mapped=len(tables) > 1 or isinstance(given, Mapping),
        wanted=_wanted(config),
        is_leased=config["lease"],
        consumer=config.get("consumer"),
    )


def _listed(given: Any) -> Any:
    """Return a list or map; a field that consists of a single reference arrives as JSON text."""
    is_written = isinstance(given, str) and given.lstrip().startswith(("[", "{"))
    found = json.loads(given) if is_written else given
    return list(found) if isinstance(found, tuple) else found


def _wanted(config: Mapping[str, Any]) -> Wanted:
    return Wanted(
        operations=frozenset(Operation(word) for word in config["data_operations"]),
        mode=_MODES[config.get("capture_mode", "ICDC")],
        ranges=tuple(config.get("range_columns", ())),
        limits=CaptureLimits(config.get("max_files"), config.get("max_bytes")),
        start=_text(config.get("initial")),
        is_start_initial=True,
        end=_text(config.get("until")),
        on_gap=OnGap(config["on_gap"]),
        on_schema_change=OnSchemaChange(config["on_schema_change"]),
    )


def _text(value: str | int | None) -> str | None:
    return None if value is None or value == "" else str(value)


def declared_in(workflow: Workflow) -> list[tuple[str, str]]:
    """Return the stream and name of every target that a workflow declares; none if one is known only at run time."""
    found = [
        (f"{workflow.id}/{step.id}", target)
        for step in workflow.all_steps()
        if isinstance(step, TypedStep)
        for target in step.targets
    ]
    return [] if any("$" in target for _, target in found) else found
