"""An engine for tests: tests set its clock, run its turns one by one, and script its steps."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select

from calve.access import GivenSecrets, Secrets
from calve.capture import find_superseded
from calve.definition import installed, load, vocabulary_with
from calve.engine import (
    HOLDING,
    Address,
    AnchoredClock,
    Attempt,
    Blueprints,
    Cache,
    Changes,
    Engine,
    Executor,
    Listener,
    NewTask,
    Outcome,
    Run,
    Started,
    State,
    StepContext,
    StepStatus,
    Task,
    TaskKind,
    Tools,
    VersionRecord,
    Worker,
    WorkerOptions,
    WorkerRecord,
    params_from_stored,
)
from calve.engine.decisions import Transactions
from calve.engine.ports import EngineState
from calve.store import Store
from calve.store.tables import attempt as attempt_table, claim, task

DONE = Outcome(State.DONE)
BUSY = Outcome(State.CONTINUE, poll_after=3_600)
"""Work that goes on, and is looked at after an hour."""
USER_ERROR = Outcome(State.USER_ERROR, message="wrong input")
PLATFORM_ERROR = Outcome(State.PLATFORM_ERROR, message="no connection")
INFRASTRUCTURE_ERROR = Outcome(State.INFRASTRUCTURE_ERROR, message="Spark ended")
FATAL_ERROR = Outcome(State.FATAL_ERROR, message="no way")
START = 1_700_000_000_000
"""When the clock of a playground begins, in milliseconds."""

Act = Callable[[StepContext], Outcome]
Part = Outcome | Sequence[Outcome] | Act
"""What a step does: always the same, one thing after the other (the last one again and again), or what is called."""


@dataclass
class HandClock:
    """A clock that stands still until it is moved."""

    now: int = START

    def __call__(self) -> int:
        """Return the time in milliseconds."""
        return self.now

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.now / 1_000


@dataclass
class Script:
    """A runtime for every type of step, which does what a test says of the step; nothing said means DONE."""

    parts: dict[str, Part] = field(default_factory=dict)
    """By step id."""
    calls: list[str] = field(default_factory=list)
    """The steps for which work was begun or gone on with, in order."""
    ended: list[str] = field(default_factory=list)
    """The steps whose work was ended."""
    _said: dict[str, int] = field(default_factory=dict)

    def execute(self, context: StepContext) -> Outcome:
        """Do what the script says."""
        step_id = _step_of(context)
        self.calls.append(step_id)
        part = self.parts.get(step_id, DONE)
        if isinstance(part, Outcome):
            return part
        if callable(part):
            return part(context)
        said = self._said[step_id] = self._said.get(step_id, 0) + 1
        return part[min(said, len(part)) - 1]

    def terminate(self, context: StepContext) -> None:
        """Remember that the work was ended."""
        self.ended.append(_step_of(context))


def _step_of(context: StepContext) -> str:
    return context.title.split("/")[3]


@dataclass
class Playground:
    """A store, an engine on it, and a worker without threads."""

    store: Store
    url: str
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="calve-playground-")))
    clock: HandClock = field(default_factory=HandClock)
    script: Script = field(default_factory=Script)
    secrets: dict[str, str] = field(default_factory=dict)
    """The texts of secrets, by name."""

    def __post_init__(self) -> None:
        """Assemble the engine, and make its worker known."""
        numbers = count(1)
        state = self.store.engine
        self.tools = Tools(
            state,
            Blueprints(state.version),
            vocabulary_with(state),
            Cache(),
            self.clock,
            lambda: f"00000000-0000-7000-8000-{next(numbers):012d}",
            superseded=partial(find_superseded, self.store.captures),
        )
        self.engine = Engine(self.tools)
        self.state = state
        self.transactions = Transactions(self.tools)
        self.is_dead = threading.Event()
        self.executor = Executor(
            self.tools,
            self.transactions,
            self.runtimes,
            self.folder,
            self.secret_for,
            self.clock.monotonic,
            self.is_dead,
        )
        self.worker = self.tools.new_id()
        state.register(WorkerRecord(self.worker, "playground", 1, self.clock(), self.clock(), 100))

    @property
    def secret_for(self) -> Callable[[str, str], str]:
        """What gives steps their secrets."""
        return Secrets([GivenSecrets(self.secrets)]).for_step

    @property
    def runtimes(self) -> Mapping[str, Callable[[], Script]]:
        """The script, for every type."""
        return {name: lambda: self.script for name in installed().types.names()}

    # Saying what is to happen.

    def push(self, text: str) -> VersionRecord:
        """Push a definition."""
        return self.engine.push(load(text, name="test", vocabulary=installed()).required())

    def begin(self, workflow_id: str = "w", **request: object) -> Started:
        """Start an instance, and move nothing."""
        return self.engine.start(workflow_id, **request)

    def start(self, workflow_id: str = "w", **request: object) -> Run:
        """Start an instance and move it as far as it goes."""
        started = self.begin(workflow_id, **request)
        self.settle()
        return self.fresh(started.run)

    def restart(self, run: Run, *path: str, **request: object) -> Run:
        """Restart an instance, and move it as far as it goes."""
        started = self.engine.restart(self.address(run, *path), **request)
        self.settle()
        return self.fresh(started.run)

    def advance(self, seconds: float) -> None:
        """Move the clock, and everything that is due then."""
        self.clock.now += int(seconds * 1_000)
        self.settle()

    # Moving.

    def settle(self) -> None:
        """Take turns until nothing is due; what is past its time is called first, as a heartbeat does."""
        late = self.state.overdue(self.clock())
        if late:
            self.state.commit(Changes(tasks=[NewTask(TaskKind.RUN, run_uuid) for run_uuid in late]))
        while tasks := self.claim():
            for each in tasks:
                self.do(each)

    def claim(self, runs: int = 100, steps: int = 100) -> list[Task]:
        """Take the tasks that are due."""
        return self.state.claim(self.worker, self.clock(), runs=runs, steps=steps)

    def do(self, each: Task) -> None:
        """Do one task."""
        if each.kind is TaskKind.RUN:
            self.transactions.decide(each)
        else:
            self.executor.execute(each)

    # Looking.

    def address(self, run: Run, *path: str) -> Address:
        """Return where a step of an instance is, or the instance."""
        return Address(run.workflow_id, run.instance_id, None, path)

    def fresh(self, run: Run) -> Run:
        """Return a run as it is now."""
        found = self.state.load(run.uuid)
        assert found is not None, f"{run.uuid} is gone"
        return found.run

    def statuses(self, run: Run) -> dict[str, StepStatus]:
        """Return where the newest attempts of a run's steps stand, carried ones too."""
        found = self.state.load(run.uuid)
        assert found is not None, f"{run.uuid} is gone"
        return {attempt.step_id: attempt.status for attempt in found.attempts}

    def attempt(self, run: Run, step_id: str) -> Attempt:
        """Return the newest attempt of a step."""
        return self.state.attempts(run.uuid, step_id)[-1]

    def result(self, run: Run, step_id: str, param: str) -> object:
        """Return the value of a step's param."""
        return params_from_stored(self.attempt(run, step_id).params)[param].result

    def told(self, run: Run, step_id: str) -> str:
        """Return the timeline of a step's newest attempt as text."""
        return "\n".join(entry["message"] for entry in self.attempt(run, step_id).timeline)

    def moves(self, run: Run) -> list[str]:
        """Return a run's events in order: what went from where to where."""
        return [
            f"{event.step_id or 'run'}: {event.before} → {event.after}"
            for event in self.state.events(run_uuid=run.uuid)
        ]

    def log(self, attempt: Attempt) -> str:
        """Return the log of an attempt."""
        return "".join(chunk.text for chunk in self.state.log(attempt.uuid))

    def check(self) -> None:
        """Fail if something is left behind that must not be: a permit held for nothing, a step without a task."""
        engine = create_engine(self.url)
        try:
            with engine.connect() as connection:
                held = {row.attempt_uuid for row in connection.execute(select(claim).where(claim.c.is_held.is_(True)))}
                waiting = {
                    row.attempt_uuid for row in connection.execute(select(claim).where(claim.c.is_held.is_(False)))
                }
                attempts = {row.uuid: StepStatus(row.status) for row in connection.execute(select(attempt_table))}
                tasks = {row.key for row in connection.execute(select(task))}
        finally:
            engine.dispose()
        leaked = {uuid: attempts.get(uuid) for uuid in held if attempts.get(uuid) not in HOLDING}
        assert not leaked, f"permits are held by attempts that do not run: {leaked}"
        stuck = {
            uuid: attempts.get(uuid) for uuid in waiting if attempts.get(uuid) is not StepStatus.WAITING_FOR_PERMITS
        }
        assert not stuck, f"permits are waited for by attempts that do not wait: {stuck}"
        orphans = held - tasks
        carried_out = {uuid for uuid in orphans if self._needs_worker(uuid)}
        assert not carried_out, f"attempts run for which there is no task: {carried_out}"

    def _needs_worker(self, attempt_uuid: str) -> bool:
        found = self.state.attempt(attempt_uuid)
        return found is not None and found.is_leaf and found.type not in {"NoOp", "Approval"}


class Unreliable:
    """A store that fails when a test says so: the errors of each method, for its next calls, in order."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self.faults: dict[str, list[Exception]] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a method that first raises what it is to raise."""
        method = getattr(self._state, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if self.faults.get(name):
                raise self.faults[name].pop(0)
            return method(*arguments, **named)

        return call


def worker_on(
    playground: Playground,
    *,
    state: EngineState | None = None,
    listener: Listener = lambda _: None,
    upkeep: Callable[[], None] = lambda: None,
    **options: float,
) -> Worker:
    """Return a real worker on a playground's store, with its script, which does nothing until it is run."""
    state = state or playground.state
    clock = AnchoredClock(state.now, is_shared=False)
    tools = replace(playground.tools, state=state, cache=Cache(), clock=clock)
    return Worker(
        tools,
        lambda turns, left: Executor(
            tools,
            turns,
            playground.runtimes,
            playground.folder,
            playground.secret_for,
            time.monotonic,
            left,
        ),
        clock=clock,
        identity=WorkerRecord("", "live", 1, 0, 0, 0),
        listener=listener,
        upkeep=upkeep,
        options=replace(WorkerOptions(tick=0.02, heartbeat=0.02, poll=0.05), **options),  # type: ignore[arg-type]
    )


@contextmanager
def live(playground: Playground, **given: Any) -> Iterator[Worker]:
    """Run a real worker in threads until the block ends; ``worker_on`` says what may be given."""
    worker = worker_on(playground, **given)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.end()
        thread.join()


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)


def wait_for_end(playground: Playground, run: Run) -> Run:
    """Wait until a run is over; return it."""
    wait_for(lambda: playground.fresh(run).status.is_terminal)
    return playground.fresh(run)
