"""Executes one attempt: calls its runtime, and records the outcome."""

import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from calve.engine.attempts import dynamic_signal_names
from calve.engine.decisions import CALLS, Transaction, Transactions
from calve.engine.instances import RunState, Tools, UnitOfWork
from calve.engine.logs import SPOOL, Log, LogLimits, Spool, after
from calve.engine.model import HOLDING, Attempt, Task
from calve.engine.params import evaluate_file_of, params_of, place_of, run_params, targets_of
from calve.engine.ports import Closing, Outcome, Runtimes, State, StepRuntime
from calve.engine.worker.capture_uses import undelivered
from calve.engine.worker.log_context import log_context
from calve.engine.worker.recorder import RETRY_DELAYS, Recorder
from calve.engine.worker.step_context import AttemptContext, hidden, revealed
from calve.errors import CalveError, LeaseLost, ParamError, StepFailed, StoreError, WorkflowMissing
from calve.folders import is_refusal
from calve.namespaces import covers, namespace_of

log = logging.getLogger(__name__)

SPARE = 10_000
"""How many piece numbers of a log are left free for a worker that was considered dead."""


@dataclass(slots=True)
class Executor:
    """Executes attempts for one worker."""

    tools: Tools
    transactions: Transactions
    runtimes: Runtimes
    folder: Path
    secret_for: Callable[[str, str], str]
    """Returns a secret by its name, for a step of a workflow."""
    monotonic: Callable[[], float]
    is_dead: threading.Event
    """Set when the worker must drop everything."""
    limits: LogLimits = field(default_factory=LogLimits)
    """How much of a log is kept."""
    contexts: list[AttemptContext] = field(default_factory=list)
    """The attempts that it executes; one may occur twice, if the worker was considered dead and claimed it again."""
    _made: dict[str, StepRuntime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.transactions, self.is_dead)

    def execute(self, task: Task) -> Transaction | None:
        """Execute the attempt of a task, and record its outcome; None if this worker no longer owns the task."""
        state, attempt = self._found(task)
        if state is None or attempt is None or attempt.status not in HOLDING:
            return self._recorder.record(task, Outcome(State.STOPPED), [])
        lines = self._log(task, attempt)
        with log_context(**_ids(state, attempt)):
            outcome = self._outcome(task, state, attempt, lines)
        if outcome is None:
            self._hand_in(lines)
            return None
        pieces = lines.take()
        transaction = self._recorder.record(task, outcome, pieces)
        if transaction is not None:
            lines.kept(pieces)
        return transaction

    def interrupt(self, attempt_uuids: Iterable[str]) -> None:
        """Interrupt some attempts, if this worker executes them."""
        wanted = set(attempt_uuids)
        with self._lock:
            found = [context for context in self.contexts if context.key in wanted]
        for context in found:
            context.interrupted.set()

    def interrupt_all(self) -> None:
        """Interrupt all attempts."""
        with self._lock:
            found = [context.key for context in self.contexts]
        self.interrupt(found)

    def close(self) -> None:
        """Close the runtimes that keep resources for the worker, such as a server."""
        with self._lock:
            made = list(self._made.values())
        for runtime in made:
            if isinstance(runtime, Closing):
                runtime.close()

    def flush(self) -> None:
        """Write the buffered text of the logs to the store."""
        with self._lock:
            contexts = list(self.contexts)
        for context in contexts:
            self._hand_in(context.lines)

    def _hand_in(self, lines: Log) -> None:
        pieces = lines.take()
        for number, piece in enumerate(pieces):
            try:
                self.tools.state.append_log(piece)
            except CalveError as error:
                lines.put_back(pieces[number:])
                lines.kept(pieces[:number])
                log.warning("the log of %s cannot be kept yet: %s", piece.attempt_uuid, error.message)
                return
        lines.kept(pieces)

    def _found(self, task: Task) -> tuple[RunState | None, Attempt | None]:
        """Return the run and the attempt of a task, from the cache if possible."""
        for is_fresh in (False, True):
            work = UnitOfWork(self.tools, self.tools.clock())
            try:
                state = work.state(task.run_uuid, is_fresh=is_fresh)
            except WorkflowMissing:
                return None, None
            for attempt in state.attempts.values():
                if attempt.uuid == task.attempt_uuid and (attempt.status in HOLDING or is_fresh):
                    return state, attempt
        return None, None

    def _log(self, task: Task, attempt: Attempt) -> Log:
        """Return the log of an attempt, which continues where it ended if the attempt was called before.

        A worker that was considered dead may still be writing for a while: leave some piece numbers free for it.
        """
        spool = Spool(self.folder / attempt.uuid / SPOOL, self.limits.part)
        if _is_first(task, attempt):
            return Log(attempt.uuid, self.limits, spool)
        state = self.tools.state
        extents = state.log_extents(attempt.uuid)
        calls: int = attempt.artifacts.get(CALLS, 0)  # each call has released the task
        # More generations than calls: another worker owned the task in between, and may still be writing.
        is_taken_over = task.generation > calls + 1
        last = extents[-1].number if extents else 0
        text = state.log_texts(attempt.uuid, [last]).get(last, "") if extents else ""
        lines = Log(attempt.uuid, self.limits, spool, *after(extents, text, SPARE if is_taken_over else 0))
        if is_taken_over:
            lines.recover()
        return lines

    def _outcome(self, task: Task, state: RunState, attempt: Attempt, lines: Log) -> Outcome | None:
        """Call the runtime; return None if the worker is shutting down, so that another one takes over."""
        try:
            context = self._context(task, state, attempt, lines)
            runtime = self._runtime(attempt.type)
        except StoreError:  # the step is not to blame
            raise
        except CalveError as error:
            return Outcome(State.FATAL_ERROR, message=_said(error))
        with self._in_hand(context):
            try:
                if attempt.action is not None or state.run.action is not None:
                    return Outcome(State.STOPPED) if self._terminated(runtime, context) else None
                if context.timeout == 0:
                    late = Outcome(State.TIMED_OUT, message="The step timed out.")
                    return late if self._terminated(runtime, context) else None
                outcome = runtime.execute(context)
            except LeaseLost:
                return None
            except StepFailed as error:
                outcome = Outcome(State(error.context.get("state", State.USER_ERROR)), message=_said(error))
            except StoreError as error:
                outcome = Outcome(State.INFRASTRUCTURE_ERROR, message=error.message)
            except CalveError as error:
                failed = State.INFRASTRUCTURE_ERROR if error.is_passing else State.FATAL_ERROR
                outcome = Outcome(failed, message=_said(error))
            except Exception as error:  # noqa: BLE001 - the boundary around what others wrote
                context.log(traceback.format_exc())
                failed = State.FATAL_ERROR if is_refusal(error) else State.PLATFORM_ERROR
                outcome = Outcome(failed, message=f"{type(error).__name__}: {error}")
        return self._judged(context.without_secrets(outcome), context)

    def _judged(self, outcome: Outcome, context: AttemptContext) -> Outcome | None:
        """Return the outcome of work that was stopped, with the reason; None if its worker is shutting down."""
        outcome = _within_namespace(outcome, context.place.workflow_id)
        if outcome.state is not State.STOPPED:
            return outcome
        if self.is_dead.is_set():
            return None
        return replace(outcome, state=State.TIMED_OUT) if context.timeout == 0 else outcome

    def _terminated(self, runtime: StepRuntime, context: AttemptContext) -> bool:
        """End work that may be under way; retry after failures, for a limited time.

        Return whether this worker is done with it; if not, it is shutting down, and another worker continues.
        """
        for delay in RETRY_DELAYS:
            try:
                runtime.terminate(context)
            except StepFailed as error:
                context.log(f"The step cannot be ended: {error.message}")
                if self.is_dead.wait(delay):
                    return False
            else:
                break
        return True

    def _runtime(self, type_name: str) -> StepRuntime:
        with self._lock:
            if type_name not in self._made:
                if type_name not in self.runtimes:
                    known = ", ".join(sorted(self.runtimes))
                    raise StepFailed(f"This worker cannot execute steps of type {type_name}; it supports {known}.")
                self._made[type_name] = self.runtimes[type_name]()
            return self._made[type_name]

    def _context(self, task: Task, state: RunState, attempt: Attempt, lines: Log) -> AttemptContext:
        run, now = state.run, self.tools.clock()
        work = UnitOfWork(self.tools, now)
        secret = partial(self.secret_for, run.owner_workflow)
        params, secrets = revealed(params_of(state, attempt), secret)
        left = None if attempt.timeout_at is None else max(0, attempt.timeout_at - now) / 1_000
        return AttemptContext(
            key=attempt.uuid,
            title=f"{run.workflow_id}/{run.instance_id}/{run.run_id}/{attempt.step_id}/{attempt.attempt_id}",
            place=place_of(state, attempt),
            params=params,
            workflow_params=hidden(run_params(state)),
            artifacts=dict(attempt.artifacts),
            is_first=_is_first(task, attempt),
            root=self.folder / attempt.uuid,
            deadline=None if left is None else self.monotonic() + left,
            monotonic=self.monotonic,
            record=partial(self._recorder.keep_artifacts, task),
            evaluate=partial(evaluate_file_of, work, state, attempt),
            secret=secret,
            lines=lines,
            undelivered=partial(undelivered, work, state, attempt.step_id),
            secrets=secrets,
            targets=targets_of(work, state, attempt),
        )

    @contextmanager
    def _in_hand(self, context: AttemptContext) -> Iterator[None]:
        with self._lock:
            self.contexts.append(context)
        if self.is_dead.is_set():
            context.interrupted.set()
        try:
            yield
        finally:
            with self._lock:
                self.contexts.remove(context)


def _ids(state: RunState, attempt: Attempt) -> dict[str, str | int]:
    run = state.run
    return {
        "workflow_id": run.workflow_id,
        "instance_id": run.instance_id,
        "run_id": run.run_id,
        "step_id": attempt.step_id,
        "attempt_id": attempt.attempt_id,
    }


def _is_first(task: Task, attempt: Attempt) -> bool:
    return task.generation <= 1 and CALLS not in attempt.artifacts


def _said(error: CalveError) -> str:
    return f"{error.message} {error.remedy}".strip()


def _within_namespace(outcome: Outcome, workflow_id: str) -> Outcome:
    """Return the outcome, or a failure if the step names a signal outside the namespace of its workflow.

    The permission to push programs must not be enough to announce signals of other namespaces. For the signals that a
    definition names, the permissions of the person who pushed it were checked.
    """
    try:
        names = dynamic_signal_names(outcome.artifacts)
    except ParamError:
        return outcome  # sending the signals reports what is wrong
    namespace = namespace_of(workflow_id)
    foreign = [name for name in names if not covers(namespace, namespace_of(name))]
    if not foreign:
        return outcome
    message = (
        f"The step announced the signal {foreign[0]}, which is outside the namespace {namespace}. "
        "Declare it in the step's signal_outputs, so that the permissions of whoever pushes it are checked."
    )
    return Outcome(State.FATAL_ERROR, message=message)
