"""Triggers: what starts a workflow, by time, signals, or changes of its source tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from calve.definition.model import THROUGH, VALID_THROUGH, DataOperation
from calve.dsl.location import Described, here
from calve.dsl.signals import Signal, on
from calve.dsl.values import Value, expr, located_param

Duration: TypeAlias = int | str
"""Seconds, or a text such as ``"2 hours"`` or ``"${param}"``."""

_WORDS = frozenset({"hourly", "daily", "weekly", "monthly", "yearly"})

CatchUp: TypeAlias = Literal["all", "latest", "none"]


@dataclass(frozen=True, slots=True)
class Trigger(Described):
    """Something that starts a workflow."""

    field: str
    """The key of a definition that lists it."""


def cron(
    schedule: str,
    *,
    timezone: str | None = None,
    fuzzy_max_delay: Duration | None = None,
    catch_up: CatchUp | None = None,
) -> Trigger:
    """Return a trigger that fires on a schedule.

    Args:
        schedule: Five fields as on Unix, six or seven as in Quartz, or a word: ``"@hourly"``, ``"@daily"``,
            ``"@weekly"``, ``"@monthly"``, ``"@yearly"``.
        timezone: The time zone of the schedule. Default: UTC.
        fuzzy_max_delay: The maximum random delay of a start.
        catch_up: Which missed starts to make up for. Default: all.
    """
    word = schedule.strip().lower()
    is_word = word.startswith("@") or word in _WORDS
    written = (
        {"type": "PREDEFINED", "expression": f"@{word.removeprefix('@')}"}
        if is_word
        else {"type": "CRON", "cron": schedule}
    )
    return _timed(written, timezone, fuzzy_max_delay, catch_up)


def interval(
    every: Duration,
    *,
    timezone: str | None = None,
    fuzzy_max_delay: Duration | None = None,
    catch_up: CatchUp | None = None,
) -> Trigger:
    """Return a trigger that fires at a fixed interval.

    Args:
        every: The interval: seconds, or a text such as ``"15 minutes"``.
        timezone: The time zone in which runs are dated. Default: UTC.
        fuzzy_max_delay: The maximum random delay of a start.
        catch_up: Which missed starts to make up for. Default: all.
    """
    return _timed({"type": "INTERVAL", "interval": every}, timezone, fuzzy_max_delay, catch_up)


def signal(
    *signals: str | Signal,
    params: Mapping[str, Value] | None = None,
    condition: str | None = None,
    dedup_expr: str | None = None,
) -> Trigger:
    """Return a trigger that fires when all its signals have arrived.

    Args:
        *signals: Names of signals, or ``on(…)`` for conditions on a signal.
        params: Params of the run.
        condition: An expression that must be true too.
        dedup_expr: An expression; of several starts with the same result only the first happens.
    """
    entries = [on(given) if isinstance(given, str) else given for given in signals]
    written: dict[str, Any] = {"definitions": {entry.name: entry for entry in entries}}
    if params:
        written["params"] = {name: located_param(value) for name, value in params.items()}
    return Trigger({**written, **_given(condition=condition, dedup_expr=dedup_expr)}, here(), "signal_triggers")


def on_valid_through(*tables: str) -> Trigger:
    """Return a trigger that fires when tables are complete through a later time, all of them through the same time.

    The time is the param ``VALID_THROUGH`` of the trigger, in milliseconds: ``params.getFromSignal('VALID_THROUGH')``.

    Args:
        *tables: The tables; their property ``calve.valid-through`` or signal ``vtts/<table>`` gives the time.
    """
    keys = [THROUGH] if len(tables) > 1 else []
    asked = expr(f"params.getFromSignal('{VALID_THROUGH}{tables[0]}', '{THROUGH}')", type="LONG")
    return signal(*(on(f"{VALID_THROUGH}{table}", join_keys=keys) for table in tables), params={"VALID_THROUGH": asked})


def incremental(
    *source_tables: str,
    data_operations: Sequence[DataOperation] = (),
    min_files: int | None = None,
    min_bytes: int | None = None,
    max_delay: Duration | None = None,
    debounce: Duration | None = None,
) -> Trigger:
    """Return a trigger that fires when source tables have changes that the workflow has not committed.

    Args:
        *source_tables: The tables to watch.
        data_operations: The kinds of snapshots that count.
        min_files: Wait for this many new files.
        min_bytes: Wait for this many new bytes.
        max_delay: Start after this time, however little has changed.
        debounce: Wait until this much time has passed without another change.
    """
    written = {
        "source_tables": list(source_tables),
        **({"data_operations": list(data_operations)} if data_operations else {}),
    }
    more = _given(min_files=min_files, min_bytes=min_bytes, max_delay=max_delay, debounce=debounce)
    return Trigger({**written, **more}, here(), "incremental_triggers")


def _timed(
    written: dict[str, Any], timezone: str | None, fuzzy_max_delay: Duration | None, catch_up: CatchUp | None
) -> Trigger:
    more = _given(timezone=timezone, fuzzy_max_delay=fuzzy_max_delay, catch_up=catch_up and catch_up.upper())
    return Trigger({**written, **more}, here(), "time_triggers")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: item for name, item in fields.items() if item is not None}
