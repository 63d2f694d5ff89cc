"""Triggers: what is kept about each, and what a look at one gives. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID, uuid5

from calve.engine import Initiator
from calve.engine.model import Json

_NAMES = UUID("6f1a3a52-8f0d-4f0e-9a55-1d6a0b6f3c11")
"""What all uuids of triggers and their requests are derived from; never changes."""


class Kind(StrEnum):
    """What a trigger goes by."""

    TIME = "time"
    SIGNAL = "signal"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A trigger as the active version of a workflow has it."""

    trigger_id: str
    """The kind, and the position among those of the kind: ``time:0``."""
    kind: Kind
    definition: Json


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of the active version of a workflow, and how far it has come."""

    workflow_id: str
    trigger_id: str
    kind: Kind
    version_id: int
    definition: Json
    """As the workflow's definition holds it: JSON of ``calve.definition``'s trigger of that kind."""
    state: Json
    """What its kind keeps about it."""
    due_at: int | None
    """When it is looked at by itself; None: only when something makes it due."""
    seq: int
    made_at: int
    """When this definition of it became active."""
    is_begun: bool = True
    """Whether its kind has seen this definition of it."""
    fired_at: int | None = None
    """When it last started something."""
    error: str | None = None
    """Why it could not be looked at the last time."""
    failures: int = 0
    """How often that failed, one after the other."""

    @property
    def uuid(self) -> str:
        """Names it, whatever its version."""
        return str(uuid5(_NAMES, f"{self.workflow_id}:{self.trigger_id}"))

    def request_id(self, key: str) -> str:
        """Name the start that a fire key brings: the same whoever computes it, and whenever."""
        return str(uuid5(_NAMES, f"{self.workflow_id}:{self.trigger_id}:{key}"))


@dataclass(frozen=True, slots=True)
class Fire:
    """A start that a trigger brings."""

    key: str
    """Unique within the trigger: a key that has fired once starts nothing again."""
    initiator: Initiator
    params: Mapping[str, Any] = field(default_factory=dict)
    """Run params as plain values."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at a trigger gave: all of it is written in one transaction, or nothing."""

    fires: tuple[Fire, ...]
    state: Json
    due_at: int | None


class TriggerKind(Protocol):
    """Decides when triggers of one kind fire; a look may be taken again, as if the one before had not been."""

    def begin(self, trigger: Trigger, now: int) -> Looked:
        """Look at a trigger that is new, or whose definition changed; ``state`` is that of before, empty if new."""
        ...

    def look(self, trigger: Trigger, now: int) -> Looked:
        """Look at a trigger that is due."""
        ...
