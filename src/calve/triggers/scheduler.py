"""The scheduler: looks at triggers that are due, and starts what they fire, each in one transaction."""

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from calve.engine import Started, Tools
from calve.engine.model import Changes, Start, TriggerMark
from calve.engine.ports import Clock
from calve.engine.starts import prepare
from calve.errors import CalveError, Conflict, StoreError, WorkflowMissing
from calve.failpoints import reach
from calve.namespaces import ROOT, namespace_of
from calve.triggers.model import Fire, Kind, Looked, Trigger, TriggerKind
from calve.triggers.ports import TriggerState
from calve.triggers.syncing import wanted

log = logging.getLogger(__name__)

BATCH = 100
"""How many workflows are synced, and triggers looked at, in one turn."""
LONGEST_SLEEP = 60.0
"""How long the scheduler sleeps at most when nothing calls it, in seconds."""
SHORTEST_SLEEP = 0.1
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
    """Starts workflows when their triggers of some kinds fire; on PostgreSQL, any number may be at it."""

    def __init__(
        self,
        tools: Tools,
        state: TriggerState,
        kinds: Mapping[Kind, TriggerKind],
        *,
        clock: Clock | None = None,
        listener: Callable[[Turn], None] = lambda _: None,
    ) -> None:
        """Make a scheduler, which does nothing until it is run.

        Args:
            tools: what the engine works with.
            state: keeps the triggers.
            kinds: whose triggers it looks at.
            clock: the time that everybody goes by, even if it jumps; the engine's, if not given.
            listener: is told of every turn.
        """
        self._tools = tools
        self._clock = clock or tools.clock
        self._state = state
        self._kinds = kinds
        self._listener = listener

    def run(self, stop: threading.Event) -> None:
        """Take turns until ``stop`` is set; whoever sets it wakes the store too."""
        while not stop.is_set():
            try:
                turn = self.turn()
                self._listener(turn)
                if not turn.is_full and not stop.wait(SHORTEST_SLEEP):
                    self._tools.state.wait(self._pause())
            except StoreError as error:
                log.warning("%s", error.message)
                stop.wait(random.uniform(0.1, 1.0))  # noqa: S311 - so that not all come back at once

    def turn(self) -> Turn:
        """Take over the triggers of changed workflows, then look at all that are due."""
        now = self._clock()
        synced = self._sync(now)
        due = self._state.due(now, BATCH, self._kinds)
        moves = [move for trigger in due if (move := self._move(trigger, now)) is not None]
        written = self._commit(moves)
        failures = [move.mark.failures for some in written for move in some.moves]
        return Turn(
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
            triggers = [] if record is None else wanted(record.definition)
            self._state.sync(workflow_id, version_id, triggers, now)
            reach("triggers.synced")
        return len(unsynced)

    def _move(self, trigger: Trigger, now: int) -> _Move | None:
        """Look at a trigger, and prepare what it starts; one that cannot be looked at is left alone for a while."""
        try:
            looked = self._look(trigger, now)
            starts = tuple(self._start(trigger, fire) for fire in looked.fires)
        except StoreError:
            raise
        except Conflict:
            return None  # it is due still
        except CalveError as error:  # if its workflow is gone, so is it: nothing of this is written
            return _failed(trigger, error.message, now)
        except Exception as error:
            log.exception("trigger %s of %s cannot be looked at", trigger.trigger_id, trigger.workflow_id)
            return _failed(trigger, f"{type(error).__name__}: {error}", now)
        reach("triggers.looked")
        return _Move(trigger, _mark(trigger, looked, now), starts)

    def _look(self, trigger: Trigger, now: int) -> Looked:
        kind = self._kinds[trigger.kind]
        return kind.look(trigger, now) if trigger.is_begun else kind.begin(trigger, now)

    def _start(self, trigger: Trigger, fire: Fire) -> Start:
        run = prepare(
            self._tools,
            trigger.workflow_id,
            version=trigger.version_id,
            params=fire.params,
            initiator=replace(fire.initiator, within=self._within(trigger.workflow_id)),
            persist_failed_run=True,
        )
        return Start(replace(run, request_id=trigger.request_id(fire.key)))

    def _within(self, workflow_id: str) -> tuple[str, ...] | None:
        """Return what params of the run may name: they may come from anybody, by a signal, and nobody stands by."""
        namespace = namespace_of(workflow_id)
        return (namespace,) if namespace != ROOT and self._tools.has_namespaces() else None

    def _commit(self, moves: Sequence[_Move]) -> list[_Written]:
        """Write all moves at once; if that cannot be, those that can."""
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
            seqs = self._state.seqs(move.key for move in moves)
            return self._apart([move for move in moves if seqs.get(move.key) == move.mark.seq], moves)
        except Exception as error:
            log.exception("what triggers start cannot be written")
            if len(moves) == 1 and not moves[0].mark.failures:
                return self._commit([_failed(moves[0].trigger, f"{type(error).__name__}: {error}", self._clock())])
            return self._apart(moves, moves)
        reach("triggers.fired")
        return [_Written(moves, committed.started)]

    def _apart(self, left: Sequence[_Move], moves: Sequence[_Move]) -> list[_Written]:
        """Write what is left of some moves, or one half after the other; what cannot be written alone is let be."""
        if len(left) < len(moves):
            return self._commit(left)
        if len(left) == 1:
            return []
        half = len(left) // 2
        return [*self._commit(left[:half]), *self._commit(left[half:])]


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
    return _Move(trigger, mark)
