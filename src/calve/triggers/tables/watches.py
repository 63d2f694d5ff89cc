"""The consumers whose checkpoints define what is uncommitted: those of steps that capture a trigger's tables. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calve.capture import OnGap, Operation, Wanted
from calve.definition.model import (
    ForeachStep,
    IncrementalTrigger,
    MapParam,
    Param,
    Step,
    TypedStep,
    WhileStep,
    Workflow,
)
from calve.definition.params import parse_duration
from calve.definition.step_types import tables_of
from calve.errors import CalveError
from calve.lake import TableName
from calve.triggers.tables.decision import ChangeRules

_CONFIGS = {"IpCapture": "ip_capture", "ICDC": "icdc"}
EVERYTHING = Wanted(operations=frozenset(Operation))
"""Any change; used if no step captures the table."""

Parse = Callable[[str], TableName]


@dataclass(frozen=True, slots=True)
class TableWatch:
    """One table of a trigger, and the consumer that commits its changes."""

    table: TableName
    consumer: str | None = None
    """None if no step does; then the trigger keeps a mark of its own."""
    wanted: Wanted = EVERYTHING


def rules_of(trigger: IncrementalTrigger) -> ChangeRules:
    """Return the conditions of a trigger.

    Raises:
        ParamError: a duration is invalid.
    """
    return ChangeRules(
        min_files=trigger.min_files or 0,
        min_bytes=trigger.min_bytes or 0,
        max_delay=None if trigger.max_delay is None else parse_duration(trigger.max_delay, {}),
        debounce=0 if trigger.debounce is None else parse_duration(trigger.debounce, {}),
        operations=_operations(trigger.data_operations) or frozenset(Operation),
    )


def watches_of(workflow: Workflow, trigger: IncrementalTrigger, parse: Parse) -> tuple[TableWatch, ...]:
    """Return the tables that a trigger watches, once for each step that captures them.

    A step counts if its tables and consumer are literals. Each iteration of a foreach has its own consumer, known only
    in a run, so a step inside a foreach counts if it names its consumer.
    """
    readers = list(_readers(workflow.id, workflow.steps, parse, is_repeated=False))
    found: list[TableWatch] = []
    for table in dict.fromkeys(parse(text) for text in trigger.source_tables):
        found += [reader for reader in readers if reader.table == table] or [TableWatch(table)]
    return tuple(found)


def _readers(workflow_id: str, steps: Sequence[Step], parse: Parse, *, is_repeated: bool) -> Iterator[TableWatch]:
    for step in steps:
        match step:
            case TypedStep() if step.type in _CONFIGS:
                yield from _of_step(workflow_id, step, parse, is_repeated=is_repeated)
            case ForeachStep():
                yield from _readers(workflow_id, step.steps, parse, is_repeated=True)
            case WhileStep():
                yield from _readers(workflow_id, step.steps, parse, is_repeated=is_repeated)
            case _:
                pass


def _of_step(workflow_id: str, step: TypedStep, parse: Parse, *, is_repeated: bool) -> Iterator[TableWatch]:
    param = step.params.get(_CONFIGS[step.type])
    if not isinstance(param, MapParam) or param.value is None:
        return
    config = {name: _known(given) for name, given in param.value.items()}
    given = config.get("consumer", None if "consumer" in param.value or is_repeated else f"{workflow_id}/{step.id}")
    if not isinstance(given, str):
        return
    wanted = _wanted(param.value, {name: value for name, value in config.items() if value is not None})
    for table in _tables(config):
        try:
            name = parse(table)
        except CalveError:
            continue  # the step itself reports it
        yield TableWatch(name, given, wanted)


def _tables(config: Mapping[str, Any]) -> list[str]:
    tables = tables_of({"source_tables": config.get("source_tables", config.get("source_table"))}) or {}
    return [table for table in tables.values() if "$" not in table]


def _known(param: Param) -> Any:
    """Return the value of a field; None if it is known only at run time."""
    if not param.is_literal or param.type == "SECRET":
        return None
    value = param.value
    if isinstance(param, MapParam):
        return {name: text for name, each in (param.value or {}).items() if isinstance(text := _known(each), str)}
    return None if isinstance(value, str) and "$" in value else value


def _wanted(given: Mapping[str, Param], config: Mapping[str, Any]) -> Wanted:
    """Return what the step captures; everything, if that is known only at run time."""
    default = () if "data_operations" in given else ("append",)
    return Wanted(
        operations=_operations(config.get("data_operations", default)) or frozenset(Operation),
        start=str(config.get("initial", "in a run")) if "initial" in given else None,
        end=str(config["until"]) if "until" in config else None,
        on_gap=OnGap(config["on_gap"]) if config.get("on_gap") in set(OnGap) else OnGap.FAIL,
    )


def _operations(given: Sequence[str] | str) -> frozenset[Operation]:
    return frozenset(Operation(word) for word in ([given] if isinstance(given, str) else given))
