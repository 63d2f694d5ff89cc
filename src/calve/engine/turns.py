"""Turns: one task, one piece of progress, one transaction."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calve.engine.acting import ask, cut_short
from calve.engine.advancing import advance
from calve.engine.attempts import told
from calve.engine.ending import end
from calve.engine.model import Attempt, Changes, Committed, LogChunk, NewTask, Task, TaskKind
from calve.engine.ports import Outcome, State
from calve.engine.quarantine import quarantine
from calve.engine.states import RunState
from calve.engine.statuses import HOLDING
from calve.engine.work import Tools, Work
from calve.errors import Conflict, LeaseLost, WorkflowMissing

log = logging.getLogger(__name__)

CALLS = "calve_calls"
"""The artifact that counts how often a runtime has been called for an attempt."""
OPTIMISTIC = 20
"""How often a turn is taken again because somebody else changed the run meanwhile."""

Reserve = Callable[[Changes], None]
"""Marks which of the new tasks this worker takes at once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn has written."""

    changes: Changes
    committed: Committed
    began_at: int = 0
    ended_at: int = 0


class Turns:
    """Takes turns; ``reserve`` lets a worker keep tasks that it can carry out at once."""

    def __init__(self, tools: Tools, reserve: Reserve = lambda _: None) -> None:
        self._tools = tools
        self._reserve = reserve

    def move_run(self, task: Task) -> Turn:
        """Move a run on.

        Raises:
            LeaseLost: the task is no longer this worker's.
        """

        def turn(work: Work) -> None:
            work.state(task.run_uuid, is_fresh=True)
            work.agenda[task.run_uuid] = None

        return self._take(turn, done=[task])

    def record(self, task: Task, outcome: Outcome, logs: Sequence[LogChunk] = ()) -> Turn:
        """Record how a call of a runtime ended, and move the run on.

        Raises:
            LeaseLost: the task is no longer this worker's, so that nothing was recorded.
        """

        def turn(work: Work) -> None:
            found = _attempt_of(work, task)
            if found is None:
                return
            state, attempt = found
            work.agenda[task.run_uuid] = None
            if state.run.action is not None:
                attempt = ask(work, state, attempt, replace(state.run.action, is_upstream=True))
            if attempt.action is not None:
                cut_short(work, state, replace(attempt, artifacts={**attempt.artifacts, **outcome.artifacts}))
            elif outcome.state is State.CONTINUE:
                calls = {CALLS: attempt.artifacts.get(CALLS, 0) + 1}
                kept = replace(attempt, artifacts={**attempt.artifacts, **outcome.artifacts, **calls})
                work.set_attempt(state, told(kept, work.now, outcome.message))
                due_at = work.now + int(outcome.poll_after * 1_000)
                if attempt.timeout_at is not None:
                    due_at = min(due_at, attempt.timeout_at)
                work.enqueue(NewTask(TaskKind.STEP, task.run_uuid, task.attempt_uuid, due_at, state.run.priority))
            else:
                end(work, state, attempt, outcome)

        return self._take(turn, done=[task], logs=logs)

    def keep(self, task: Task, artifacts: dict[str, object]) -> None:
        """Keep artifacts of an attempt that is being carried out.

        Raises:
            LeaseLost: the task is no longer this worker's.
        """

        def turn(work: Work) -> None:
            found = _attempt_of(work, task)
            if found is None:
                raise LeaseLost("The attempt has ended already.", attempt=task.attempt_uuid)
            state, attempt = found
            work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, **artifacts}))

        self._take(turn, held=[task])

    def give_up(self, task: Task, why: str) -> Turn:
        """Set a run aside that workers die over, or that the engine cannot move."""
        changes = quarantine(self._tools, task, why)
        now = self._tools.clock()
        return Turn(changes, self._tools.state.commit(changes), now, now)

    def _take(
        self,
        turn: Callable[[Work], None],
        *,
        done: Sequence[Task] = (),
        held: Sequence[Task] = (),
        logs: Sequence[LogChunk] = (),
    ) -> Turn:
        for attempt in range(OPTIMISTIC):
            work = Work(self._tools, self._tools.clock())
            try:
                turn(work)
                advance(work)
                changes = work.changes()
                changes.done, changes.held, changes.logs = list(done), list(held), list(logs)
                self._reserve(changes)
                committed = self._tools.state.commit(changes)
            except Conflict:
                work.drop()
                log.debug("a run was changed by somebody else; turn %d", attempt + 2)
            except BaseException:
                work.drop()
                raise
            else:
                work.settle(committed)
                return Turn(changes, committed, work.now, self._tools.clock())
        raise Conflict("The run is changed by others all the time.", run=(done or held)[0].run_uuid)


def _attempt_of(work: Work, task: Task) -> tuple[RunState, Attempt] | None:
    """Return the attempt that a task is about, unless it has ended already.

    A cached run may be older than the attempt: only what is fresh from the store tells that there is nothing to do.
    """
    for is_fresh in (False, True):
        work.states.pop(task.run_uuid, None)
        try:
            state = work.state(task.run_uuid, is_fresh=is_fresh)
        except WorkflowMissing:
            return None
        for attempt in state.attempts.values():
            if attempt.uuid == task.attempt_uuid and attempt.status in HOLDING:
                return state, attempt
    return None
