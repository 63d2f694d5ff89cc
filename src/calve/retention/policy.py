"""Which records are older than their retention. Pure. Times are milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

Key = tuple[str | int, ...]
"""The position of a row in the order in which rows of its kind are deleted."""


class RecordKind(StrEnum):
    """What would grow for ever."""

    ALERTS = "alerts"
    AUDIT = "audit"
    EVENTS = "events"
    INSTANCES = "instances"
    LAG = "lag"
    LOGS = "logs"
    LOG_FILES = "log_files"
    SESSIONS = "sessions"
    SIGNALS = "signals"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class OldRecord:
    """A record that may be older than its retention."""

    key: Key
    at: int
    """When it happened, or ended."""
    is_needed: bool = False
    """Whether it may still be used, however old it is."""
    is_used: bool = True
    """Whether it was ever used."""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records, oldest first."""

    found: tuple[OldRecord, ...]
    last: Key | None = None
    """From where to read on; None if no older record follows."""


@dataclass(frozen=True, slots=True)
class Ages:
    """The retention of each kind; kinds without one are kept for ever."""

    used: Mapping[RecordKind, int] = field(default_factory=dict)
    unused: Mapping[RecordKind, int | None] = field(default_factory=dict)
    """The retention of records that were never used, if it is longer; None: for ever."""

    def before(self, kind: RecordKind, now: int) -> int | None:
        """Return the time before which records of a kind may be deleted; None: none may."""
        age = self.used.get(kind)
        return None if age is None else now - age


def goes(kind: RecordKind, old: OldRecord, ages: Ages, now: int) -> bool:
    """Return whether a record is older than its retention."""
    age = ages.used.get(kind)
    if not old.is_used:
        age = ages.unused.get(kind, age)
    return age is not None and not old.is_needed and old.at < now - age


class RetentionState(Protocol):
    """Stores what would grow for ever."""

    def old(self, kind: RecordKind, before: int, after: Key, limit: int, followers: Sequence[str]) -> RecordPage:
        """Return records older than a time, at most ``limit`` of them, after a position; the first has none.

        Args:
            kind: of which kind.
            before: the time.
            after: the place.
            limit: how many rows are read.
            followers: who still has to read events before they are deleted.
        """
        ...

    def forget(self, kind: RecordKind, keys: Sequence[Key], now: int) -> int:
        """Delete records of a kind, a bounded number of rows at a time; return how many existed."""
        ...

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower; a new one begins at ``first``."""
        ...

    def move(self, name: str, before: int, after: int) -> None:
        """Move a follower.

        Raises:
            Conflict: its position changed.
        """
        ...
