"""A real worker in a process of its own, whose steps write down each time that they are carried out."""

import logging
import os
import random
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from calve import failpoints
from calve.access import Secrets
from calve.app import is_gone, this_process, tools_on
from calve.engine import (
    AnchoredClock,
    Executor,
    Outcome,
    RunStatus,
    State,
    StepContext,
    Tools,
    Worker,
    WorkerOptions,
)
from calve.errors import StoreError
from calve.store import Store, open_store

FLAKY = 2
"""The attempt of a flaky step that is the first to succeed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker process is to do."""

    url: str
    journal: Path
    """One line for each call of a runtime: attempt, a word of this call's own, process, time."""
    options: WorkerOptions = field(
        default_factory=lambda: WorkerOptions(
            slots=4, tick=0.05, heartbeat=0.2, lease=3.0, poll=0.2, tries=1_000_000, drain=5.0
        )
    )
    pause: float = 0.0
    """Seconds that a call takes at most."""
    failpoints: str | None = None
    is_leaving: bool = True
    """Whether it ends when no instance is left that is not over."""
    log: int = logging.CRITICAL

    @property
    def gate(self) -> Path:
        """The file without which no step ``hold`` ends."""
        return self.journal.with_name("gate")


@dataclass(frozen=True, slots=True)
class Recording:
    """Carries out steps by writing a line; the name of a step says how else it behaves."""

    file: int
    pause: float
    gate: Path
    """What a step ``hold`` waits for."""

    def execute(self, context: StepContext) -> Outcome:
        """Write the line, then do what the step is named after."""
        *_, step, attempt = context.title.split("/")
        word = uuid.uuid4().hex
        os.write(self.file, f"{context.key} {word} {os.getpid()} {time.monotonic_ns()}\n".encode())
        if self.pause:
            time.sleep(random.uniform(0, self.pause))
        if step == "hold":
            _wait_for(self.gate)
        if step == "poll" and "polled" not in context.artifacts:
            return Outcome(State.CONTINUE, artifacts={"polled": word}, poll_after=0.01)
        if step == "keep":
            context.keep({"kept": word})
        if step == "flaky" and int(attempt) < FLAKY:
            return Outcome(State.USER_ERROR, artifacts={"by": word}, message="not yet")
        return Outcome(State.DONE, artifacts={"by": word})

    def terminate(self, context: StepContext) -> None:
        """There is nothing to end."""


def worker_on(tools: Tools, plan: Plan, journal: int) -> Worker:
    """Return a worker that knows one type of step."""
    runtime = Recording(journal, plan.pause, plan.gate)
    clock = tools.clock
    assert isinstance(clock, AnchoredClock)
    return Worker(
        tools,
        lambda turns, left: Executor(
            tools, turns, {"Shell": lambda: runtime}, plan.journal.parent, Secrets([]).for_step, time.monotonic, left
        ),
        clock=clock,
        identity=this_process(),
        is_gone=is_gone,
        options=plan.options,
    )


@contextmanager
def appending(path: Path) -> Iterator[int]:
    """Open a file to which many processes append whole lines."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        yield file
    finally:
        os.close(file)


def work(plan: Plan) -> None:
    """Be a worker process, until everything is over or SIGTERM comes."""
    logging.basicConfig(level=plan.log, format=f"%(asctime)s {os.getpid()} %(message)s")
    failpoints.arm(plan.failpoints)
    with open_store(plan.url) as store, store.hold_scheduler(), appending(plan.journal) as journal:
        worker = worker_on(tools_on(store, plan.url), plan, journal)
        signal.signal(signal.SIGTERM, lambda *_: worker.end())
        if plan.is_leaving:
            threading.Thread(target=_leave, args=(store, worker), daemon=True).start()
        worker.run()


def _leave(store: Store, worker: Worker) -> None:
    while not is_over(store):
        time.sleep(0.03)
    worker.end()


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


@contextmanager
def inside(store: Store, plan: Plan) -> Iterator[Worker]:
    """Let a worker work in a thread of this very process."""
    with appending(plan.journal) as journal:
        worker = worker_on(tools_on(store, plan.url), plan, journal)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        try:
            yield worker
        finally:
            worker.end()
            thread.join()


def is_over(store: Store) -> bool:
    """Tell whether every instance is over and nothing is left to do; False if the database cannot be asked."""
    live = [status for status in RunStatus if not status.is_terminal]
    try:
        return not any(store.engine.counts().values()) and not store.engine.instances(statuses=live, limit=1)
    except StoreError:
        return False
