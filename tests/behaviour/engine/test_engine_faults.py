"""Workers that are killed at every point, at random and again and again, or stopped for too long: nothing is lost."""

import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path

import pytest
from tests.faults.history import read_journal
from tests.faults.worker import Plan
from tests.faults.worker_pool import Errand, WorkerPool, kill_at_random, send, until_over, wait_until, worker_pool
from tests.memory_folders import folder_in_memory
from tests.scope import in_ci

from calve.app import tools_on
from calve.engine import Engine, RunStatus, WorkerOptions
from calve.store import open_store

pytestmark = pytest.mark.each_store

KILLS = int(os.environ.get("CALVE_TEST_KILLS", in_ci("50", otherwise="200")))  # noqa: TID251 - how long to go on is up to who runs the tests
STRIDE = in_ci(2, otherwise=1)
"""How far apart the points are at which workers of one workflow are killed; in CI even ones in some, odd in others."""
QUICK = ("chain", "join", "loop", "outer", "narrow")
"""Workflows in which nothing waits for a clock."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder in memory where there is one."""
    with folder_in_memory() as made:
        yield made


def test_a_worker_killed_at_any_point_loses_nothing(folder: Path) -> None:
    """At the first durable boundary, at the next, … until none is left; every third successor dies as well."""
    errand = Errand(f"sqlite:///{folder}/calve.db", folder)
    errand.begin(0)
    with worker_pool(errand) as pool:
        for place, name in enumerate(QUICK):
            for nth in count(1 + place % STRIDE, STRIDE):
                with open_store(errand.url) as store:
                    errand.start(Engine(tools_on(store, errand.url)), name, f"{name}-{nth}")
                if not _dies(pool, nth):
                    break
                if nth % 3 == 0:
                    _dies(pool, nth // 3)
                assert not _dies(pool, None)
        assert pool.kills > 10 * len(QUICK) // STRIDE
    errand.check()


def test_workers_killed_all_the_time_finish_everything(folder: Path) -> None:
    """Hundreds of workers after each other, each of which comes a little way."""
    errand = Errand(f"sqlite:///{folder}/calve.db", folder)
    points = cycle(range(3, 12))
    with worker_pool(errand) as pool:
        while pool.kills < KILLS:
            errand.begin(2, QUICK)
            while _dies(pool, next(points)):
                pass
    history = errand.check()
    assert sum(map(len, history.journal.values())) > len(history.journal), "no attempt was in two hands"


def test_many_workers_killed_at_random_finish_everything(postgres_database: str, tmp_path: Path) -> None:
    """On PostgreSQL, where others take over at once what a dead worker held."""
    errand = Errand(postgres_database, tmp_path)
    plan = Plan(errand.url, errand.journal, pause=0.02, is_leaving=False)
    chance = random.Random(5)
    with worker_pool(errand, plan) as pool, open_store(errand.url) as store:
        while pool.kills < max(12, KILLS // 5):  # how many a round has depends on how busy the machine is
            errand.begin(3)
            pool.replace_dead(3)
            until_over(store, kill_at_random(pool, 3, chance, 0.15))
        pool.dismiss()
    history = errand.check()
    assert {run.status for run in history.runs} == {RunStatus.SUCCEEDED}


def test_results_of_a_worker_stopped_past_its_lease_are_dropped(postgres_database: str, tmp_path: Path) -> None:
    """SIGSTOP past its lease, then SIGCONT: the outcome of who took over counts, and it goes on as a new worker."""
    errand = Errand(postgres_database, tmp_path)
    errand.begin(1, ("held",))
    options = WorkerOptions(slots=2, tick=0.05, heartbeat=0.2, lease=1.0, poll=0.2)
    plan = Plan(errand.url, errand.journal, options, is_leaving=False)
    with worker_pool(errand, plan) as pool, open_store(errand.url) as store:
        engine = Engine(tools_on(store, errand.url))
        stopped = pool.start_worker()
        wait_until(lambda: len(_calls(errand)) == 1)
        send(stopped, signal.SIGSTOP)
        other = pool.start_worker()
        wait_until(lambda: len(_calls(errand)) == 2)
        plan.gate.touch()
        until_over(store, lambda: None)
        pool.kill(other)
        send(stopped, signal.SIGCONT)
        errand.start(engine, "chain", "chain-late")
        until_over(store, lambda: None)
        assert stopped.is_alive()
        pool.dismiss()
    history = errand.check()
    first, second = _calls(errand)
    (held,) = [each for each in history.attempts if each.step_id == "hold"]
    assert held.artifacts["by"] == second != first


def _dies(pool: WorkerPool, nth: int | None) -> bool:
    """Let one worker work until it dies at the n-th point that it reaches; tell whether it did."""
    process = pool.start_worker(replace(pool.plan, failpoints=None if nth is None else f"*:{nth}:kill"))
    process.join()
    pool.members.remove(process)
    assert process.exitcode in {0, -signal.SIGKILL}
    pool.kills += process.exitcode == -signal.SIGKILL
    return process.exitcode == -signal.SIGKILL


def _calls(errand: Errand) -> tuple[str, ...]:
    """Return the calls of the one attempt that was carried out first."""
    return next(iter(read_journal(errand.journal).values()), ())
