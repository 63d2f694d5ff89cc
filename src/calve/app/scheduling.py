"""What starts workflows by itself: schedulers, and those who watch tables for them."""

from functools import partial
from typing import TYPE_CHECKING

from calve.app.capturing import captures_on
from calve.settings import TriggerSettings
from calve.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from calve.engine import Tools
    from calve.lake import Lake
    from calve.triggers import Kind, Scheduler, Turn
    from calve.triggers.signals import ValidThrough
    from calve.triggers.tables import Watcher


def schedulers_on(
    store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings, listener: "Callable[[Turn], None]"
) -> "list[Scheduler]":
    """Return what starts workflows by their triggers; kinds that are slow to look at do not hold up the others."""
    from calve.triggers import Kind, Scheduler, TriggerKind
    from calve.triggers.signals import SignalTriggers
    from calve.triggers.tables import TableChanges
    from calve.triggers.time import TimeTriggers

    quick: dict[Kind, TriggerKind] = {
        Kind.TIME: TimeTriggers(settings.catch_up_limit, partial(_is_disabled, tools, Kind.TIME)),
        Kind.SIGNAL: SignalTriggers(
            store.engine, tools.environment, partial(_is_disabled, tools, Kind.SIGNAL), tools.may_read_table
        ),
    }
    slow: dict[Kind, TriggerKind] = {
        Kind.INCREMENTAL: TableChanges(tools, store.triggers, captures_on(lake, store), lake),
    }
    clock = tools.state.now  # the engine's own stands still while a machine sleeps
    return [Scheduler(tools, store.triggers, kinds, clock=clock, listener=listener) for kinds in (quick, slow)]


def watcher_on(store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings) -> "Watcher":
    """Return what sees the tables of triggers change."""
    from calve.triggers.tables import Watcher

    return Watcher(lake, store.triggers, tools.clock, settings.table_interval.total_seconds())


def valid_through_on(store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings) -> "ValidThrough":
    """Return what sees through which time tables are complete that somebody waits for."""
    from calve.triggers.signals import ValidThrough

    return ValidThrough(lake, store.engine, tools.clock, settings.table_interval.total_seconds())


def _is_disabled(tools: "Tools", kind: "Kind", workflow_id: str) -> bool:
    found = tools.state.workflow(workflow_id)
    return found is not None and found.properties.get(f"{kind}_trigger_disabled") is True
