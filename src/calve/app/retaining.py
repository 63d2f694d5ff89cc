"""What takes away what has been kept for long enough."""

from datetime import timedelta
from typing import TYPE_CHECKING

from calve.app.log_location import RetentionWithFiles
from calve.lake import Files
from calve.settings import RetentionSettings, Settings
from calve.store import Store

if TYPE_CHECKING:
    from calve.engine import Tools
    from calve.retention import Ages, Pruner

_CENTURY = timedelta(days=36_525)
"""Files of logs that are kept for ever are still looked at: they go along with their instances."""


def pruner_on(store: Store, tools: "Tools", settings: Settings) -> "Pruner":
    """Return what prunes a store, as the settings say; events wait for those who follow them."""
    from calve.alerts.alerts import EVENTS
    from calve.lineage.follower import NAME
    from calve.retention import Pruner

    followers = [EVENTS] * bool(settings.alerts.channels) + [NAME] * settings.lineage.is_wanted
    state = RetentionWithFiles(store.retention, Files(settings.logs.properties))
    return Pruner(state, ages_of(settings.retention), tools.state.now, followers)


def ages_of(settings: RetentionSettings) -> "Ages":
    """Return how long each kind is kept."""
    from calve.retention import Ages, Kind

    spans = {
        Kind.ALERTS: settings.alerts,
        Kind.AUDIT: settings.audit,
        Kind.EVENTS: settings.events,
        Kind.INSTANCES: settings.instances,
        Kind.LOGS: settings.logs,
        Kind.LOG_FILES: settings.logs or _CENTURY,
        Kind.SESSIONS: settings.credentials,
        Kind.SIGNALS: settings.signals,
        Kind.TOKENS: settings.credentials,
    }
    used = {kind: age for kind, span in spans.items() if (age := _milliseconds(span)) is not None}
    return Ages(used, {Kind.SIGNALS: _milliseconds(settings.unused_signals)})


def _milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds() * 1_000)
