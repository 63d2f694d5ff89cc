"""The scheduler: looks at triggers that are due, and starts what they fire, each in one transaction."""

import logging
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calve.engine import Started, Tools
from calve.engine.model import Changes, Start, TriggerMark
from calve.engine.starts import prepare
from calve.errors import CalveError, Conflict, StoreError, WorkflowMissing
from calve.failpoints import reach
from calve.triggers.model import Fire, Kind, Looked, Trigger, TriggerKind
from calve.triggers.ports import TriggerState
from calve.triggers.syncing import wanted

log = logging.getLogger(__name__)

BATCH = 100
"""How many workflows are synced, and triggers looked at, in one turn."""
LONGEST_SLEEP = 60.0
"""How long the scheduler sleeps at most when nothing calls it, in seconds."""
SHORTEST_SLEEP = 0.02
"""How long it sleeps at least, so that a busy store does not keep it busy too."""
_BACKOFF = (5_000, 30_000, 120_000, 600_000, 3_600_000)
"""How long a trigger is left alone after each failed look, in milliseconds; the last goes on."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn of the scheduler has written."""

    synced: int = 0
    """Workflows whose triggers were made those of their active version."""
    looked: int = 0
    """Triggers that were looked at and moved on."""
    failed: int = 0
    """Triggers that could not be looked at."""
    started: tuple[Started, ...] = ()
    is_full: bool = False
    """Whether more may be due already."""


@dataclass(frozen=True, slots=True)
class _Move:
    """What becomes of one trigger."""

    mark: TriggerMark
    starts: tuple[Start, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        return self.mark.workflow_id, self.mark.trigger_id


class Scheduler:
    """Starts workflows when their triggers of some kinds fire; on PostgreSQL, any number may be at it."""

    def __init__(self, tools: Tools, state: TriggerState, kinds: Mapping[Kind, TriggerKind]) -> None:
        self._tools = tools
        self._state = state
        self._kinds = kinds

    def run(self, stop: threading.Event) -> None:
        """Take turns until ``stop`` is set; whoever sets it wakes the store too."""
        while not stop.is_set():
            try:
                turn = self.turn()
                if not turn.is_full and not stop.wait(SHORTEST_SLEEP):
                    self._tools.state.wait(self._pause())
            except StoreError as error:
                log.warning("%s", error.message)
                stop.wait(random.uniform(0.1, 1.0))  # noqa: S311 - so that not all come back at once

    def turn(self) -> Turn:
        """Take over the triggers of changed workflows, then look at all that are due."""
        synced = self._sync()
        due = self._state.due(self._tools.clock(), BATCH, self._kinds)
        moves = [move for trigger in due if (move := self._move(trigger)) is not None]
        written, started = self._commit(moves)
        return Turn(
            synced=synced,
            looked=sum(not move.mark.failures for move in written),
            failed=sum(move.mark.failures > 0 for move in written),
            started=tuple(started),
            is_full=synced == BATCH or len(due) == BATCH,
        )

    def _pause(self) -> float:
        due = self._state.next_due(self._kinds)
        if due is None:
            return LONGEST_SLEEP
        return min(LONGEST_SLEEP, max(0.0, (due - self._tools.clock()) / 1_000))

    def _sync(self) -> int:
        unsynced = self._state.unsynced(BATCH)
        for workflow_id, version_id in unsynced:
            record = None if version_id is None else self._tools.state.version(workflow_id, version_id)
            reach("triggers.read")
            triggers = [] if record is None else wanted(record.definition)
            self._state.sync(workflow_id, version_id, triggers, self._tools.clock())
            reach("triggers.synced")
        return len(unsynced)

    def _move(self, trigger: Trigger) -> _Move | None:
        """Look at a trigger, and prepare what it starts; one that cannot be looked at is left alone for a while."""
        now = self._tools.clock()
        try:
            looked = self._look(trigger, now)
            reach("triggers.looked")
            starts = tuple(self._start(trigger, fire) for fire in looked.fires)
        except (StoreError, Conflict):
            raise
        except WorkflowMissing:
            return None  # deactivated or deleted meanwhile: the next turn forgets the trigger
        except CalveError as error:
            return _failed(trigger, error.message, now)
        except Exception as error:
            log.exception("trigger %s of %s cannot be looked at", trigger.trigger_id, trigger.workflow_id)
            return _failed(trigger, f"{type(error).__name__}: {error}", now)
        return _Move(_mark(trigger, looked, now), starts)

    def _look(self, trigger: Trigger, now: int) -> Looked:
        kind = self._kinds[trigger.kind]
        return kind.look(trigger, now) if trigger.is_begun else kind.begin(trigger, now)

    def _start(self, trigger: Trigger, fire: Fire) -> Start:
        run = prepare(
            self._tools,
            trigger.workflow_id,
            version=trigger.version_id,
            params=fire.params,
            initiator=fire.initiator,
            persist_failed_run=True,
        )
        return Start(replace(run, request_id=trigger.request_id(fire.key)))

    def _commit(self, moves: Sequence[_Move]) -> tuple[list[_Move], list[Started]]:
        """Write all moves at once; if somebody else has moved some of the triggers, the others."""
        if not moves:
            return [], []
        changes = Changes(
            starts=[start for move in moves for start in move.starts], marks=[move.mark for move in moves]
        )
        try:
            reach("triggers.prepared")
            committed = self._tools.state.commit(changes)
            reach("triggers.fired")
        except (Conflict, WorkflowMissing):
            return self._commit_others(moves)
        return list(moves), list(committed.started)

    def _commit_others(self, moves: Sequence[_Move]) -> tuple[list[_Move], list[Started]]:
        seqs = self._state.seqs(move.key for move in moves)
        left = [move for move in moves if seqs.get(move.key) == move.mark.seq]
        if len(left) < len(moves):
            return self._commit(left)
        if len(left) == 1:
            return [], []
        halves = (left[: len(left) // 2], left[len(left) // 2 :])
        found = [self._commit(half) for half in halves]
        return [move for moved, _ in found for move in moved], [each for _, started in found for each in started]


def _mark(trigger: Trigger, looked: Looked, now: int) -> TriggerMark:
    return TriggerMark(
        trigger.workflow_id,
        trigger.trigger_id,
        trigger.seq,
        looked.state,
        looked.due_at,
        fired_at=now if looked.fires else None,
    )


def _failed(trigger: Trigger, error: str, now: int) -> _Move:
    failures = trigger.failures + 1
    mark = TriggerMark(
        trigger.workflow_id,
        trigger.trigger_id,
        trigger.seq,
        trigger.state,
        now + _BACKOFF[min(failures, len(_BACKOFF)) - 1],
        is_begun=trigger.is_begun,
        error=error,
        failures=failures,
    )
    return _Move(mark)
