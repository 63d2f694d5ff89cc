"""What is kept for a while, and when that while is over. Pure. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Key = tuple[str | int, ...]
"""The place of a row in the order in which rows of its kind go."""


class Kind(StrEnum):
    """What would grow for ever."""

    ALERTS = "alerts"
    AUDIT = "audit"
    EVENTS = "events"
    INSTANCES = "instances"
    LOGS = "logs"
    LOG_FILES = "log_files"
    SESSIONS = "sessions"
    SIGNALS = "signals"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Old:
    """Something that may have been kept for long enough."""

    key: Key
    at: int
    """When it happened, or came to its end."""
    is_needed: bool = False
    """Whether something may still come of it, however old it is."""
    is_used: bool = True
    """Whether anybody has ever had a use for it."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what is kept, oldest first."""

    found: tuple[Old, ...]
    last: Key | None = None
    """From where to read on; None if nothing older than asked for comes after it."""


@dataclass(frozen=True, slots=True)
class Ages:
    """How long each kind is kept; what is not named here is kept for ever."""

    used: Mapping[Kind, int] = field(default_factory=dict)
    unused: Mapping[Kind, int | None] = field(default_factory=dict)
    """How long what nobody has had a use for yet is kept, where that is longer; None: for ever."""

    def before(self, kind: Kind, now: int) -> int | None:
        """Return the time before which something of a kind may go; None if nothing may."""
        age = self.used.get(kind)
        return None if age is None else now - age


def goes(kind: Kind, old: Old, ages: Ages, now: int) -> bool:
    """Tell whether something has been kept for long enough."""
    age = ages.used.get(kind)
    if not old.is_used:
        age = ages.unused.get(kind, age)
    return age is not None and not old.is_needed and old.at < now - age
