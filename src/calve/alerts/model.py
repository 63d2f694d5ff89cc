"""The values of the alerts package. Times are milliseconds."""

import uuid
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from calve.definition.model import AlertType

_NAMES = uuid.UUID("6f1e9a1c-2f0a-5d7e-9b51-0d1f6f6c9a11")


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that happened and is worth a notification."""

    key: str
    """Identifies what happened: it is the same for every process that finds it, each time."""
    type: AlertType
    workflow_id: str
    at: int
    instance_id: int | None = None
    run_id: int | None = None
    step_id: str | None = None
    status: str = ""
    title: str = ""
    """One line."""
    text: str = ""
    """Details."""
    page: str = ""
    """The path of the page that shows it, without the address of the server."""

    def as_json(self) -> dict[str, Any]:
        """Return the alert as plain JSON."""
        return {**asdict(self), "type": self.type.value}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Alert":
        """Create an alert from the result of ``as_json``."""
        return cls(**{**raw, "type": AlertType(raw["type"])})


@dataclass(frozen=True, slots=True)
class Route:
    """The destination of an alert: a channel, and recipients."""

    channel: str
    to: tuple[str, ...] = ()
    """Addresses of e-mails, or channels and users of Slack; if empty, those of the channel."""
    mention: tuple[str, ...] = ()
    """Users to mention in a message to a Slack channel."""


@dataclass(frozen=True, slots=True)
class Message:
    """An alert on one of its routes."""

    alert: Alert
    route: Route

    @property
    def id(self) -> str:
        """Identifies the message: the same for the same alert and route, so that receivers can drop duplicates."""
        way = "|".join((self.route.channel, *self.route.to))
        return str(uuid.uuid5(_NAMES, f"{self.alert.key}|{way}"))


class MessageStatus(StrEnum):
    """The status of a message."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as stored."""

    message: Message
    status: MessageStatus
    tries: int
    made_at: int
    due_at: int
    error: str = ""
    """Why the last attempt to send it failed."""
    sent_at: int | None = field(default=None)
