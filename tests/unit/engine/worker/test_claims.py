"""What a worker has in its hands, and what only the store believes to be there."""

from pathlib import Path

import pytest
from tests.faults.worker_pool import Errand

from calve.app import tools_on
from calve.engine import Outcome, State, StepStatus, WorkerRecord
from calve.engine.decisions import Transactions
from calve.engine.model import Task, TaskKind
from calve.engine.worker import ClaimedTasks, Slots
from calve.store import open_store

FIRST = Task(TaskKind.RUN, "r", "r", None, "w", 1, 0, 0)
SECOND = Task(TaskKind.RUN, "s", "s", None, "w", 1, 0, 0)


def test_a_task_that_is_unknown_twice_is_missed() -> None:
    """Once may be chance: the answer that brings it is on its way."""
    claimed = ClaimedTasks()
    claimed.add(FIRST)
    assert claimed.missed([FIRST, SECOND]) == []
    assert claimed.missed([FIRST, SECOND]) == [SECOND]


def test_only_steps_count_as_steps() -> None:
    """Neither runs that are moved, nor what was let go, nor hands that are merely kept free."""
    claimed = ClaimedTasks()
    step = Task(TaskKind.STEP, "t", "r", "t", "w", 1, 0, 0)
    claimed.add(FIRST)
    claimed.add(step)
    assert claimed.steps == 1
    claimed.remove(step)
    assert claimed.steps == 0


def test_a_task_that_has_come_meanwhile_is_not_missed() -> None:
    """Nor is one that was let go and taken off the record."""
    claimed = ClaimedTasks()
    assert claimed.missed([FIRST, SECOND]) == []
    claimed.add(FIRST)
    assert claimed.missed([FIRST]) == []
    claimed.remove(FIRST)
    assert claimed.missed([]) == []


def test_an_outcome_finds_an_attempt_that_another_worker_has_made(tmp_path: Path) -> None:
    """The run that this worker remembers is older than the attempt."""
    errand = Errand(f"sqlite:///{tmp_path}/calve.db", tmp_path)
    errand.begin(1, ("chain",))
    with open_store(errand.url) as store:
        ours, theirs = tools_on(store, errand.url), tools_on(store, errand.url)
        store.engine.register(WorkerRecord("w", "here", 1, 0, 0, 5))

        def claimed() -> Task:
            (task,) = store.engine.claim("w", ours.clock(), runs=1, steps=1)
            return task

        first = claimed()
        Transactions(ours).decide(first)
        Transactions(theirs).record(claimed(), Outcome(State.DONE))
        Transactions(ours).record(claimed(), Outcome(State.DONE))
        (second,) = store.engine.attempts(first.run_uuid, "poll")
    assert second.status is StepStatus.SUCCEEDED


@pytest.mark.parametrize(("asked", "got"), [(2, 2), (9, 3), (0, 0), (-1, 0)])
def test_as_many_are_reserved_as_there_are(asked: int, got: int) -> None:
    """Never more, and none for nothing."""
    slots = Slots(3)
    assert slots.reserve(asked) == got
    assert slots.free == 3 - got


def test_who_gives_the_first_one_back_ends_a_shortage() -> None:
    """Then someone has to look for work."""
    slots = Slots(2)
    assert not slots.release(0)
    slots.reserve(2)
    assert not slots.release(0)
    assert slots.release(1)
    assert not slots.release(1)
    assert slots.free == 2
