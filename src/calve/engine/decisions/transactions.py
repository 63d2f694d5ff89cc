"""The transactions of the engine: each handles one task, decides what follows, and commits all of it together."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calve.engine.attempts import end_by_action, record_outcome, request_action, with_message
from calve.engine.decisions.progress import advance
from calve.engine.decisions.quarantine import quarantine
from calve.engine.instances import RunState, Tools, UnitOfWork
from calve.engine.model import HOLDING, Attempt, Changes, Committed, LogChunk, NewTask, Task, TaskKind
from calve.engine.ports import Outcome, State
from calve.errors import Conflict, LeaseLost, WorkflowMissing

log = logging.getLogger(__name__)

CALLS = "calve_calls"
"""The artifact that counts how often a runtime has been called for an attempt."""
OPTIMISTIC = 20
"""How often a transaction is tried while other transactions keep changing the run."""
Reserve = Callable[[Changes], None]
"""Makes the worker the owner of new tasks that it can execute immediately."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a transaction has written."""

    changes: Changes
    committed: Committed
    began_at: int = 0
    ended_at: int = 0


class Transactions:
    """Handles tasks; ``reserve`` lets a worker keep new steps that it can execute immediately."""

    def __init__(self, tools: Tools, reserve: Reserve = lambda _: None) -> None:
        self._tools = tools
        self._reserve = reserve

    def decide(self, task: Task) -> Transaction:
        """Advance a run: decide which steps start, and whether it has ended.

        Raises:
            LeaseLost: this worker no longer owns the task.
        """

        def apply(work: UnitOfWork) -> None:
            # A wake-up means that something changed elsewhere, of which this process's cache knows nothing.
            work.state(task.run_uuid, is_fresh=True)
            work.agenda[task.run_uuid] = None

        return self._commit(apply, done=[task])

    def record(self, task: Task, outcome: Outcome, logs: Sequence[LogChunk] = ()) -> Transaction:
        """Record the outcome of a runtime call, and advance the run.

        Raises:
            LeaseLost: this worker no longer owns the task, so nothing was recorded.
        """

        def apply(work: UnitOfWork) -> None:
            found = _attempt_of(work, task)
            if found is None:
                return
            state, attempt = found
            work.agenda[task.run_uuid] = None
            # An action that was requested while the step ran takes precedence over the outcome of the step.
            if state.run.action is not None:
                attempt = request_action(work, state, attempt, replace(state.run.action, is_upstream=True))
            if attempt.action is not None:
                end_by_action(work, state, replace(attempt, artifacts={**attempt.artifacts, **outcome.artifacts}))
            elif outcome.state is State.CONTINUE:
                calls = {CALLS: attempt.artifacts.get(CALLS, 0) + 1}
                kept = replace(attempt, artifacts={**attempt.artifacts, **outcome.artifacts, **calls})
                work.set_attempt(state, with_message(kept, work.now, outcome.message))
                due_at = work.now + int(outcome.poll_after * 1_000)
                if attempt.timeout_at is not None:
                    due_at = min(due_at, attempt.timeout_at)
                work.enqueue(NewTask(TaskKind.STEP, task.run_uuid, task.attempt_uuid, due_at, state.run.priority))
            else:
                record_outcome(work, state, attempt, outcome)

        return self._commit(apply, done=[task], logs=logs)

    def keep_artifacts(self, task: Task, artifacts: dict[str, object]) -> None:
        """Store artifacts of an attempt that is being executed.

        Raises:
            LeaseLost: this worker no longer owns the task.
        """

        def apply(work: UnitOfWork) -> None:
            found = _attempt_of(work, task)
            if found is None:
                raise LeaseLost("The attempt has ended already.", attempt=task.attempt_uuid)
            state, attempt = found
            work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, **artifacts}))

        self._commit(apply, held=[task])

    def quarantine(self, task: Task, why: str) -> Transaction:
        """Set a run aside that kills workers, or that the engine cannot advance."""
        changes = quarantine(self._tools, task, why)
        now = self._tools.clock()
        return Transaction(changes, self._tools.state.commit(changes), now, now)

    def _commit(
        self,
        apply: Callable[[UnitOfWork], None],
        *,
        done: Sequence[Task] = (),
        held: Sequence[Task] = (),
        logs: Sequence[LogChunk] = (),
    ) -> Transaction:
        # Optimistic: everything is computed before the database transaction begins, and again after a conflict
        # (decision 0013).
        for attempt in range(OPTIMISTIC):
            work = UnitOfWork(self._tools, self._tools.clock())
            try:
                apply(work)
                advance(work)
                changes = work.changes()
                changes.done, changes.held, changes.logs = list(done), list(held), list(logs)
                # Ownership is written with the new tasks, so the next step of a chain needs no claim of its own
                # (decision 0013).
                self._reserve(changes)
                committed = self._tools.state.commit(changes)
            except Conflict:
                work.drop()
                log.debug("a run was changed meanwhile; try %d", attempt + 2)
            # After any error: the commit may have happened, and then the cache is out of date.
            except BaseException:
                work.drop()
                raise
            else:
                work.settle(committed)
                return Transaction(changes, committed, work.now, self._tools.clock())
        raise Conflict("Other transactions keep changing the run.", run=(done or held)[0].run_uuid)


def _attempt_of(work: UnitOfWork, task: Task) -> tuple[RunState, Attempt] | None:
    """Return the attempt of a task, unless it has ended already.

    A cached run may be older than the attempt, so only a fresh read from the store proves that there is nothing to do.
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
