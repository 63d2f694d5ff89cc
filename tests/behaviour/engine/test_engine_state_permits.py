"""Which attempts may start beside each other, and who is woken, over every database."""

from dataclasses import replace

import pytest
from tests.behaviour.engine.values import attempt_of, loaded, new_id, pushed, registered, run_tasks, running, wanting

from calve.engine import Attempt, Changes, Event, Permit, Run, StepStatus, TagPermit, TaskKind
from calve.store import SqlEngineState

pytestmark = pytest.mark.each_store


def asking(engine: SqlEngineState, run: Run, *permits: Permit, priority: int = 0) -> tuple[Attempt, bool]:
    """Add an attempt that wants permits; tell whether it got them."""
    attempt = attempt_of(run, new_id())
    now = loaded(engine, run.uuid)
    admission = wanting(attempt, *permits, priority=priority)
    found = engine.commit(Changes(runs=[now], new_attempts=[attempt], admissions=[admission]))
    return attempt, attempt.uuid in found.admitted


def over(engine: SqlEngineState, attempt: Attempt, status: StepStatus = StepStatus.SUCCEEDED) -> None:
    """End an attempt."""
    engine.commit(Changes(runs=[loaded(engine, attempt.run_uuid)], attempts=[replace(attempt, status=status)]))


def runs_of(engine: SqlEngineState, count: int) -> list[Run]:
    """Start instances, each with nothing in the queue."""
    pushed(engine, strategy="PARALLEL")
    return [running(engine) for _ in range(count)]


def test_an_admitted_attempt_is_written_as_started(engine: SqlEngineState) -> None:
    """And its task is in the queue, or in the hands of the worker that it names."""
    (run,) = runs_of(engine, 1)
    worker = registered(engine)
    attempt = attempt_of(run)
    admission = wanting(attempt, Permit("workflow:daily", 1), owner=worker)
    found = engine.commit(Changes(runs=[run], new_attempts=[attempt], admissions=[admission]))
    assert found.admitted == {attempt.uuid}
    assert [(task.key, task.owner) for task in found.held] == [(attempt.uuid, worker)]
    assert engine.attempt(attempt.uuid) == admission.started


def test_an_attempt_without_room_waits(engine: SqlEngineState) -> None:
    """It is written as waiting, and nothing is put into the queue for it."""
    first, second = runs_of(engine, 2)
    assert asking(engine, first, Permit("p", 1))[1]
    waiting, is_admitted = asking(engine, second, Permit("p", 1))
    assert not is_admitted
    found = engine.attempt(waiting.uuid)
    assert found is not None
    assert found.status is StepStatus.WAITING_FOR_PERMITS
    assert engine.counts() == {TaskKind.RUN: 0, TaskKind.STEP: 1}


def test_every_permit_must_have_room(engine: SqlEngineState) -> None:
    """One that is full keeps the others from being taken."""
    runs = runs_of(engine, 4)
    assert asking(engine, runs[0], Permit("p", 2), Permit("q", 1))[1]
    assert not asking(engine, runs[1], Permit("p", 2), Permit("q", 1))[1]
    assert asking(engine, runs[2], Permit("p", 2))[1]
    assert not asking(engine, runs[3], Permit("p", 2))[1]


def test_many_are_admitted_in_one_commit(engine: SqlEngineState) -> None:
    """As many as there is room for, in their order; the rest waits and is woken as room comes."""
    (run,) = runs_of(engine, 1)
    attempts = [attempt_of(run, f"s{number}") for number in range(500)]
    admissions = [wanting(attempt, Permit("p", 20), Permit("tag:x", None)) for attempt in attempts]
    found = engine.commit(Changes(runs=[run], new_attempts=attempts, admissions=admissions))
    assert found.admitted == {attempt.uuid for attempt in attempts[:20]}
    assert engine.counts()[TaskKind.STEP] == 20


def test_whoever_ends_wakes_the_next_in_line(engine: SqlEngineState) -> None:
    """By priority and age, and only as many as there is room for."""
    runs = runs_of(engine, 5)
    attempts = [asking(engine, runs[number], Permit("p", 2))[0] for number in range(3)]
    asking(engine, runs[3], Permit("p", 2), priority=-1)
    asking(engine, runs[4], Permit("p", 2))
    assert run_tasks(engine) == set()
    over(engine, attempts[0])
    assert run_tasks(engine) == {runs[3].uuid}
    over(engine, attempts[1], StepStatus.USER_FAILED)
    assert run_tasks(engine) == {runs[3].uuid, runs[2].uuid}


def test_whoever_waited_gets_its_permit(engine: SqlEngineState) -> None:
    """Once woken it asks again; its age in the line is that of its first time."""
    first, second, third = runs_of(engine, 3)
    holding, _ = asking(engine, first, Permit("p", 1))
    waiting, _ = asking(engine, second, Permit("p", 1))
    asking(engine, third, Permit("p", 1))
    again = Changes(attempts=[waiting], admissions=[wanting(waiting, Permit("p", 1))])
    assert engine.commit(replace(again, runs=[loaded(engine, second.uuid)])).admitted == frozenset()
    over(engine, holding)
    assert run_tasks(engine) == {second.uuid}
    assert engine.commit(replace(again, runs=[loaded(engine, second.uuid)])).admitted == {waiting.uuid}
    found = engine.attempt(waiting.uuid)
    assert found is not None
    assert found.status is StepStatus.RUNNING
    over(engine, waiting)
    assert third.uuid in run_tasks(engine)


def test_the_next_step_takes_over_the_permit(engine: SqlEngineState) -> None:
    """What ends and what follows are written together: the one makes room for the other."""
    (run,) = runs_of(engine, 1)
    first, _ = asking(engine, run, Permit("p", 1))
    second = attempt_of(run, "second")
    found = engine.commit(
        Changes(
            runs=[loaded(engine, run.uuid)],
            attempts=[replace(first, status=StepStatus.SUCCEEDED)],
            new_attempts=[second],
            admissions=[wanting(second, Permit("p", 1))],
        )
    )
    assert found.admitted == {second.uuid}


def test_an_attempt_holds_its_permits_while_it_runs(engine: SqlEngineState) -> None:
    """Only when it leaves the states that hold them are they free."""
    first, second = runs_of(engine, 2)
    holding, _ = asking(engine, first, Permit("p", 1))
    asking(engine, second, Permit("p", 1))
    for status in (StepStatus.RUNNING, StepStatus.FINISHING):
        over(engine, holding, status)
        assert run_tasks(engine) == set()
    over(engine, holding, StepStatus.STOPPED)
    assert run_tasks(engine) == {second.uuid}


def test_an_attempt_that_is_stopped_while_it_waits_lets_others_pass(engine: SqlEngineState) -> None:
    """It had been woken for the permit that is free: now the next one is."""
    first, second, third = runs_of(engine, 3)
    holding, _ = asking(engine, first, Permit("p", 1))
    waiting, _ = asking(engine, second, Permit("p", 1))
    asking(engine, third, Permit("p", 1))
    over(engine, holding)
    assert run_tasks(engine) == {second.uuid}
    over(engine, waiting, StepStatus.STOPPED)
    assert third.uuid in run_tasks(engine)


def test_whoever_waits_for_something_else_blocks_nobody(engine: SqlEngineState) -> None:
    """The first in line that can have all its permits is woken, however many stand before it."""
    runs = runs_of(engine, 2)
    holding, _ = asking(engine, runs[0], Permit("p", 2), Permit("q", 1))
    other, _ = asking(engine, runs[0], Permit("p", 2))
    attempts = [attempt_of(runs[0], f"s{number}") for number in range(450)]
    blocked = [wanting(attempt, Permit("p", 2), Permit("q", 1)) for attempt in attempts]
    engine.commit(Changes(runs=[loaded(engine, runs[0].uuid)], new_attempts=attempts, admissions=blocked))
    asking(engine, runs[1], Permit("p", 2))
    over(engine, other)
    assert run_tasks(engine) == {runs[1].uuid}
    over(engine, holding)
    assert run_tasks(engine) == {runs[0].uuid, runs[1].uuid}


def test_many_are_woken_when_much_room_comes(engine: SqlEngineState) -> None:
    """More than one page of the line."""
    runs = runs_of(engine, 2)
    attempts = [attempt_of(runs[0], f"s{number}") for number in range(250)]
    admissions = [wanting(attempt, Permit("tag:x", None)) for attempt in attempts]
    engine.set_tag_permit("x", 0, 1)
    changes = Changes(runs=[runs[0]], new_attempts=attempts, admissions=admissions)
    assert engine.commit(changes).admitted == frozenset()
    asking(engine, runs[1], Permit("tag:x", None))
    assert run_tasks(engine) == set()
    engine.set_tag_permit("x", 250, 2)
    assert run_tasks(engine) == {runs[0].uuid}
    assert engine.delete_tag_permit("x")
    assert run_tasks(engine) == {runs[0].uuid, runs[1].uuid}


def test_a_tag_may_be_limited(engine: SqlEngineState) -> None:
    """Those that run already count; without a limit, nobody waits."""
    runs = runs_of(engine, 3)
    assert asking(engine, runs[0], Permit("tag:x", None))[1]
    assert asking(engine, runs[1], Permit("tag:x", None))[1]
    assert engine.tag_permits() == []
    engine.set_tag_permit("x", 2, 5)
    engine.set_tag_permit("a", 1, 5)
    assert engine.tag_permits() == [TagPermit("a", 1, 0), TagPermit("x", 2, 2)]
    assert not asking(engine, runs[2], Permit("tag:x", None))[1]
    assert not engine.delete_tag_permit("none")


def test_what_happened_to_an_admission_is_recorded(engine: SqlEngineState) -> None:
    """That it waits, once, or that it runs."""
    first, second = runs_of(engine, 2)
    seen = engine.events()[-1].seq

    def ask(run: Run, attempt: Attempt, before: str, *, is_new: bool) -> None:
        events = tuple(
            Event("STEP", run.uuid, "daily", 1, 1, 5, "s", 1, before, after)
            for after in (StepStatus.WAITING_FOR_PERMITS, StepStatus.RUNNING)
        )
        admission = replace(wanting(attempt, Permit("p", 1)), events=events)
        changes = Changes(runs=[loaded(engine, run.uuid)], admissions=[admission])
        (changes.new_attempts if is_new else changes.attempts).append(attempt)
        engine.commit(changes)

    ask(first, attempt_of(first), "CREATED", is_new=True)
    waiting = attempt_of(second)
    ask(second, waiting, "CREATED", is_new=True)
    ask(second, waiting, "WAITING_FOR_PERMITS", is_new=False)
    found = [(event.run_uuid, event.after) for event in engine.events(after=seen)]
    assert found == [(first.uuid, "RUNNING"), (second.uuid, "WAITING_FOR_PERMITS")]


def test_an_admission_without_permits_is_admitted(engine: SqlEngineState) -> None:
    """There is nothing that it could wait for."""
    (run,) = runs_of(engine, 1)
    assert asking(engine, run)[1]


def test_an_attempt_that_goes_back_to_waiting_gives_its_permits_back(engine: SqlEngineState) -> None:
    """What it held is free; what it waits for, it goes on waiting for."""
    first, second = runs_of(engine, 2)
    holding, _ = asking(engine, first, Permit("p", 1))
    asking(engine, second, Permit("p", 1))
    over(engine, holding, StepStatus.WAITING_FOR_PERMITS)
    assert run_tasks(engine) == {second.uuid}


def following(engine: SqlEngineState, ended: Attempt, *permits: Permit) -> tuple[Attempt, bool]:
    """End an attempt and let the next step of its run ask, in one commit; tell whether that got its permits."""
    run = loaded(engine, ended.run_uuid)
    attempt = attempt_of(run, new_id())
    changes = Changes(
        runs=[run],
        attempts=[replace(ended, status=StepStatus.SUCCEEDED)],
        new_attempts=[attempt],
        admissions=[wanting(attempt, *permits)],
    )
    return attempt, attempt.uuid in engine.commit(changes).admitted


def test_a_step_takes_over_the_permits_of_the_one_before(engine: SqlEngineState) -> None:
    """All of them, so that nobody else gets in between, and all are free when the last step ends."""
    first, second = runs_of(engine, 2)
    permits = (Permit("workflow:daily", 1), Permit("tree:x", 1))
    attempt, _ = asking(engine, first, *permits)
    for _ in range(3):
        attempt, is_admitted = following(engine, attempt, *permits)
        assert is_admitted
    assert not asking(engine, second, *permits)[1]
    attempt, is_admitted = following(engine, attempt, *permits)
    assert is_admitted
    over(engine, attempt)
    assert run_tasks(engine) == {second.uuid}


def test_a_step_after_one_that_held_nothing_asks_like_any_other(engine: SqlEngineState) -> None:
    """It has nothing to take over."""
    first, second = runs_of(engine, 2)
    attempt = attempt_of(first)
    engine.commit(Changes(runs=[loaded(engine, first.uuid)], new_attempts=[attempt]))
    asking(engine, second, Permit("p", 1))
    assert not following(engine, attempt, Permit("p", 1))[1]


def test_a_lowered_limit_holds_for_the_steps_that_follow(engine: SqlEngineState) -> None:
    """Not before some have ended for good."""
    first, second = runs_of(engine, 2)
    one, _ = asking(engine, first, Permit("p", 2))
    asking(engine, second, Permit("p", 2))
    assert not following(engine, one, Permit("p", 1))[1]
