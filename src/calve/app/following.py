"""Those who follow what happens, and tell others of it: alerts and lineage."""

import threading
from typing import TYPE_CHECKING, Protocol

from calve.app.clocks import now_ms
from calve.app.ids import new_id
from calve.settings import AlertSettings, LineageSettings
from calve.store import Store

if TYPE_CHECKING:
    from calve.access.secrets import Secrets
    from calve.alerts import Alerts, Message
    from calve.engine import Tools
    from calve.lake import Lake
    from calve.lineage import Lineage


class Follower(Protocol):
    """Works beside the scheduler until it is told to stop."""

    def run(self, stop: threading.Event) -> None:
        """Follow."""
        ...


def alerts_on(store: Store, tools: "Tools", settings: AlertSettings, secret: "Secrets") -> "Alerts":
    """Return what tells people of what happens."""
    from calve.alerts import Alerts, Policy, channels_of

    channels = channels_of(settings, secret)
    return Alerts(tools.state, store.alerts, channels, Policy.of(settings), tools.clock, settings.tries)


def lineage_on(store: Store, lake: "Lake", settings: LineageSettings, secret: "Secrets") -> "Lineage":
    """Return what tells others which tables steps read and write."""
    from calve.lineage import Lineage, senders_of

    senders = senders_of(settings, secret)
    return Lineage(store.engine, store.positions, store.captures, senders, lake.parse, settings.namespace)


def test_message(channel: str, to: tuple[str, ...]) -> "Message":
    """Return a message that tells nothing but that a channel works."""
    from calve.alerts.model import Alert, Message, Route
    from calve.definition.model.alerting import AlertType

    text = "If you read this, the channel works. Nothing has happened."
    title = f"A test of the channel {channel}"
    alert = Alert(f"test/{new_id()}", AlertType.RUN_SUCCESS, "", now_ms(), title=title, text=text)
    return Message(alert, Route(channel, to))
