"""A pool of worker processes that a test kills, stops and replaces as it likes."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path

from tests.faults.checks import violations
from tests.faults.history import History, read_history
from tests.faults.worker import Plan, is_over, work
from tests.faults.workflows import TEXTS, definitions

from calve.app import is_gone, tools_on
from calve.engine import Engine, StartStatus
from calve.errors import StoreError
from calve.store import Store, open_store

_FORKING = get_context("forkserver")  # a fork of a small server: milliseconds, and none of this process's threads
_FORKING.set_forkserver_preload(
    ["tests.faults.worker", "calve.store.captures.captures", "calve.store.engine.state", "psycopg", "pytest"]
)
Member = ForkServerProcess | SpawnProcess
FOREVER = 10**12
PATIENCE = 180.0
"""Seconds after which a test gives up waiting."""


@dataclass
class WorkerPool:
    """Worker processes on one store."""

    plan: Plan
    members: list[Member] = field(default_factory=list)
    kills: int = 0

    def start_worker(self, plan: Plan | None = None) -> ForkServerProcess:
        """Start one more worker."""
        process = _FORKING.Process(target=work, args=(plan or self.plan,), daemon=True)
        process.start()
        self.members.append(process)
        return process

    def start_anew(self) -> SpawnProcess:
        """Start a worker in an interpreter of its own, as someone would at a prompt."""
        process = get_context("spawn").Process(target=work, args=(self.plan,), daemon=True)
        process.start()
        self.members.append(process)
        return process

    def kill(self, process: Member) -> None:
        """Kill a worker with SIGKILL, and wait until it is gone."""
        process.kill()
        process.join()
        self.kills += process.exitcode == -signal.SIGKILL
        self.members.remove(process)

    def replace_dead(self, number: int) -> None:
        """Keep so many workers at work."""
        for process in list(self.members):
            if not process.is_alive():
                self.members.remove(process)
        while len(self.members) < number:
            self.start_worker()

    def dismiss(self) -> None:
        """Have all workers leave in peace."""
        for process in self.members:
            process.terminate()
        for process in self.members:
            process.join()
        self.members.clear()

    def end(self) -> None:
        """Leave nobody behind, whatever happened."""
        for process in self.members:
            process.kill()
            process.join()


def send(process: Member, number: signal.Signals) -> None:
    """Send a signal to a worker."""
    assert process.pid is not None
    os.kill(process.pid, number)


@dataclass
class Errand:
    """Instances that were started on a store, each by a request of its own."""

    url: str
    folder: Path
    requests: dict[str, str] = field(default_factory=dict)

    @property
    def journal(self) -> Path:
        """Where workers write down what they carry out."""
        return self.folder / "journal"

    def begin(self, each: int, names: tuple[str, ...] = tuple(TEXTS)) -> None:
        """Push the workflows, and start so many instances of each."""
        with open_store(self.url) as store:
            engine = Engine(tools_on(store, self.url))
            for definition in definitions():
                engine.push(definition)
            for _ in range(each):
                for name in names:
                    self.start(engine, name, f"{name}-{len(self.requests)}")

    def start(self, engine: Engine, name: str, request: str) -> None:
        """Start an instance, however often that takes."""
        self.requests[request] = name
        until = time.monotonic() + PATIENCE
        while True:
            try:
                status = engine.start(name, request_id=request).status
            except StoreError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                assert status in {StartStatus.CREATED, StartStatus.DUPLICATED}
                return

    def history(self) -> History:
        """Read what has happened, after all workers have gone."""
        with open_store(self.url) as store:
            store.engine.reap(FOREVER, is_gone=is_gone)  # as the next worker would: those who were killed last
        return read_history(self.url, self.requests, self.journal)

    def check(self) -> History:
        """Fail if anything was lost, recorded twice, too early or beyond a limit."""
        history = self.history()
        found = violations(history)
        assert not found, "\n".join(found[:20])
        return history


@contextmanager
def worker_pool(errand: Errand, plan: Plan | None = None) -> Iterator[WorkerPool]:
    """Give a pool for an errand, none of whom is left when it is over."""
    pool = WorkerPool(plan or Plan(errand.url, errand.journal))
    try:
        yield pool
    finally:
        pool.end()


def wait_until(condition: Callable[[], bool]) -> None:
    """Come back when something is the case."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.02)


def until_over(store: Store, meanwhile: Callable[[], None]) -> None:
    """Do something again and again until every instance is over."""
    until = time.monotonic() + PATIENCE
    while not is_over(store):
        assert time.monotonic() < until, "the instances do not end"
        meanwhile()
        time.sleep(0.02)


def kill_at_random(pool: WorkerPool, number: int, chance: random.Random, pause: float) -> Callable[[], None]:
    """Return what kills a random worker after a while, and has another one in its place."""

    def meanwhile() -> None:
        time.sleep(chance.uniform(0, 2 * pause))
        pool.replace_dead(number)
        pool.kill(chance.choice(pool.members))
        pool.replace_dead(number)

    return meanwhile
