"""Triggers: what the store keeps about each, and the result of an evaluation. Times are milliseconds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID, uuid5

from calve.engine import Initiator, Json

_NAMES = UUID("6f1a3a52-8f0d-4f0e-9a55-1d6a0b6f3c11")
"""The uuids of triggers and of their requests are derived from this one; it never changes."""


class TriggerType(StrEnum):
    """What makes a trigger fire."""

    TIME = "time"
    SIGNAL = "signal"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class WantedTrigger:
    """A trigger as the active version of a workflow defines it."""

    trigger_id: str
    """The kind, and the position among those of the kind: ``time:0``."""
    kind: TriggerType
    definition: Json


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of the active version of a workflow, and its state."""

    workflow_id: str
    trigger_id: str
    kind: TriggerType
    version_id: int
    definition: Json
    """The trigger in the workflow's definition: JSON of ``calve.definition``'s trigger of that kind."""
    state: Json
    """The state of a trigger of this kind."""
    due_at: int | None
    """When it is evaluated next; None until something makes it due."""
    seq: int
    made_at: int
    """When this definition of the trigger became active."""
    is_begun: bool = True
    """Whether its kind has evaluated this definition."""
    fired_at: int | None = None
    """When it last started an instance."""
    error: str | None = None
    """Why its last evaluation failed."""
    failures: int = 0
    """How often it failed in a row."""

    @property
    def uuid(self) -> str:
        """Identifies the trigger across versions."""
        return str(uuid5(_NAMES, f"{self.workflow_id}:{self.trigger_id}"))

    def request_id(self, key: str) -> str:
        """Return the request id of a start: the same for a fire key whichever process computes it."""
        return str(uuid5(_NAMES, f"{self.workflow_id}:{self.trigger_id}:{key}"))


@dataclass(frozen=True, slots=True)
class Fire:
    """A start that a trigger requests."""

    key: str
    """Unique within the trigger: a key that has fired once starts nothing again."""
    initiator: Initiator
    params: Mapping[str, Any] = field(default_factory=dict)
    """Run params as plain values."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating a trigger: all of it is written in one transaction, or nothing."""

    fires: tuple[Fire, ...]
    state: Json
    due_at: int | None


class TriggerKind(Protocol):
    """Decides when triggers of one kind fire; an evaluation may be repeated if its result was not written."""

    def begin(self, trigger: Trigger, now: int) -> Evaluation:
        """Evaluate a trigger that is new or has a new definition; ``state`` is the one before, or empty."""
        ...

    def evaluate(self, trigger: Trigger, now: int) -> Evaluation:
        """Evaluate a trigger that is due."""
        ...


SILENT = 150_000
"""How many milliseconds after its last record a scheduler counts as silent: it may sleep for a minute, and be busy."""


class TriggerState(Protocol):
    """Stores the triggers of active versions. ``Changes.marks`` updates them, together with what they start."""

    def unsynced(self, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return workflows whose triggers are not those of their active version, with that version."""
        ...

    def sync(self, workflow_id: str, version_id: int | None, wanted: Sequence[WantedTrigger], now: int) -> bool:
        """Make the triggers of a workflow those of its active version, in one transaction.

        One whose definition is unchanged continues; a changed one keeps its state and begins again; new ones begin;
        others are deleted. All that begin are due immediately.

        Returns:
            Whether it was done; False if another version has become active.
        """
        ...

    def due(self, now: int, limit: int = 100, kinds: Iterable[TriggerType] = TriggerType) -> list[Trigger]:
        """Return triggers of some kinds that are due, the longest waiting first."""
        ...

    def overdue(self, before: int, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[Trigger]:
        """Return the time triggers below ``namespaces`` that were due before a time, the longest waiting first."""
        ...

    def next_due(self, kinds: Iterable[TriggerType] = TriggerType) -> int | None:
        """Return when the next trigger of some kinds is due; None if none is."""
        ...

    def beat(self, now: int) -> None:
        """Record that a scheduler runs."""
        ...

    def last_beat(self) -> int | None:
        """Return when a scheduler last recorded that it runs; None if none ever has."""
        ...

    def seqs(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the sequence numbers of triggers, by workflow and trigger; those that do not exist are missing."""
        ...

    def of_workflows(self, workflow_ids: Iterable[str]) -> list[Trigger]:
        """Return the triggers of some workflows, by workflow and id."""
        ...

    def trigger(self, workflow_id: str, trigger_id: str) -> Trigger | None:
        """Return a trigger."""
        ...

    def triggers(
        self,
        *,
        workflow_id: str | None = None,
        kind: TriggerType | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Trigger]:
        """Return triggers by workflow and id, starting after ``after``."""
        ...

    def is_unfinished(self, workflow_id: str) -> bool:
        """Tell whether a workflow has an unfinished instance."""
        ...

    def make_due(self, keys: Iterable[tuple[str, str]], now: int) -> int:
        """Make triggers due now, even those being evaluated; return how many exist."""
        ...


_PAGE = 1_000


def all_triggers(state: TriggerState, kind: TriggerType) -> Iterator[Trigger]:
    """Yield all triggers of a kind."""
    after = ("", "")
    while page := state.triggers(kind=kind, after=after, limit=_PAGE):
        yield from page
        after = (page[-1].workflow_id, page[-1].trigger_id)


def triggers_of(definition: Json) -> list[WantedTrigger]:
    """Return the triggers of a pushed definition."""
    workflow = definition.get("workflow", {})
    return [
        WantedTrigger(f"{kind}:{position}", kind, written)
        for kind in TriggerType
        for position, written in enumerate(workflow.get(f"{kind}_triggers", ()))
    ]
