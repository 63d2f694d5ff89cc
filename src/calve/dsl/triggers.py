"""What starts a workflow: time, signals, or a change of its source tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from calve.definition.model.triggers import THROUGH, VALID_THROUGH
from calve.dsl.places import Described, here
from calve.dsl.signals import Signal, on
from calve.dsl.values import Value, expr, placed_param

Duration: TypeAlias = int | str
"""Seconds, or a text such as ``"2 hours"`` or ``"${param}"``."""

_WORDS = frozenset({"hourly", "daily", "weekly", "monthly", "yearly"})

CatchUp: TypeAlias = Literal["all", "latest", "none"]
Operation: TypeAlias = Literal["append", "overwrite", "delete"]


@dataclass(frozen=True, slots=True)
class Trigger(Described):
    """Something that starts a workflow."""

    field: str
    """Where it stands in a definition."""


def cron(
    schedule: str,
    *,
    timezone: str | None = None,
    fuzzy_max_delay: Duration | None = None,
    catch_up: CatchUp | None = None,
) -> Trigger:
    """Return a trigger at the times of a schedule.

    Args:
        schedule: Five fields as on Unix, six or seven as in Quartz, or a word: ``"@hourly"``, ``"@daily"``,
            ``"@weekly"``, ``"@monthly"``, ``"@yearly"``.
        timezone: The time zone of the schedule; UTC, unless told.
        fuzzy_max_delay: Start at a random moment up to so much later.
        catch_up: Which firings that were missed are made up for; all, unless told.
    """
    word = schedule.strip().lower()
    is_word = word.startswith("@") or word in _WORDS
    said = (
        {"type": "PREDEFINED", "expression": f"@{word.removeprefix('@')}"}
        if is_word
        else {"type": "CRON", "cron": schedule}
    )
    return _timed(said, timezone, fuzzy_max_delay, catch_up)


def interval(
    every: Duration,
    *,
    timezone: str | None = None,
    fuzzy_max_delay: Duration | None = None,
    catch_up: CatchUp | None = None,
) -> Trigger:
    """Return a trigger that comes again and again after the same span of time.

    Args:
        every: The span: seconds, or a text such as ``"15 minutes"``.
        timezone: The time zone in which runs are dated; UTC, unless told.
        fuzzy_max_delay: Start at a random moment up to so much later.
        catch_up: Which firings that were missed are made up for; all, unless told.
    """
    return _timed({"type": "INTERVAL", "interval": every}, timezone, fuzzy_max_delay, catch_up)


def signal(
    *signals: str | Signal,
    params: Mapping[str, Value] | None = None,
    condition: str | None = None,
    dedup_expr: str | None = None,
) -> Trigger:
    """Return a trigger that waits until all its signals have come.

    Args:
        *signals: Names of signals, or ``on(…)`` for those of a name that match.
        params: Params that the run is started with.
        condition: An expression that must hold too.
        dedup_expr: An expression; of starts for which it gives the same text, the second is left out.
    """
    entries = [on(given) if isinstance(given, str) else given for given in signals]
    said: dict[str, Any] = {"definitions": {entry.name: entry for entry in entries}}
    if params:
        said["params"] = {name: placed_param(value) for name, value in params.items()}
    return Trigger({**said, **_told(condition=condition, dedup_expr=dedup_expr)}, here(), "signal_triggers")


def on_valid_through(*tables: str) -> Trigger:
    """Return a trigger that comes when tables are complete through a later time, all through the same.

    The time is its param ``VALID_THROUGH``: ``params.getFromSignal('VALID_THROUGH')``, in milliseconds.

    Args:
        *tables: The tables, whose property ``calve.valid-through`` or signal ``vtts/<table>`` tells it.
    """
    keys = [THROUGH] if len(tables) > 1 else []
    asked = expr(f"params.getFromSignal('{VALID_THROUGH}{tables[0]}', '{THROUGH}')", type="LONG")
    return signal(*(on(f"{VALID_THROUGH}{table}", join_keys=keys) for table in tables), params={"VALID_THROUGH": asked})


def incremental(
    *source_tables: str,
    data_operations: Sequence[Operation] = (),
    min_files: int | None = None,
    min_bytes: int | None = None,
    max_delay: Duration | None = None,
    debounce: Duration | None = None,
) -> Trigger:
    """Return a trigger that comes when source tables hold changes which the workflow has not committed.

    Args:
        *source_tables: The tables to watch.
        data_operations: The kinds of snapshots that count.
        min_files: Wait for so many new files.
        min_bytes: Wait for so many new bytes.
        max_delay: Start after so long, however little has changed.
        debounce: Wait until so long has passed without another change.
    """
    said = {
        "source_tables": list(source_tables),
        **({"data_operations": list(data_operations)} if data_operations else {}),
    }
    more = _told(min_files=min_files, min_bytes=min_bytes, max_delay=max_delay, debounce=debounce)
    return Trigger({**said, **more}, here(), "incremental_triggers")


def _timed(
    said: dict[str, Any], timezone: str | None, fuzzy_max_delay: Duration | None, catch_up: CatchUp | None
) -> Trigger:
    told = _told(timezone=timezone, fuzzy_max_delay=fuzzy_max_delay, catch_up=catch_up and catch_up.upper())
    return Trigger({**said, **told}, here(), "time_triggers")


def _told(**fields: Any) -> dict[str, Any]:
    return {name: item for name, item in fields.items() if item is not None}
