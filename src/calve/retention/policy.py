"""Which records are older than their retention. Pure. Times are milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

Key = tuple[str | int, ...]
"""The position of a row in the order in which rows of its kind are deleted."""


class RecordKind(StrEnum):
    """The kinds of records that would grow without limit."""

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
    """Whether it may still be used, so that it is kept whatever its age."""
    is_used: bool = True
    """Whether it was ever used."""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records, oldest first."""

    found: tuple[OldRecord, ...]
    last: Key | None = None
    """The position after which to continue; None if no older record follows."""


@dataclass(frozen=True, slots=True)
class Ages:
    """The retention of each kind; kinds without one are kept forever."""

    used: Mapping[RecordKind, int] = field(default_factory=dict)
    unused: Mapping[RecordKind, int | None] = field(default_factory=dict)
    """The retention of records that were never used, if it is longer; None keeps them forever."""

    def before(self, kind: RecordKind, now: int) -> int | None:
        """Return the time before which records of a kind may be deleted; None if none may."""
        age = self.used.get(kind)
        return None if age is None else now - age


def goes(kind: RecordKind, old: OldRecord, ages: Ages, now: int) -> bool:
    """Tell whether a record may be deleted: it is older than its retention, and not needed."""
    age = ages.used.get(kind)
    if not old.is_used:
        age = ages.unused.get(kind, age)
    return age is not None and not old.is_needed and old.at < now - age


class RetentionState(Protocol):
    """Stores the records that would grow without limit."""

    def old(self, kind: RecordKind, before: int, after: Key, limit: int, followers: Sequence[str]) -> RecordPage:
        """Return up to ``limit`` records older than a time, starting after a position, which is empty at first.

        Args:
            kind: the kind of the records.
            before: the time.
            after: the position.
            limit: how many rows are read.
            followers: the followers that must have read events before they are deleted.
        """
        ...

    def forget(self, kind: RecordKind, keys: Sequence[Key], now: int) -> int:
        """Delete records of a kind, a bounded number of rows at a time; return how many existed."""
        ...

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower; a new one starts at ``first``."""
        ...

    def move(self, name: str, before: int, after: int) -> None:
        """Move a follower.

        Raises:
            Conflict: its position changed.
        """
        ...
