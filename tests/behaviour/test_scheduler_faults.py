"""What the scheduler bears: the faults of its kind, by their numbers in the list of faults."""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.simulated_day import HOUR, MINUTE, POINTS, Day, Timed, expected, is_once, watching, workflows

from calve import failpoints
from calve.engine import StartStatus
from calve.failpoints import FailpointReached
from calve.store import Store, open_store

pytestmark = pytest.mark.each_store

MIDNIGHT = int(datetime(2026, 6, 15, tzinfo=UTC).timestamp() * 1_000)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm(None)


@pytest.fixture
def day(store: Store, store_url: str) -> Day:
    """Give a day that has just begun."""
    return Day(store, store_url, MIDNIGHT)


def hourly(size: int) -> list[Timed]:
    """Return workflows that start every hour."""
    return [Timed(f"w{number}", (number % 60,), None, "UTC") for number in range(size)]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("nth", [1, 2])
def test_a_crash_between_match_and_start_loses_and_repeats_nothing(day: Day, point: str, nth: int) -> None:
    """B.2-16: whatever the scheduler has just done, the next one goes on as if it had done all of it or nothing."""
    timed = hourly(3)
    day.push(timed)
    failpoints.arm(f"{point}:{nth}:error")
    died = 0
    for _ in range(6):
        try:
            day.work()
        except FailpointReached:
            failpoints.arm(None)
            day.revive()
            died += 1
        day.clock.now += HOUR
    day.work()
    assert died == 1
    assert day.fired() == expected(timed, MIDNIGHT, day.clock.now)


def test_a_repeated_firing_returns_the_same_instance(day: Day) -> None:
    """B.2-17: a trigger whose row was set back, as by an old backup, starts nothing twice."""
    day.push(hourly(1))
    day.work()
    day.clock.now += HOUR
    before = day.store.triggers.trigger("w0", "time:0")
    (first,) = day.scheduler.turn().started
    after = day.store.triggers.trigger("w0", "time:0")
    assert before is not None
    assert after is not None
    day.rewind(after, before)
    (second,) = day.scheduler.turn().started
    assert (first.status, second.status) == (StartStatus.CREATED, StartStatus.DUPLICATED)
    assert first.run.uuid == second.run.uuid
    assert set(day.fired().values()) == {1}


@pytest.mark.parametrize("pool", [2, 4])
def test_several_concurrent_schedulers_start_everything_once(store_url: str, pool: int) -> None:
    """B.2-18: each with connections of its own, all at the same triggers."""
    timed = hourly(12)
    with open_store(store_url) as store:
        day = Day(store, store_url, MIDNIGHT)
        day.push(timed)
    failures: list[BaseException] = []
    started: list[StartStatus] = []
    barrier = threading.Barrier(pool)

    def schedule(number: int) -> None:
        try:
            with open_store(store_url) as own:
                mine = Day(own, store_url, MIDNIGHT, first_id=number * 100_000)
                for hour in range(5):
                    barrier.wait(60)
                    mine.clock.now = MIDNIGHT + hour * HOUR + 59 * MINUTE
                    for _ in range(4):
                        started.extend(each.status for each in mine.scheduler.turn().started)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=schedule, args=(number,)) for number in range(1, pool + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with open_store(store_url) as store:
        fired = Day(store, store_url, MIDNIGHT).fired()
    assert fired == expected(timed, MIDNIGHT, MIDNIGHT + 4 * HOUR + 59 * MINUTE)
    assert Counter(started) == {StartStatus.CREATED: len(fired)}


def test_a_clock_that_jumps_starts_everything_once(day: Day) -> None:
    """B.2-20: an hour forward, an hour back, again and again; no moment is lost and none comes twice."""
    timed = workflows(8, day.chance)
    day.push(timed)
    highest = day.clock.now
    for _ in range(60):
        day.clock.now += day.chance.choice((-HOUR, -HOUR, HOUR, HOUR, MINUTE, 25 * MINUTE, 90 * MINUTE))
        highest = max(highest, day.clock.now)
        day.work()
    assert day.fired() == expected(timed, MIDNIGHT, highest)


def test_a_day_of_workflows_whose_scheduler_dies_every_hour(day: Day) -> None:
    """Each firing of 24 simulated hours happens exactly once; ``bench/day.py`` does it with 2,000 workflows."""
    chance = random.Random(7)
    until = MIDNIGHT + 24 * HOUR
    timed, watched = workflows(16, chance), watching(6, chance, MIDNIGHT, until)
    day.push([*timed, *watched])
    day.live(until, step=13 * MINUTE)
    assert day.deaths >= 20
    assert day.fired() == expected(timed, MIDNIGHT, until)
    assert [each for each in watched if not is_once(each, day.taken(each), until)] == []
    assert sum(len(day.taken(each)) for each in watched) > 40
