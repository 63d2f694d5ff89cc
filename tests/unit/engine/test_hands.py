"""What a worker has in its hands, and what only the store believes to be there."""

from pathlib import Path

from tests.faults.crew import Errand

from calve.app import tools_on
from calve.engine import Outcome, State, StepStatus, WorkerRecord
from calve.engine.hands import Hands
from calve.engine.model import Task, TaskKind
from calve.engine.turns import Turns
from calve.store import open_store

FIRST = Task(TaskKind.RUN, "r", "r", None, "w", 1, 0, 0)
SECOND = Task(TaskKind.RUN, "s", "s", None, "w", 1, 0, 0)


def test_a_task_that_is_unknown_twice_is_missed() -> None:
    """Once may be chance: the answer that brings it is on its way."""
    hands = Hands()
    hands.take(FIRST)
    assert hands.missed([FIRST, SECOND]) == []
    assert hands.missed([FIRST, SECOND]) == [SECOND]


def test_only_steps_count_as_steps() -> None:
    """Neither runs that are moved, nor what was let go, nor hands that are merely kept free."""
    hands = Hands()
    step = Task(TaskKind.STEP, "t", "r", "t", "w", 1, 0, 0)
    hands.take(FIRST)
    hands.take(step)
    assert hands.steps == 1
    hands.let_go(step)
    assert hands.steps == 0


def test_a_task_that_has_come_meanwhile_is_not_missed() -> None:
    """Nor is one that was let go and taken off the record."""
    hands = Hands()
    assert hands.missed([FIRST, SECOND]) == []
    hands.take(FIRST)
    assert hands.missed([FIRST]) == []
    hands.let_go(FIRST)
    assert hands.missed([]) == []


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
        Turns(ours).move_run(first)
        Turns(theirs).record(claimed(), Outcome(State.DONE))
        Turns(ours).record(claimed(), Outcome(State.DONE))
        (second,) = store.engine.attempts(first.run_uuid, "poll")
    assert second.status is StepStatus.SUCCEEDED
