"""A unit of work: what it has read, and everything that it will change in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from calve.definition import StepFiles, Vocabulary
from calve.engine.instances.blueprints import Blueprints
from calve.engine.instances.run_state import Cache, RunState
from calve.engine.model import (
    RUN_EVENT,
    STEP_EVENT,
    Admission,
    Announcement,
    Attempt,
    Breakpoint,
    Changes,
    Children,
    Committed,
    Event,
    Json,
    NewTask,
    PassDown,
    Pending,
    Run,
    RunStatus,
    SignalUse,
    Start,
    StepStatus,
    TaskKind,
)
from calve.engine.ports import Clock, EngineState, GivenUp, LogFiles, NewId
from calve.errors import WorkflowMissing
from calve.texts import only_text

TIMELINE = 32
# Bounds the size of a transaction: a foreach over thousands of items begins them in portions.
MOST_RUNS = 500
"""The most runs that one unit of work creates; it leaves the rest to the next one."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the engine works with: the store, definitions, caches and clocks."""

    state: EngineState
    blueprints: Blueprints
    vocabulary: Vocabulary
    cache: Cache
    clock: Clock
    new_id: NewId
    environment: str = "local"
    """What ``params.getExecutionEnvironment()`` returns."""
    files: StepFiles | None = None
    """Finds the files that steps read, in the same places as a worker of this project."""
    log_files: LogFiles | None = None
    """Reads logs that are stored outside the database."""
    superseded: Callable[[str], GivenUp | None] = lambda _: None
    """Tells whether a capture was abandoned, and for which one."""
    has_namespaces: Callable[[], bool] = lambda: True
    """Tells whether namespaces belong to different people, so that what a trigger starts is limited to its own."""
    may_read_table: Callable[[str, str], bool] = lambda _workflow_id, _table: True
    """Tells whether a workflow may wait for a table to be complete up to a time."""


@dataclass(slots=True)
class UnitOfWork:
    """Collects changes, to be written in one transaction."""

    tools: Tools
    now: int
    agenda: dict[str, None] = field(default_factory=dict)
    """The runs to advance in this unit of work, in order."""
    states: dict[str, RunState] = field(default_factory=dict)
    _touched: dict[str, None] = field(default_factory=dict)
    _attempts: dict[str, Attempt] = field(default_factory=dict)
    _admissions: dict[str, Admission] = field(default_factory=dict)
    _tasks: dict[str, NewTask] = field(default_factory=dict)
    _starts: list[Start] = field(default_factory=list)
    _signals: list[Announcement] = field(default_factory=list)
    _uses: list[SignalUse] = field(default_factory=list)
    _passed_down: dict[str, PassDown] = field(default_factory=dict)

    def state(self, run_uuid: str, *, is_fresh: bool = False) -> RunState:
        """Return the state of a run: from the cache, unless it must be fresh from the store.

        Raises:
            WorkflowMissing: the run does not exist.
        """
        if run_uuid not in self.states:
            kept = None if is_fresh else self.tools.cache.get(run_uuid)
            self.states[run_uuid] = kept or self._read(run_uuid)
        return self.states[run_uuid]

    def _read(self, run_uuid: str) -> RunState:
        found = self.tools.state.load(run_uuid)
        if found is None:
            raise WorkflowMissing(f"Run {run_uuid} does not exist.", run=run_uuid)
        run = found.run
        blueprint = self.tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
        state = RunState(run, blueprint, {attempt.step_id: attempt for attempt in found.attempts}, self._around(run))
        # A copy, so that a unit of work that fails leaves nothing behind in the cache.
        return state.copied()

    def _around(self, run: Run) -> RunState | None:
        """Return the run around an iteration, read again if the cached one is older than the start of its loop."""
        parent = run.parent if run.is_inline else None
        if parent is None or parent.run_uuid in self.states:
            return self.states[parent.run_uuid] if parent else None
        outer = self.state(parent.run_uuid)
        if all(attempt.uuid != parent.attempt_uuid for attempt in outer.attempts.values()):
            del self.states[parent.run_uuid]
            outer = self.state(parent.run_uuid, is_fresh=True)
        return outer

    def add_run(self, run: Run, outer: RunState | None) -> RunState:
        """Add a new run, and put it on the agenda."""
        blueprint = self.tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
        state = RunState(run, blueprint, {}, outer, is_new=True)
        self.states[run.uuid] = state
        self._touched[run.uuid] = None
        self.agenda[run.uuid] = None
        return state

    @property
    def is_full(self) -> bool:
        """Tell whether this unit of work must not create more runs."""
        return len(self._touched) >= MOST_RUNS

    def set_run(self, state: RunState, **changes: Any) -> None:
        """Change fields of a run."""
        self.put_run(state, replace(state.run, **changes))

    def put_run(self, state: RunState, run: Run) -> None:
        """Replace a run by its new value."""
        state.run = run
        self._touched[run.uuid] = None

    def is_admitting(self, attempt_uuid: str) -> bool:
        """Tell whether an attempt starts with this unit of work if its permits are free."""
        return attempt_uuid in self._admissions

    def set_attempt(self, state: RunState, attempt: Attempt) -> Attempt:
        """Add or change an attempt; it is the newest of its step."""
        state.attempts[attempt.step_id] = attempt
        self.set_old_attempt(state, attempt)
        return attempt

    def set_old_attempt(self, state: RunState, attempt: Attempt) -> None:
        """Change an attempt that is not, or no longer, the newest of its step."""
        self._attempts[attempt.uuid] = attempt
        # A later decision replaces the admission; otherwise the transaction would write the older state.
        self._admissions.pop(attempt.uuid, None)
        self._touched[state.run.uuid] = None

    def admit(self, state: RunState, admission: Admission) -> None:
        """Let an attempt start if its permits are free when this is committed."""
        before = state.were.get(admission.waiting.uuid)
        events = tuple(
            step_event(state.run, attempt, before, self.now) for attempt in (admission.waiting, admission.started)
        )
        self.set_attempt(state, admission.waiting)
        self._admissions[admission.waiting.uuid] = replace(admission, events=events)

    def start(self, start: Start) -> None:
        """Start an instance under its workflow's run strategy."""
        self._starts.append(start)

    def send(self, signal: Announcement) -> None:
        """Announce a signal."""
        self._signals.append(signal)

    def note_release(self, use: SignalUse) -> None:
        """Record which signal released a step."""
        self._uses.append(use)

    def pass_down(self, attempt_uuid: str, pending: Pending) -> None:
        """Apply an action on an attempt to its child runs too."""
        self._passed_down[attempt_uuid] = PassDown(attempt_uuid, pending)

    def enqueue(self, task: NewTask) -> None:
        """Put a task into the queue; of two with the same key, keep the one that is due earlier."""
        known = self._tasks.get(task.key)
        if known is None or task.due_at < known.due_at:
            self._tasks[task.key] = task

    def wake(self, run_uuid: str, *, due_at: int = 0, priority: int = 0) -> None:
        """Have a run advanced: in this unit of work if the run belongs to it, otherwise by the next free worker."""
        # Prefer this transaction: a task would need another one.
        if not due_at and run_uuid in self._touched and not self.is_full:
            self.agenda[run_uuid] = None
        else:
            self.enqueue(NewTask(TaskKind.RUN, run_uuid, due_at=due_at, priority=priority))

    def breakpoints(self, workflow_id: str) -> list[Breakpoint]:
        """Return the breakpoints of a workflow."""
        return self.tools.cache.breakpoints.of(workflow_id, self.now, self.tools.state.breakpoints)

    def made_by(self, attempt_uuid: str) -> list[RunState]:
        """Return the child runs of an attempt that this unit of work has created."""
        return [
            state
            for state in self.states.values()
            if state.is_new and state.run.parent and state.run.parent.attempt_uuid == attempt_uuid
        ]

    def children(self, attempt_uuid: str) -> Children:
        """Count the child runs of an attempt: those in the store, and those created by this unit of work."""
        stored = self.tools.state.children(attempt_uuid)
        made = [state.run.status for state in self.made_by(attempt_uuid)]
        return Children(
            active=stored.active + sum(not status.is_terminal for status in made),
            failed=stored.failed + made.count(RunStatus.FAILED),
            timed_out=stored.timed_out + made.count(RunStatus.TIMED_OUT),
            stopped=stored.stopped + made.count(RunStatus.STOPPED),
        )

    def changes(self) -> Changes:
        """Return everything that is to be written."""
        changes = Changes(
            admissions=list(self._admissions.values()),
            passed_down=list(self._passed_down.values()),
            starts=self._starts,
            signals=self._signals,
            uses=self._uses,
            tasks=list(self._tasks.values()),
        )
        ends: list[Event] = []
        for run_uuid in self._touched:
            state = self.states[run_uuid]
            (changes.new_runs if state.is_new else changes.runs).append(state.run)
            (ends if state.run.status.is_terminal else changes.events).extend(self._run_events(state))
        for attempt in self._attempts.values():
            state = self.states[attempt.run_uuid]
            is_new = attempt.uuid not in state.were
            (changes.new_attempts if is_new else changes.attempts).append(attempt)
            changes.events += self._step_events(state, attempt)
        changes.events += ends  # a run ends after its steps
        return changes

    def settle(self, committed: Committed) -> None:
        """Put the written runs into the cache, as they were written."""
        for uuid in committed.admitted:
            started = self._admissions[uuid].started
            self.states[started.run_uuid].attempts[started.step_id] = started
        for run_uuid in self._touched:
            state = self.states[run_uuid]
            if not state.is_new:
                # As the update in the store did: the cached run has to carry the number that the next compare-and-set
                # expects.
                state.run = replace(state.run, seq=state.run.seq + 1)
            self.tools.cache.put(state)

    def drop(self) -> None:
        """Drop the runs that were read from the cache: they may be out of date."""
        for run_uuid in self.states:
            self.tools.cache.drop(run_uuid)

    def _run_events(self, state: RunState) -> list[Event]:
        if state.was is state.run.status:
            return []
        return [run_event(state.run, RUN_EVENT, self.now, before=state.was, after=state.run.status)]

    def _step_events(self, state: RunState, attempt: Attempt) -> list[Event]:
        before = state.were.get(attempt.uuid)
        if before is attempt.status or attempt.uuid in self._admissions:
            return []
        return [step_event(state.run, attempt, before, self.now)]


def run_event(run: Run, kind: str, at: int, *, before: str | None, after: str) -> Event:
    """Return an event about a run."""
    return Event(kind, run.uuid, run.workflow_id, run.instance_id, run.run_id, at, before=before, after=after)


def step_event(run: Run, attempt: Attempt, before: StepStatus | None, at: int) -> Event:
    """Return the event for an attempt that reached its status."""
    event = run_event(run, STEP_EVENT, at, before=before or StepStatus.NOT_CREATED, after=attempt.status)
    return replace(event, step_id=attempt.step_id, attempt_id=attempt.attempt_id)


def with_timeline_entry(timeline: tuple[Json, ...], at: int, message: str, level: str = "INFO") -> tuple[Json, ...]:
    """Return a timeline with one more entry, without the oldest ones beyond ``TIMELINE`` entries."""
    entry = {"type": "LOG", "timestamp": at, "message": only_text(message)}
    return (*timeline, entry if level == "INFO" else {**entry, "level": level})[-TIMELINE:]
