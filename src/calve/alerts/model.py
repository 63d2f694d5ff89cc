"""The values that alerts speak in. Times are milliseconds."""

import uuid
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from calve.definition.model.alerting import AlertType

_NAMES = uuid.UUID("6f1e9a1c-2f0a-5d7e-9b51-0d1f6f6c9a11")


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that happened, and that somebody wants to know of."""

    key: str
    """Names what happened: the same whoever finds it, and however often."""
    type: AlertType
    workflow_id: str
    at: int
    instance_id: int | None = None
    run_id: int | None = None
    step_id: str | None = None
    status: str = ""
    title: str = ""
    """One line for people."""
    text: str = ""
    """What else there is to say."""

    def as_json(self) -> dict[str, Any]:
        """Return the alert as plain JSON."""
        return {**asdict(self), "type": self.type.value}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Alert":
        """Read what ``as_json`` gave."""
        return cls(**{**raw, "type": AlertType(raw["type"])})


@dataclass(frozen=True, slots=True)
class Route:
    """Where an alert goes."""

    channel: str
    to: tuple[str, ...] = ()
    """Addresses of e-mails, or channels and people of Slack; those of the channel itself, if there are none."""
    mention: tuple[str, ...] = ()
    """People whom a message to a Slack channel names."""


@dataclass(frozen=True, slots=True)
class Message:
    """An alert on one of its ways."""

    alert: Alert
    route: Route

    @property
    def id(self) -> str:
        """Name the message: the same for the same alert on the same way, so that receivers can drop repeats."""
        way = "|".join((self.route.channel, *self.route.to))
        return str(uuid.uuid5(_NAMES, f"{self.alert.key}|{way}"))


class MessageStatus(StrEnum):
    """Where a message stands."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the store holds it."""

    message: Message
    status: MessageStatus
    tries: int
    made_at: int
    due_at: int
    error: str = ""
    """Why it could not be sent the last time."""
    sent_at: int | None = field(default=None)
