"""Carrying out one attempt: its runtime is called, and what came of it is recorded."""

import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path

from calve.engine.about import about
from calve.engine.capture_uses import undelivered
from calve.engine.contexts import Context, hidden, revealed
from calve.engine.evaluating import evaluate_file_of, targets_of
from calve.engine.facts import params_of, place_of, run_params
from calve.engine.logs import SPOOL, Log, LogLimits, Spool, after
from calve.engine.model import Attempt, LogChunk, Task
from calve.engine.ports import Closing, Outcome, Runtimes, State, StepRuntime
from calve.engine.sending import named_in
from calve.engine.states import RunState
from calve.engine.statuses import HOLDING
from calve.engine.turns import CALLS, Turn, Turns
from calve.engine.work import Tools, Work
from calve.errors import CalveError, Conflict, LeaseLost, ParamError, StepFailed, StoreError, WorkflowMissing
from calve.folders import is_refusal
from calve.namespaces import covers, namespace_of

log = logging.getLogger(__name__)

AGAIN = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds between tries to reach a database that does not answer; the last one from then on."""
SPARE = 10_000
"""How many pieces of a log are left to a worker that was taken for dead."""


@dataclass(slots=True)
class Executor:
    """Carries out attempts for one worker."""

    tools: Tools
    turns: Turns
    runtimes: Runtimes
    folder: Path
    secret_for: Callable[[str, str], str]
    """Gives the text of a secret, by its name, to a step that the definition of a workflow holds."""
    monotonic: Callable[[], float]
    is_dead: threading.Event
    """Set when the worker has to let go of everything."""
    limits: LogLimits = field(default_factory=LogLimits)
    """How much of a log is kept."""
    contexts: list[Context] = field(default_factory=list)
    """What is in hand; one attempt twice, if the worker was taken for dead and got it again."""
    _made: dict[str, StepRuntime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def carry_out(self, task: Task) -> Turn | None:
        """Carry out the attempt that a task is about, and record what came of it; None if it is not ours to record."""
        state, attempt = self._found(task)
        if state is None or attempt is None or attempt.status not in HOLDING:
            return self._recorded(task, Outcome(State.STOPPED), [])
        lines = self._log(task, attempt)
        with about(**_ids(state, attempt)):
            outcome = self._outcome(task, state, attempt, lines)
        if outcome is None:
            self._hand_in(lines)
            return None
        pieces = lines.take()
        turn = self._recorded(task, outcome, pieces)
        if turn is not None:
            lines.kept(pieces)
        return turn

    def interrupt(self, attempt_uuids: Iterable[str]) -> None:
        """Have the work of some attempts end, if it is in our hands."""
        wanted = set(attempt_uuids)
        with self._lock:
            found = [context for context in self.contexts if context.key in wanted]
        for context in found:
            context.interrupted.set()

    def interrupt_all(self) -> None:
        """Have all work end."""
        with self._lock:
            found = [context.key for context in self.contexts]
        self.interrupt(found)

    def close(self) -> None:
        """Have the runtimes that hold something for the worker, such as a server, let go of it."""
        with self._lock:
            made = list(self._made.values())
        for runtime in made:
            if isinstance(runtime, Closing):
                runtime.close()

    def flush(self) -> None:
        """Hand the logs that were written to the store."""
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
        """Return the attempt, from the cache if it is known there."""
        for is_fresh in (False, True):
            work = Work(self.tools, self.tools.clock())
            try:
                state = work.state(task.run_uuid, is_fresh=is_fresh)
            except WorkflowMissing:
                return None, None
            for attempt in state.attempts.values():
                if attempt.uuid == task.attempt_uuid and (attempt.status in HOLDING or is_fresh):
                    return state, attempt
        return None, None

    def _log(self, task: Task, attempt: Attempt) -> Log:
        """Return the log of an attempt, which goes on where it was if the attempt was called for before.

        A worker that was taken for dead may go on writing for a while: it is left some numbers.
        """
        spool = Spool(self.folder / attempt.uuid / SPOOL, self.limits.part)
        if _is_first(task, attempt):
            return Log(attempt.uuid, self.limits, spool)
        state = self.tools.state
        extents = state.log_extents(attempt.uuid)
        calls: int = attempt.artifacts.get(CALLS, 0)  # each of them has given the task back
        is_taken_over = task.generation > calls + 1
        text = state.log_text(attempt.uuid, extents[-1].number) if extents else ""
        lines = Log(attempt.uuid, self.limits, spool, *after(extents, text, SPARE if is_taken_over else 0))
        if is_taken_over:
            lines.recover()
        return lines

    def _outcome(self, task: Task, state: RunState, attempt: Attempt, lines: Log) -> Outcome | None:
        """Call the runtime; return None if the worker has to go, so that another one will take over."""
        try:
            context = self._context(task, state, attempt, lines)
            runtime = self._runtime(attempt.type)
        except StoreError:  # of which the step is innocent
            raise
        except CalveError as error:
            return Outcome(State.FATAL_ERROR, message=_said(error))
        with self._in_hand(context):
            try:
                if attempt.action is not None or state.run.action is not None:
                    return Outcome(State.STOPPED) if self._terminated(runtime, context) else None
                if context.timeout == 0:
                    late = Outcome(State.TIMED_OUT, message="The step took too long.")
                    return late if self._terminated(runtime, context) else None
                outcome = runtime.execute(context)
            except LeaseLost:
                return None
            except StepFailed as error:
                outcome = Outcome(State(error.context.get("state", State.USER_ERROR)), message=_said(error))
            except StoreError as error:
                outcome = Outcome(State.PLATFORM_ERROR, message=error.message)
            except CalveError as error:
                failed = State.PLATFORM_ERROR if error.is_passing else State.FATAL_ERROR
                outcome = Outcome(failed, message=_said(error))
            except Exception as error:  # noqa: BLE001 - the boundary around what others wrote
                context.log(traceback.format_exc())
                failed = State.FATAL_ERROR if is_refusal(error) else State.PLATFORM_ERROR
                outcome = Outcome(failed, message=f"{type(error).__name__}: {error}")
        return self._judged(context.without_secrets(outcome), context)

    def _judged(self, outcome: Outcome, context: Context) -> Outcome | None:
        """Return why work that was stopped was; None if its worker has to go."""
        outcome = _within_namespace(outcome, context.place.workflow_id)
        if outcome.state is not State.STOPPED:
            return outcome
        if self.is_dead.is_set():
            return None
        return replace(outcome, state=State.TIMED_OUT) if context.timeout == 0 else outcome

    def _terminated(self, runtime: StepRuntime, context: Context) -> bool:
        """End work that may be under way; where that fails for a while, it is tried again.

        Tell whether that is all that can be done; if not, this worker has to go, and another one goes on with it.
        """
        for again in AGAIN:
            try:
                runtime.terminate(context)
            except StepFailed as error:
                context.log(f"It cannot be ended: {error.message}")
                if self.is_dead.wait(again):
                    return False
            else:
                break
        return True

    def _runtime(self, type_name: str) -> StepRuntime:
        with self._lock:
            if type_name not in self._made:
                if type_name not in self.runtimes:
                    known = ", ".join(sorted(self.runtimes))
                    raise StepFailed(f"This worker cannot carry out steps of type {type_name}; it knows {known}.")
                self._made[type_name] = self.runtimes[type_name]()
            return self._made[type_name]

    def _context(self, task: Task, state: RunState, attempt: Attempt, lines: Log) -> Context:
        run, now = state.run, self.tools.clock()
        work = Work(self.tools, now)
        secret = partial(self.secret_for, run.owner_workflow)
        params, secrets = revealed(params_of(state, attempt), secret)
        left = None if attempt.timeout_at is None else max(0, attempt.timeout_at - now) / 1_000
        return Context(
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
            record=lambda artifacts: self._kept(task, artifacts),
            evaluate=partial(evaluate_file_of, work, state, attempt),
            secret=secret,
            lines=lines,
            undelivered=partial(undelivered, work, state, attempt.step_id),
            secrets=secrets,
            targets=targets_of(work, state, attempt),
        )

    @contextmanager
    def _in_hand(self, context: Context) -> Iterator[None]:
        with self._lock:
            self.contexts.append(context)
        if self.is_dead.is_set():
            context.interrupted.set()
        try:
            yield
        finally:
            with self._lock:
                self.contexts.remove(context)

    def _kept(self, task: Task, artifacts: dict[str, object]) -> None:
        """Keep artifacts of an attempt, however long the database is away: the step is not to blame."""
        pauses = _pauses()
        while True:
            try:
                return self.turns.keep(task, artifacts)
            except StoreError as error:
                log.warning("the artifacts of %s cannot be kept yet: %s", task.key, error.message)
                if self.is_dead.wait(next(pauses)):
                    raise

    def _recorded(self, task: Task, outcome: Outcome, logs: list[LogChunk]) -> Turn | None:
        """Record an outcome, however long the database is away; what is done must not be done again for that."""
        pauses, conflicts = _pauses(), 0
        while True:
            try:
                return self.turns.record(task, outcome, logs)
            except LeaseLost:
                log.warning("attempt %s was given to another worker; what came of it here is dropped", task.key)
                return None
            except (Conflict, StoreError) as error:
                conflicts += isinstance(error, Conflict)
                if conflicts > len(AGAIN):
                    raise
                log.warning("the outcome of %s cannot be recorded yet: %s", task.key, error.message)
            if self.is_dead.wait(next(pauses)):
                return None


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


def _pauses() -> Iterator[float]:
    return chain(AGAIN, repeat(AGAIN[-1]))


def _said(error: CalveError) -> str:
    return f"{error.message} {error.remedy}".strip()


def _within_namespace(outcome: Outcome, workflow_id: str) -> Outcome:
    """Return what came of the work; it has failed if it names a signal that is not of its workflow's namespace.

    Who may push programs is not allowed to announce everybody's signals by that. Where the definition names a signal,
    whoever pushed it has been asked for the right.
    """
    try:
        names = named_in(outcome.artifacts)
    except ParamError:
        return outcome  # where signals are sent, it is told what is wrong
    namespace = namespace_of(workflow_id)
    foreign = [name for name in names if not covers(namespace, namespace_of(name))]
    if not foreign:
        return outcome
    message = (
        f"The work of the step named the signal {foreign[0]}, which is not of the namespace {namespace}. "
        "Name it in the step's signal_outputs, where whoever pushes the definition is asked for the right."
    )
    return Outcome(State.FATAL_ERROR, message=message)
