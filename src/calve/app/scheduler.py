"""The services beside workers: schedulers, watchers of tables, alerts, lineage and the pruner."""

import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

from calve.app.captures import captures_on
from calve.app.host import new_id, now_ms
from calve.app.log_uploads import RetentionWithFiles
from calve.lake import Files
from calve.settings import AlertSettings, LineageSettings, RetentionSettings, Settings, TriggerSettings
from calve.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from calve.access import Secrets
    from calve.alerts import Alerts, Message
    from calve.engine import Tools
    from calve.lake import Lake
    from calve.lineage import Lineage
    from calve.retention import Ages, Pruner
    from calve.triggers import Scheduler, SchedulerRound, TriggerType
    from calve.triggers.signals import ValidThrough
    from calve.triggers.tables import Watcher


def schedulers_on(
    store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings, listener: "Callable[[SchedulerRound], None]"
) -> "list[Scheduler]":
    """Return the schedulers of triggers; slow kinds of triggers have their own, so that they do not delay others."""
    from calve.triggers import Scheduler, TimeTriggers, TriggerKind, TriggerType
    from calve.triggers.signals import SignalTriggers
    from calve.triggers.tables import TableChanges

    quick: dict[TriggerType, TriggerKind] = {
        TriggerType.TIME: TimeTriggers(settings.catch_up_limit, partial(_is_disabled, tools, TriggerType.TIME)),
        TriggerType.SIGNAL: SignalTriggers(
            store.engine, tools.environment, partial(_is_disabled, tools, TriggerType.SIGNAL), tools.may_read_table
        ),
    }
    slow: dict[TriggerType, TriggerKind] = {
        TriggerType.INCREMENTAL: TableChanges(tools, store.triggers, captures_on(lake, store), lake),
    }
    clock = tools.state.now  # the engine's own clock stands still while a machine sleeps
    return [Scheduler(tools, store.triggers, kinds, clock=clock, listener=listener) for kinds in (quick, slow)]


def watcher_on(store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings) -> "Watcher":
    """Return the watcher of the tables that triggers refer to."""
    from calve.triggers.tables import Watcher

    return Watcher(lake, store.triggers, tools.clock, settings.table_interval.total_seconds())


def valid_through_on(store: Store, lake: "Lake", tools: "Tools", settings: TriggerSettings) -> "ValidThrough":
    """Return the service that watches up to which time tables are complete, for steps and triggers that wait."""
    from calve.triggers.signals import ValidThrough

    return ValidThrough(lake, store.engine, tools.clock, settings.table_interval.total_seconds())


def _is_disabled(tools: "Tools", kind: "TriggerType", workflow_id: str) -> bool:
    found = tools.state.workflow(workflow_id)
    return found is not None and found.properties.get(f"{kind}_trigger_disabled") is True


class BackgroundService(Protocol):
    """Runs beside the scheduler until it is stopped."""

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set."""
        ...


def alerts_on(store: Store, tools: "Tools", settings: AlertSettings, secret: "Secrets", server: str) -> "Alerts":
    """Return the service that sends alerts, with links to the pages of a server."""
    from calve.alerts import Alerts, Policy, channels_of

    channels = channels_of(settings, secret, server)
    return Alerts(tools.state, store.alerts, channels, Policy.of(settings), tools.clock, settings.tries)


def lineage_on(store: Store, lake: "Lake", settings: LineageSettings, secret: "Secrets") -> "Lineage":
    """Return the service that sends lineage: which tables steps read and write."""
    from calve.lineage import Lineage, senders_of

    senders = senders_of(settings, secret)
    return Lineage(store.engine, store.positions, store.captures, senders, lake.parse, settings.namespace)


def lineage_keeper_on(store: Store, lake: "Lake") -> "Lineage":
    """Return the service that stores lineage in the state database, whether or not it is also sent."""
    from calve.lineage import EDGES, Lineage

    return Lineage(store.engine, store.positions, store.captures, (), lake.parse, edges=store.lineage, name=EDGES)


def test_message(channel: str, to: tuple[str, ...]) -> "Message":
    """Return a message that tests a channel."""
    from calve.alerts import Alert, Message, Route
    from calve.definition.model import AlertType

    text = "If you read this, the channel works. Nothing has happened."
    title = f"A test of the channel {channel}"
    alert = Alert(f"test/{new_id()}", AlertType.RUN_SUCCESS, "", now_ms(), title=title, text=text, page="/")
    return Message(alert, Route(channel, to))


_CENTURY = timedelta(days=36_525)
"""The retention of log files that are kept forever: the pruner must check them, to delete them with their instances."""


def pruner_on(store: Store, tools: "Tools", settings: Settings) -> "Pruner":
    """Return the pruner of a store; events are kept until alerts and lineage have read them."""
    from calve.alerts import EVENTS
    from calve.lineage import EDGES, NAME
    from calve.retention import Pruner

    followers = [EDGES] + [EVENTS] * bool(settings.alerts.channels) + [NAME] * settings.lineage.is_wanted
    state = RetentionWithFiles(store.retention, Files(settings.logs.properties))
    return Pruner(state, ages_of(settings.retention), tools.state.now, followers)


def ages_of(settings: RetentionSettings) -> "Ages":
    """Return how long each kind of record is kept."""
    from calve.retention import Ages, RecordKind

    spans = {
        RecordKind.ALERTS: settings.alerts,
        RecordKind.AUDIT: settings.audit,
        RecordKind.EVENTS: settings.events,
        RecordKind.INSTANCES: settings.instances,
        RecordKind.LAG: settings.lag,
        RecordKind.LOGS: settings.logs,
        RecordKind.LOG_FILES: settings.logs or _CENTURY,
        RecordKind.SESSIONS: settings.credentials,
        RecordKind.SIGNALS: settings.signals,
        RecordKind.TOKENS: settings.credentials,
    }
    used = {kind: age for kind, span in spans.items() if (age := _milliseconds(span)) is not None}
    return Ages(used, {RecordKind.SIGNALS: _milliseconds(settings.unused_signals)})


def _milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds() * 1_000)
