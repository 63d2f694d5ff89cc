"""A database that crashes, loses answers, is full or changes its clock: workers bear with it, and nothing is lost."""

import logging
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.event import listen
from tests.faults.proxy import Mode, Proxy
from tests.faults.worker import Plan, inside
from tests.faults.worker_pool import Errand, until_over, wait_until, worker_pool
from tests.memory_folders import memory

from calve.app import tools_on
from calve.engine import Engine, RunStatus
from calve.errors import StoreUnavailable
from calve.store import Store, open_store
from calve.testing.postgres import Postgres, throwaway_postgres

pytestmark = pytest.mark.each_store


@pytest.fixture(scope="module")
def own() -> Iterator[Postgres]:
    """Give a PostgreSQL that these tests alone use, and crash."""
    with throwaway_postgres(within=memory()) as made:
        yield made


@pytest.fixture
def errand(own: Postgres, tmp_path: Path) -> Errand:
    """Give an errand on an empty database."""
    name = f"test_{uuid.uuid4().hex}"
    own.database(name)
    return Errand(own.url_at(own.port, name), tmp_path)


def test_workers_survive_a_database_that_crashes_repeatedly(own: Postgres, errand: Errand) -> None:
    """PostgreSQL is shut down at once, whatever it was doing, and started again; the workers stay the same."""
    errand.begin(3)
    chance = random.Random(7)

    def crash() -> None:
        time.sleep(chance.uniform(0.2, 1.0))
        own.stop()
        time.sleep(chance.uniform(0.0, 0.3))
        own.start()

    plan = Plan(errand.url, errand.journal, pause=0.05, is_leaving=False)
    with worker_pool(errand, plan) as pool, open_store(errand.url) as store:
        pool.replace_dead(2)
        for _ in range(3):
            crash()
        until_over(store, lambda: time.sleep(0.05))
        assert all(process.is_alive() for process in pool.members)
        pool.dismiss()
    assert {run.status for run in errand.check().runs} == {RunStatus.SUCCEEDED}


def test_a_commit_whose_response_is_lost_happens_once(own: Postgres, errand: Errand) -> None:
    """Commits whose answers, or which themselves, disappear; a network that refuses, or swallows all that is sent."""
    errand.begin(3)
    direct = errand.url
    with Proxy(own.port, seed=3) as proxy:
        errand.url = direct.replace(f":{own.port}/", f":{proxy.port}/")
        plan = Plan(errand.url, errand.journal, is_leaving=False)
        modes = [(Mode.LOSE_REPLY, 0.2), (Mode.LOSE_COMMIT, 0.2), (Mode.REFUSE, 1.0), (Mode.SWALLOW, 1.0)]
        with worker_pool(errand, plan) as pool, open_store(direct) as store:
            pool.replace_dead(2)
            wait_until(errand.journal.exists)
            for mode, proxy.chance in modes * 2:
                proxy.mode = mode
                time.sleep(0.7)
                if mode is Mode.SWALLOW:
                    proxy.cut_all()
                pool.replace_dead(2)  # a worker that is refused while it starts does not start
            proxy.mode = Mode.PASS
            until_over(store, lambda: pool.replace_dead(2))
            pool.dismiss()
        assert proxy.cuts > 5
        errand.url = direct
    assert {run.status for run in errand.check().runs} == {RunStatus.SUCCEEDED}


def test_a_start_that_a_crash_undid_is_not_reported_as_done(own: Postgres, errand: Errand) -> None:
    """The number of the lost transaction is given to another one, which is committed: it proves nothing."""
    errand.begin(0)
    plain = errand.url.replace("+psycopg", "")

    def crash() -> None:
        own.restart()
        with psycopg.connect(plain) as other:
            other.execute("CREATE TABLE unrelated (x int)")

    with Proxy(own.port, crash=crash) as proxy:
        with open_store(errand.url.replace(f":{own.port}/", f":{proxy.port}/")) as store:
            engine = Engine(tools_on(store, errand.url))
            proxy.mode = Mode.CRASH
            with pytest.raises(StoreUnavailable):
                engine.start("chain", request_id="once")
            assert engine.state.run_by_request("chain", "once") is None
            errand.start(engine, "chain", "once")
        assert proxy.cuts == 1
    with worker_pool(errand) as pool:
        pool.start_worker().join()
    errand.check()


class _Refusals(logging.Handler):
    """Counts how often the database had no room."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Look at what is logged."""
        self.number += "full" in record.getMessage()


def test_work_continues_when_a_full_disk_has_space_again(tmp_path: Path) -> None:
    """Writes are refused, nothing is half written, and everything ends when there is room."""
    errand = Errand(f"sqlite:///{tmp_path}/calve.db", tmp_path)
    errand.begin(4)
    refusals = _Refusals()
    loggers = [logging.getLogger(f"calve.engine.{name}") for name in ("worker.worker", "worker.executor")]
    for logger in loggers:
        logger.addHandler(refusals)
    with open_store(errand.url) as store:
        _pragma(store, f"max_page_count = {_pragma(store, 'page_count') + 4}")
        with inside(store, Plan(errand.url, errand.journal)):
            wait_until(lambda: refusals.number > 5)
            _pragma(store, "max_page_count = 1000000")
            until_over(store, lambda: time.sleep(0.05))
        assert _pragma(store, "integrity_check") == "ok"
    for logger in loggers:
        logger.removeHandler(refusals)
    history = errand.check()
    assert {run.status for run in history.runs} == {RunStatus.SUCCEEDED}


def test_a_clock_that_jumps_moves_nothing(tmp_path: Path) -> None:
    """An hour forth and two back, while a step runs that has half an hour: nothing times out, or happens twice."""
    errand = Errand(f"sqlite:///{tmp_path}/calve.db", tmp_path)
    errand.begin(2)
    errand.begin(1, ("held",))
    shift = 0.0

    def julianday(_: object) -> float:
        return (time.time() + shift) / 86_400 + 2_440_587.5

    def is_seen() -> bool:
        return any(abs(one.heartbeat_at / 1_000 - time.time() - shift) < 60 for one in store.engine.workers())

    plan = Plan(errand.url, errand.journal)
    plan = replace(plan, options=replace(plan.options, lease=20.0))  # a busy machine is not a clock that jumps
    with open_store(errand.url) as store:
        _told_the_time_by(store, julianday)
        with inside(store, plan) as worker:
            wait_until(lambda: worker.under_way > 0)
            name = worker.uuid
            for jump in (3_600.0, -3_600.0, 0.0, 3_600.0):
                shift = jump
                wait_until(is_seen)
                time.sleep(0.3)  # a beat or two more
            plan.gate.touch()
            until_over(store, lambda: time.sleep(0.05))
            assert worker.uuid == name, "it was taken for dead"
    history = errand.check()
    assert {run.status for run in history.runs} == {RunStatus.SUCCEEDED}
    polls = {each.uuid for each in history.attempts if each.step_id == "poll"}
    calls = Counter({uuid: len(words) for uuid, words in history.journal.items()})
    assert all(number == (2 if uuid in polls else 1) for uuid, number in calls.items())


def _told_the_time_by(store: Store, julianday: Callable[[object], float]) -> None:
    """Give every connection of a store another clock."""
    for engine in (store._database._engine, store._database._reading):
        engine.dispose()  # those that are there already
        listen(engine, "connect", lambda driver, _: driver.create_function("julianday", 1, julianday))


def _pragma(store: Store, what: str) -> Any:
    with store._database.write("test") as connection:
        return connection.exec_driver_sql(f"PRAGMA {what}").scalar()
