"""A real worker in a process of its own, with everything that is installed; it dies, stops or is lied to on demand."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Executable, Update
from tests.faults.worker import is_over

from calve import failpoints, settings
from calve.app import open_project
from calve.capture import Captures
from calve.delivery import Deliveries
from calve.engine import Worker, WorkerOptions
from calve.errors import LakeUnavailable
from calve.lake import SqlCatalog
from calve.store import Store

QUICK = WorkerOptions(slots=2, tick=0.05, heartbeat=0.2, lease=60.0, poll=0.1, tries=1_000_000, drain=20.0)
CALLS: tuple[tuple[type, str], ...] = (
    (Captures, "capture"),
    (Captures, "commit"),
    (Deliveries, "stage"),
    (Deliveries, "publish"),
)
"""The moves of a delivery: each is written down, and has a failpoint ``before.NAME`` and ``after.NAME``.

So has the statement in a publish that lets the catalog point to the new metadata: ``swap``.
"""
_ONE_BY_ONE = Lock()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker process is to do."""

    project: Path
    journal: Path
    """One line for each move of a delivery: its name, and the process."""
    said: Path
    """Where it logs to."""
    failpoints: str | None = None
    lost: str | None = None
    """``reply``: the commit that publishes is made, but its caller gets an error. ``request``: it is not made."""
    options: WorkerOptions = field(default_factory=lambda: QUICK)
    is_alone: bool = True
    """Whether no other worker is on the store."""
    is_leaving: bool = True
    """Whether it ends when no instance is left that is not over."""


def work(plan: Plan) -> None:
    """Be a worker process, until everything is over or SIGTERM comes."""
    _log_to(plan.said)
    for owner, name in CALLS:
        _put_points(owner, name, plan)
    loaded = settings.load(plan.project, {})
    with open_project(loaded) as project, _alone(project.store, plan):
        worker = project.worker(options=plan.options)
        signal.signal(signal.SIGTERM, lambda *_: worker.end())
        if plan.is_leaving:
            threading.Thread(target=_leave, args=(project.store, worker), daemon=True).start()
        failpoints.arm(plan.failpoints)
        worker.run()
        failpoints.arm(None)
    sys.stderr.flush()
    os._exit(0)  # nothing of Spark's client, its threads least of all, is to hold up a test


def _log_to(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, 2)
    logging.basicConfig(level=logging.WARNING, format=f"%(asctime)s {os.getpid()} %(message)s", stream=sys.stderr)


def _alone(store: Store, plan: Plan) -> Any:
    return store.hold_scheduler() if plan.is_alone else nullcontext()


def _leave(store: Store, worker: Worker) -> None:
    while not is_over(store):
        time.sleep(0.03)
    worker.end()


def _put_points(owner: type, name: str, plan: Plan) -> None:
    real = getattr(owner, name)
    losses = [plan.lost] if plan.lost else []

    @wraps(real)
    def pointed(*arguments: Any, **options: Any) -> Any:
        _reach(f"before.{name}")
        _write_down(plan.journal, name)
        with _swapping(losses) if name == "publish" else nullcontext():
            result = real(*arguments, **options)
        _reach(f"after.{name}")
        return result

    setattr(owner, name, pointed)


def _reach(point: str) -> None:
    with _ONE_BY_ONE:
        failpoints.reach(point)


def _write_down(journal: Path, name: str) -> None:
    with journal.open("a") as file:
        file.write(f"{name} {os.getpid()}\n")


@contextmanager
def _swapping(losses: list[str]) -> Iterator[None]:
    """Put points around the statement that publishes, after all is decided; lose what is to be lost, once."""
    owner: Any = SqlCatalog
    real: Callable[[SqlCatalog, Executable], int] = SqlCatalog._execute

    def execute(catalog: SqlCatalog, statement: Executable) -> int:
        if not isinstance(statement, Update):
            return real(catalog, statement)
        _reach("before.swap")
        loss = losses.pop() if losses else None
        swapped = 0 if loss == "request" else real(catalog, statement)
        _reach("after.swap")
        if loss:
            raise LakeUnavailable(
                f"The catalog {catalog.name} cannot be reached: the line is dead", catalog=catalog.name
            )
        return swapped

    owner._execute = execute
    try:
        yield
    finally:
        owner._execute = real
