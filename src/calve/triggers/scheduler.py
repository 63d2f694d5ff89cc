"""The scheduler: evaluates triggers that are due, and starts what they fire, each in one transaction."""

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from calve.engine import Changes, Clock, Start, Started, Tools, TriggerMark, prepare_run
from calve.errors import CalveError, Conflict, StoreError, WorkflowMissing
from calve.failpoints import reach
from calve.namespaces import ROOT, namespace_of
from calve.triggers.model import Evaluation, Fire, Trigger, TriggerKind, TriggerState, TriggerType, triggers_of

log = logging.getLogger(__name__)

BATCH = 100
"""How many workflows are synced, and triggers evaluated, in one round."""
LONGEST_SLEEP = 60.0
"""The longest sleep of the scheduler, in seconds, if nothing wakes it."""
BEAT = 20_000
"""The minimum number of milliseconds between two records that the scheduler runs."""
SHORTEST_SLEEP = 0.1
"""The shortest sleep, in seconds, so that a busy store does not keep the scheduler busy too."""
_BACKOFF = (5_000, 30_000, 120_000, 600_000, 3_600_000)
"""Milliseconds until the retry after each failed evaluation; the last one repeats."""


@dataclass(frozen=True, slots=True)
class SchedulerRound:
    """What one round of the scheduler wrote."""

    synced: int = 0
    """Workflows whose triggers were synchronized with their active version."""
    looked: int = 0
    """Triggers that were evaluated."""
    failed: int = 0
    """Triggers whose evaluation failed."""
    started: tuple[Started, ...] = ()
    is_full: bool = False
    """Whether more may be due already."""


@dataclass(frozen=True, slots=True)
class _Move:
    """The outcome of one trigger's evaluation."""

    trigger: Trigger
    mark: TriggerMark
    starts: tuple[Start, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        return self.mark.workflow_id, self.mark.trigger_id


@dataclass(frozen=True, slots=True)
class _Written:
    """Moves that were written in one transaction, and what they started."""

    moves: Sequence[_Move]
    started: tuple[Started, ...]


class Scheduler:
    """Starts workflows when their triggers of some kinds fire; several may run on PostgreSQL."""

    def __init__(
        self,
        tools: Tools,
        state: TriggerState,
        kinds: Mapping[TriggerType, TriggerKind],
        *,
        clock: Clock | None = None,
        listener: Callable[[SchedulerRound], None] = lambda _: None,
    ) -> None:
        """Create a scheduler, which does nothing until it is run.

        Args:
            tools: the engine's dependencies.
            state: stores the triggers.
            kinds: the kinds of triggers that it evaluates.
            clock: the clock of the whole installation, even if it jumps; by default the engine's.
            listener: called with every round.
        """
        self._tools = tools
        self._clock = clock or tools.clock
        self._state = state
        self._kinds = kinds
        self._listener = listener
        self._beat_at = 0

    def run(self, stop: threading.Event) -> None:
        """Run rounds until ``stop`` is set; the caller that sets it also wakes the store."""
        while not stop.is_set():
            try:
                self._beat()
                turn = self.turn()
                self._listener(turn)
                if not turn.is_full and not stop.wait(SHORTEST_SLEEP):
                    # The store notifies waiters of commits, so a new trigger need not wait for the sleep to end.
                    self._tools.state.wait(self._pause())
            except StoreError as error:
                log.warning("%s", error.message)
                stop.wait(random.uniform(0.1, 1.0))  # noqa: S311 - so that not all processes return in the same moment

    def _beat(self) -> None:
        now = self._clock()
        if now - self._beat_at >= BEAT:
            self._state.beat(now)
            self._beat_at = now

    def turn(self) -> SchedulerRound:
        """Synchronize the triggers of changed workflows, then evaluate all that are due."""
        now = self._clock()
        synced = self._sync(now)
        due = self._state.due(now, BATCH, self._kinds)
        moves = [move for trigger in due if (move := self._move(trigger, now)) is not None]
        written = self._commit(moves)
        failures = [move.mark.failures for some in written for move in some.moves]
        return SchedulerRound(
            synced=synced,
            looked=failures.count(0),
            failed=len(failures) - failures.count(0),
            started=tuple(started for some in written for started in some.started),
            is_full=synced == BATCH or len(due) == BATCH,
        )

    def _pause(self) -> float:
        due = self._state.next_due(self._kinds)
        if due is None:
            return LONGEST_SLEEP
        return min(LONGEST_SLEEP, max(0.0, (due - self._clock()) / 1_000))

    def _sync(self, now: int) -> int:
        unsynced = self._state.unsynced(BATCH)
        for workflow_id, version_id in unsynced:
            record = None if version_id is None else self._tools.state.version(workflow_id, version_id)
            reach("triggers.read")
            triggers = [] if record is None else triggers_of(record.definition)
            self._state.sync(workflow_id, version_id, triggers, now)
            reach("triggers.synced")
        return len(unsynced)

    def _move(self, trigger: Trigger, now: int) -> _Move | None:
        """Evaluate a trigger, and prepare what it starts; a failed evaluation is repeated later."""
        try:
            looked = self._look(trigger, now)
            starts = tuple(self._start(trigger, fire) for fire in looked.fires)
        except StoreError:
            raise
        except Conflict:
            return None  # its workflow changed meanwhile; the trigger is still due
        except CalveError as error:  # if the workflow was deleted, the mark is not written either
            return _failed(trigger, error.message, now)
        except Exception as error:
            log.exception("trigger %s of %s cannot be checked", trigger.trigger_id, trigger.workflow_id)
            return _failed(trigger, f"{type(error).__name__}: {error}", now)
        reach("triggers.looked")
        return _Move(trigger, _mark(trigger, looked, now), starts)

    def _look(self, trigger: Trigger, now: int) -> Evaluation:
        kind = self._kinds[trigger.kind]
        return kind.evaluate(trigger, now) if trigger.is_begun else kind.begin(trigger, now)

    def _start(self, trigger: Trigger, fire: Fire) -> Start:
        run = prepare_run(
            self._tools,
            trigger.workflow_id,
            version=trigger.version_id,
            params=fire.params,
            initiator=replace(fire.initiator, within=self._within(trigger.workflow_id)),
            persist_failed_run=True,
        )
        # The request id is derived from the fire key: if another scheduler evaluates the same trigger, its start is a
        # repetition.
        return Start(replace(run, request_id=trigger.request_id(fire.key)))

    def _within(self, workflow_id: str) -> tuple[str, ...] | None:
        """Return the namespaces that the run's params may refer to: any sender of a signal may have set them."""
        namespace = namespace_of(workflow_id)
        return (namespace,) if namespace != ROOT and self._tools.has_namespaces() else None

    def _commit(self, moves: Sequence[_Move]) -> list[_Written]:
        """Write all moves in one transaction; if that fails, those that can be written."""
        if not moves:
            return []
        changes = Changes(
            starts=[start for move in moves for start in move.starts], marks=[move.mark for move in moves]
        )
        reach("triggers.prepared")
        try:
            committed = self._tools.state.commit(changes)
        except StoreError:
            raise
        except (Conflict, WorkflowMissing):
            # Moves that another scheduler has written meanwhile are dropped; the others are tried again.
            seqs = self._state.seqs(move.key for move in moves)
            return self._apart([move for move in moves if seqs.get(move.key) == move.mark.seq], moves)
        except Exception as error:
            log.exception("what triggers start cannot be written")
            if len(moves) == 1 and not moves[0].mark.failures:
                return self._commit([_failed(moves[0].trigger, f"{type(error).__name__}: {error}", self._clock())])
            # One start that cannot be written must not block the others: halve the moves until it is alone.
            return self._apart(moves, moves)
        reach("triggers.fired")
        return [_Written(moves, committed.started)]

    def _apart(self, left: Sequence[_Move], moves: Sequence[_Move]) -> list[_Written]:
        """Write the remaining moves, or one half after the other; skip a single one that fails."""
        if len(left) < len(moves):
            return self._commit(left)
        if len(left) == 1:
            return []
        half = len(left) // 2
        return [*self._commit(left[:half]), *self._commit(left[half:])]


def _mark(trigger: Trigger, looked: Evaluation, now: int) -> TriggerMark:
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
    return _Move(trigger, mark)
