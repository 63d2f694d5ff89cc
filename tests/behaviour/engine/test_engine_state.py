"""What a commit writes, when it refuses to, and what can be read, over every database."""

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.behaviour.engine.values import (
    NOW,
    attempt_of,
    ended,
    fresh,
    iteration,
    loaded,
    new_id,
    pushed,
    refused,
    registered,
    run_tasks,
    running,
    started,
    stolen,
)
from tests.engines import Playground

from calve import failpoints
from calve.definition import ITERATIONS
from calve.definition.params import InitiatorType
from calve.engine import (
    STEP_EVENT,
    Action,
    Changes,
    Children,
    Committed,
    Event,
    Initiator,
    LogChunk,
    NewTask,
    PassDown,
    Pending,
    Restart,
    Run,
    RunPolicy,
    RunStatus,
    StepStatus,
    Task,
    TaskKind,
)
from calve.engine.instances import RunState
from calve.errors import Conflict, LeaseLost, StoreError
from calve.store import SqlEngineState, open_store
from calve.store.engine import params as param_sets
from calve.store.tables import param_set, run as run_table

pytestmark = pytest.mark.each_store

ODD = "é \0 \ud800 \U0001f40d"
"""What programs print and people write."""


def test_a_run_is_read_as_it_was_written(engine: SqlEngineState) -> None:
    """Every field comes back, also those that hold odd text."""
    pushed(engine)
    run = started(
        engine,
        initiator=Initiator(InitiatorType.TIME, "ann", "Europe/Paris", {"a": [1, None]}),
        policy=RunPolicy.RESTART_FROM_SPECIFIC,
        properties={"owner": "me"},
        run_params={"p": {"type": "STRING", "value": ODD}},
        params={"q": {"value": 1.5}},
        restart=Restart(("a", "b"), (1, 2), {"a": {"x": 1}}, ("c",), {"b": "u"}, is_latest=True, keep=("d",)),
        carried={"a": "u1"},
        request_id="r1",
        tags=("x", "y"),
        action=Pending(Action.STOP, "ann", 7, ODD, is_upstream=True, params={"why": ODD}),
        timeline=({"type": "LOG", "message": ODD},),
        depth=2,
        priority=-3,
        timeout_at=NOW + 5,
    ).run
    assert engine.run("daily", 1) == engine.run_by_request("daily", "r1") == loaded(engine, run.uuid) == run
    changed = replace(
        run,
        status=RunStatus.FAILED,
        run_status=RunStatus.FAILED,
        params={"q": {"value": 2}},
        carried={},
        action=None,
        message="no\nway",
        timeline=(),
        started_at=1,
        ended_at=2,
        timeout_at=None,
        is_blocking=True,
        priority=1,
    )
    engine.commit(Changes(runs=[changed]))
    assert loaded(engine, run.uuid) == replace(changed, seq=1)


def test_an_attempt_is_read_as_it_was_written(engine: SqlEngineState) -> None:
    """Every field comes back."""
    pushed(engine)
    run = started(engine).run
    attempt = attempt_of(
        run,
        params={"p": {"value": ODD}},
        artifacts={"a": {"b": [1]}},
        edges={"next": True},
        retries={"error": 2},
        times={"create": 5},
        timeline=({"message": ODD},),
        dependencies=({"signal": 1},),
        tags=("t",),
        action=Pending(Action.SKIP),
        due_at=4,
        timeout_at=5,
        worker="w",
        is_leaf=False,
    )
    engine.commit(Changes(runs=[run], new_attempts=[attempt]))
    assert engine.attempt(attempt.uuid) == attempt
    changed = replace(attempt, status=StepStatus.SUCCEEDED, params={}, action=None, ended_at=9, is_superseded=True)
    engine.commit(Changes(runs=[loaded(engine, run.uuid)], attempts=[changed]))
    assert engine.attempt(attempt.uuid) == changed
    assert engine.attempt("none") is None


def param(name: str, definition: dict[str, Any], source: str, **more: Any) -> dict[str, Any]:
    """Make a param as it is stored."""
    made = {"name": name, "definition": {**definition, "meta": {"source": source}}, "evaluated_time": 5, "note": None}
    return {name: made | more}


def varied(own: str, number: int) -> dict[str, Any]:
    """Make params of every kind; those of two instances differ in their results, and in what they were given."""
    return {
        **param("RUN_TS", {"type": "LONG", "expression": "now()"}, "SYSTEM_DEFAULT", result=number),
        **param("late", {"type": "STRING", "expression": "x"}, "DEFINITION", result=ODD, evaluated_time=5 + number),
        **param("step_instance_uuid", {"type": "STRING", "expression": "u"}, "SYSTEM_DEFAULT", result=own),
        **param("early", {"type": "STRING", "expression": "x"}, "DEFINITION", result="", evaluated_time=number),
        **param("day", {"type": "LONG", "value": number}, "LAUNCH", result=number),
        **param("is_full", {"type": "BOOLEAN", "value": True}, "LAUNCH", result=True),
        **param("rows", {"type": "DOUBLE", "value": 1}, "OUTPUT_PARAMETER", result=1.0),
        **param("names", {"type": "STRING_ARRAY", "value": ["a"]}, "LAUNCH", result=["a"]),
        **param("text", {"type": "STRING", "value": f"{number} $$"}, "RESTART", result=f"{number} $"),
        **param("map", {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1}}}, "DEFINITION", result={"a": 1}),
        **param("noted", {"type": "LONG", "value": 1}, "DEFINITION", result=1, note=["secret", "x"]),
        **param("unevaluated", {"type": "LONG", "expression": "1"}, "DEFINITION", evaluated_time=None),
        **param("null", {"type": "STRING", "expression": "null"}, "DEFINITION", result=None),
        "foreign": {"value": ODD},
        "named": {**param("other", {"type": "LONG", "value": 1}, "DEFINITION", result=1)["other"]},
    }


def sets(engine: SqlEngineState) -> int:
    """Count the sets of definitions that are kept."""
    with engine._transactions.read() as connection:
        return connection.scalar(select(func.count()).select_from(param_set)) or 0


def test_params_of_every_kind_come_back(engine: SqlEngineState) -> None:
    """With their definitions, results and times, in their order; no matter what is kept once, and what in the row."""
    pushed(engine)
    run = started(engine).run
    written = replace(run, params=varied(run.uuid, 7))
    engine.commit(Changes(runs=[written]))
    param_sets._read.clear()
    found = loaded(engine, run.uuid)
    assert found == replace(written, seq=1)
    assert list(found.params) == list(written.params)
    assert [type(found.params[name]["result"]) for name in ("is_full", "rows")] == [bool, float]
    child = iteration(run, attempt_of(run), 1)
    attempt = attempt_of(child, params=varied("another", 8))
    engine.commit(Changes(runs=[found], new_runs=[child], new_attempts=[attempt]))
    assert engine.attempt(attempt.uuid) == attempt
    assert engine.child_params(child.workflow_id, "merge", "day") == {1: attempt.params["day"]}


def test_definitions_of_params_are_kept_once(engine: SqlEngineState) -> None:
    """However many instances and attempts there are, and by whomever they are written."""
    pushed(engine)
    other = SqlEngineState(
        engine._transactions.__class__(engine._transactions._database, engine._transactions.notifier)
    )
    for number in range(3):
        run = started(engine).run
        engine.commit(Changes(runs=[replace(run, params=varied(run.uuid, number))]))
        later = loaded(other, run.uuid)
        attempt = attempt_of(run, params=varied("x", number))
        other.commit(Changes(runs=[later], new_attempts=[attempt]))
    assert sets(engine) == 1


def test_a_row_holds_the_result_of_a_default_param_only(engine: SqlEngineState) -> None:
    """Not its definition, which may be long."""
    pushed(engine)
    run = started(engine).run
    default = param("RUN_TS", {"type": "LONG", "expression": "now() " * 100}, "SYSTEM_DEFAULT", result=1)
    engine.commit(Changes(runs=[replace(run, params=default)]))
    with engine._transactions.read() as connection:
        (kept,) = connection.scalars(select(run_table.c.params))
    assert len(kept) < 50


def test_definitions_that_were_rolled_back_are_kept_the_next_time(engine: SqlEngineState) -> None:
    """A set that a refused transaction wrote is not there."""
    pushed(engine)
    run = started(engine).run
    written = replace(run, params=varied(run.uuid, 7))
    late = replace(started(engine).run, seq=9)
    attempt = attempt_of(run, params=varied("x", 7))
    with pytest.raises(Conflict):
        engine.commit(Changes(runs=[written, late], new_attempts=[attempt]))
    assert sets(engine) == 0
    param_sets._read.clear()
    engine.commit(Changes(runs=[written], new_attempts=[attempt]))
    assert loaded(engine, run.uuid).params == written.params


@pytest.mark.parametrize("times", [{"create": 5, "start": 4, "end": 9_000_000}, {"someday": 3}, {}])
def test_the_times_of_an_attempt_come_back(engine: SqlEngineState, times: dict[str, int]) -> None:
    """Those that every attempt has, and any other."""
    pushed(engine)
    run = started(engine).run
    attempt = attempt_of(run, times=times)
    engine.commit(Changes(runs=[run], new_attempts=[attempt]))
    assert engine.attempt(attempt.uuid) == attempt


def test_text_that_no_database_holds_is_mended(engine: SqlEngineState) -> None:
    """A NUL or half a character in a message or a log is replaced; the rest stays."""
    pushed(engine)
    run = started(engine, message=ODD).run
    attempt = attempt_of(run)
    engine.commit(Changes(runs=[run], new_attempts=[attempt], logs=[LogChunk(attempt.uuid, 0, ODD)]))
    mended = "é \ufffd ? \U0001f40d"
    assert loaded(engine, run.uuid).message == mended
    assert engine.log(attempt.uuid) == [LogChunk(attempt.uuid, 0, mended)]


def test_a_run_that_has_changed_is_not_written(engine: SqlEngineState) -> None:
    """Nothing of the changes is, neither run, attempt, task nor event."""
    pushed(engine)
    run = running(engine)
    engine.commit(Changes(runs=[run]))
    seen = engine.events()
    attempt = attempt_of(run)
    event = Event("STEP", run.uuid, "daily", 1, 1, NOW)
    late = Changes(runs=[run], new_attempts=[attempt], tasks=[NewTask(TaskKind.RUN, run.uuid)], events=[event])
    refused(engine, late, Conflict)
    assert engine.attempt(attempt.uuid) is None
    assert engine.events() == seen
    assert run_tasks(engine) == set()
    assert loaded(engine, run.uuid).seq == 1


def test_one_changed_run_among_many_refuses_all(engine: SqlEngineState) -> None:
    """All are written, or none."""
    pushed(engine, strategy="PARALLEL")
    runs = [started(engine).run for _ in range(3)]
    engine.commit(Changes(runs=[runs[1]]))
    refused(engine, Changes(runs=runs), Conflict)
    assert [loaded(engine, run.uuid).seq for run in runs] == [0, 1, 0]


def test_an_attempt_that_is_not_there_cannot_change(engine: SqlEngineState) -> None:
    """It may have been deleted with its workflow."""
    pushed(engine)
    run = started(engine).run
    refused(engine, Changes(runs=[run], attempts=[attempt_of(run)]), Conflict)
    assert loaded(engine, run.uuid).seq == 0


def _holding(field: str, run: Run, tasks: list[Task]) -> Changes:
    return Changes(runs=[run], done=tasks) if field == "done" else Changes(runs=[run], held=tasks)


@pytest.mark.parametrize("field", ["done", "held"])
def test_a_task_that_is_lost_refuses_everything(engine: SqlEngineState, field: str) -> None:
    """Key, owner and generation must all be right."""
    pushed(engine)
    run = started(engine).run
    (task,) = engine.claim(registered(engine), NOW, runs=1, steps=0)
    for wrong in (stolen(task), replace(task, owner="other"), replace(task, key=new_id())):
        refused(engine, _holding(field, run, [task, wrong]), LeaseLost)
    assert loaded(engine, run.uuid).seq == 0
    engine.commit(_holding(field, run, [task]))
    assert engine.counts() == {TaskKind.RUN: int(field == "held"), TaskKind.STEP: 0}


def test_a_task_that_is_done_is_gone(engine: SqlEngineState) -> None:
    """It cannot be given back twice."""
    pushed(engine)
    started(engine)
    tasks = engine.claim(registered(engine), NOW, runs=1, steps=0)
    engine.commit(Changes(done=tasks))
    refused(engine, Changes(done=tasks), LeaseLost)
    assert engine.counts()[TaskKind.RUN] == 0


def test_a_task_that_was_called_for_meanwhile_is_done_again(engine: SqlEngineState) -> None:
    """Whoever gives it back does not know of the call; so it is free, and due."""
    pushed(engine)
    run = started(engine).run
    worker = registered(engine)
    tasks = engine.claim(worker, NOW, runs=1, steps=0)
    engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, run.uuid, due_at=NOW)]))
    engine.commit(Changes(done=tasks))
    (again,) = engine.claim(worker, NOW, runs=1, steps=0)
    assert (again.key, again.generation, again.wakes) == (run.uuid, 2, 1)
    engine.commit(Changes(done=[again]))
    assert engine.counts()[TaskKind.RUN] == 0


def test_a_task_may_be_done_and_put_off_at_once(engine: SqlEngineState) -> None:
    """A run that polls gives its task back and leaves one for later."""
    pushed(engine)
    run = started(engine).run
    worker = registered(engine)
    done = engine.claim(worker, NOW, runs=1, steps=0)
    engine.commit(Changes(done=done, tasks=[NewTask(TaskKind.RUN, run.uuid, due_at=NOW + 50)]))
    assert engine.claim(worker, NOW, runs=1, steps=0) == []
    assert engine.next_due(NOW) == 50
    assert len(engine.claim(worker, NOW + 50, runs=1, steps=0)) == 1


def test_a_task_can_be_held_from_the_start(engine: SqlEngineState) -> None:
    """Its worker need not claim it; if it was there already, whoever has it keeps it."""
    pushed(engine)
    run = running(engine)
    worker, other = registered(engine), registered(engine)
    attempt = attempt_of(run)
    new = NewTask(TaskKind.STEP, run.uuid, attempt.uuid, owner=worker)
    (held,) = engine.commit(Changes(runs=[run], new_attempts=[attempt], tasks=[new])).held
    assert (held.key, held.owner, held.generation, held.wakes) == (attempt.uuid, worker, 1, 0)
    assert engine.claim(other, NOW, runs=9, steps=9) == []
    assert engine.commit(Changes(tasks=[replace(new, owner=other)])).held == ()
    engine.commit(Changes(held=[held]))
    free = NewTask(TaskKind.RUN, run.uuid)
    engine.commit(Changes(tasks=[free]))
    assert engine.commit(Changes(tasks=[replace(free, owner=worker)])).held == ()
    assert [task.key for task in engine.claim(other, NOW, runs=9, steps=9)] == [run.uuid]


def test_a_run_and_its_newest_attempts_are_loaded(engine: SqlEngineState) -> None:
    """Of each step the newest, in the order of the workflow; those of earlier runs where they are carried over."""
    pushed(engine)
    first = started(engine).run
    kept, other = (attempt_of(first, step, step_instance_id=number) for step, number in (("kept", 2), ("other", 3)))
    engine.commit(Changes(runs=[first], new_attempts=[kept, other]))
    run = fresh(instance_id=9, carried={"kept": kept.uuid, "other": other.uuid})
    old = attempt_of(run, "other", step_instance_id=3)
    new = replace(old, uuid=new_id(), attempt_id=2)
    begin = attempt_of(run, "begin")
    engine.commit(Changes(new_runs=[run], new_attempts=[new, old, begin]))
    found = engine.load(run.uuid)
    assert found is not None
    assert found.attempts == (begin, kept, new)
    assert engine.attempts(run.uuid, "other") == [old, new]
    assert {each.uuid for each in engine.attempts(run.uuid)} == {old.uuid, new.uuid, begin.uuid}
    assert engine.load("none") is None


def test_a_new_run_takes_the_place_of_the_earlier_ones(engine: SqlEngineState) -> None:
    """Only the latest counts, and an earlier one that is written late is refused."""
    pushed(engine)
    parent = running(engine)
    loop = attempt_of(parent, "loop")
    first = iteration(parent, loop, 1, status=RunStatus.FAILED)
    second = replace(first, uuid=new_id(), run_id=2, status=RunStatus.SUCCEEDED)
    engine.commit(Changes(new_runs=[first]))
    engine.commit(Changes(new_runs=[second]))
    assert engine.runs(first.workflow_id, 1) == [second, replace(first, is_latest=False, seq=1)]
    assert engine.run(first.workflow_id, 1) == second
    assert engine.run(first.workflow_id, 1, 1) == replace(first, is_latest=False, seq=1)
    assert engine.run(first.workflow_id, 2) is None
    assert engine.latest_inline(first.workflow_id) == [second]
    assert engine.latest_inline(first.workflow_id, after=1) == []
    refused(engine, Changes(runs=[first]), Conflict)


def test_the_newest_attempt_of_a_step_is_found_over_all_runs(engine: SqlEngineState) -> None:
    """The latest run that has one counts."""
    pushed(engine)
    first = started(engine).run
    attempts = [attempt_of(first, attempt_id=number) for number in (1, 2)]
    engine.commit(Changes(runs=[first], new_attempts=attempts))
    second = replace(first, uuid=new_id(), run_id=2)
    engine.commit(Changes(new_runs=[second]))
    assert engine.newest_attempt("daily", 1, "merge") == attempts[1]
    again = attempt_of(second)
    engine.commit(Changes(new_attempts=[again]))
    assert engine.newest_attempt("daily", 1, "merge") == again
    assert engine.newest_attempt("daily", 1, "other") is None


def test_children_are_counted_and_listed(engine: SqlEngineState) -> None:
    """By the latest run of each, page by page, by status."""
    pushed(engine)
    parent = running(engine)
    loop = attempt_of(parent, "loop")
    statuses = [*RunStatus, RunStatus.FAILED]
    children = [iteration(parent, loop, number + 1, status=status) for number, status in enumerate(statuses)]
    again = replace(children[-1], uuid=new_id(), run_id=2, status=RunStatus.SUCCEEDED)
    engine.commit(Changes(new_runs=children))
    engine.commit(Changes(new_runs=[again]))
    assert engine.children(loop.uuid) == Children(active=3, failed=1, timed_out=1, stopped=1)
    latest = [*children[:-1], again]
    assert engine.child_runs(loop.uuid) == latest
    assert engine.child_runs(loop.uuid, after=2, limit=3) == latest[2:5]
    assert engine.child_runs(loop.uuid, statuses=[RunStatus.SUCCEEDED]) == [children[3], again]
    assert engine.children("none") == Children()


def test_a_param_is_gathered_over_iterations(engine: SqlEngineState) -> None:
    """From the newest attempt of each, or from the one that it carries over; who has none is left out."""
    pushed(engine)
    parent = running(engine)
    loop = attempt_of(parent, "loop")
    old = attempt_of(parent, "sum", params={"total": {"value": 40}})
    runs = [iteration(parent, loop, number) for number in (1, 2, 3)]
    carrying = iteration(parent, loop, 4, carried={"sum": old.uuid})
    attempts = [attempt_of(runs[0], "sum", attempt_id=number, params={"total": {"value": number}}) for number in (1, 2)]
    without = attempt_of(runs[1], "sum", params={"else": {}})
    engine.commit(Changes(new_runs=[*runs, carrying], new_attempts=[*attempts, without, old]))
    assert engine.child_params(runs[0].workflow_id, "sum", "total") == {1: {"value": 2}, 4: {"value": 40}}


def test_an_action_is_passed_down(engine: SqlEngineState) -> None:
    """To every child that is not over and has none yet; each is woken."""
    pushed(engine)
    parent = running(engine)
    loop = attempt_of(parent, "loop")
    asked = Pending(Action.KILL, "bob", 3)
    stop = Pending(Action.STOP, "ann", 4, is_upstream=True)
    live, over, busy = (
        iteration(parent, loop, 1),
        iteration(parent, loop, 2, status=RunStatus.FAILED),
        iteration(parent, loop, 3, action=asked),
    )
    born = iteration(parent, loop, 4)
    engine.commit(Changes(new_runs=[live, over, busy]))
    engine.commit(Changes(runs=[parent], new_runs=[born], passed_down=[PassDown(loop.uuid, stop)]))
    assert [run.action for run in engine.child_runs(loop.uuid)] == [stop, None, asked, stop]
    assert run_tasks(engine) == {live.uuid, born.uuid}
    refused(engine, Changes(runs=[live]), Conflict)


def test_a_tree_is_rolled_up(engine: SqlEngineState) -> None:
    """Leaves by the status of their newest attempts, over all levels."""
    pushed(engine)
    run = running(engine)
    loop = attempt_of(run, "loop", is_leaf=False)
    child = iteration(run, loop, 1)
    attempts = [
        loop,
        attempt_of(child, status=StepStatus.USER_FAILED, is_superseded=True),
        attempt_of(child, attempt_id=2),
        attempt_of(child, "other"),
        attempt_of(run, "last", status=StepStatus.SUCCEEDED),
    ]
    engine.commit(Changes(runs=[run], new_runs=[child], new_attempts=attempts))
    assert engine.rollup(run.uuid) == {StepStatus.RUNNING: 2, StepStatus.SUCCEEDED: 1}
    assert engine.rollup("none") == {}


def test_what_takes_too_long_is_found(engine: SqlEngineState) -> None:
    """Runs past their time, and runs of attempts past theirs, unless they are over."""
    pushed(engine, strategy="PARALLEL")
    late = started(engine, timeout_at=NOW).run
    started(engine, timeout_at=NOW + 1)
    over = started(engine, timeout_at=NOW).run
    ended(engine, over, RunStatus.FAILED)
    slow, fine = started(engine).run, started(engine).run
    attempts = [
        attempt_of(slow, timeout_at=NOW - 1),
        attempt_of(fine, timeout_at=NOW - 1, status=StepStatus.SUCCEEDED),
        attempt_of(over, timeout_at=NOW - 1),
    ]
    engine.commit(Changes(new_attempts=attempts))
    assert sorted(engine.overdue(NOW)) == sorted([late.uuid, slow.uuid])
    assert len(engine.overdue(NOW, limit=1)) == 1
    assert engine.overdue(NOW - 2) == []


def test_instances_are_listed_newest_first(engine: SqlEngineState) -> None:
    """The latest run of each, without iterations, by workflow and status, page by page."""
    pushed(engine, strategy="PARALLEL")
    pushed(engine, "other")
    runs = [started(engine, created_at=NOW + number // 2).run for number in range(6)]
    other = started(engine, "other", created_at=NOW - 1).run
    engine.commit(Changes(new_runs=[iteration(runs[0], attempt_of(runs[0]), 1)]))
    ended(engine, runs[2], RunStatus.FAILED)
    newest = sorted(runs, key=lambda run: (run.created_at, run.uuid), reverse=True)
    found = engine.instances()
    assert [run.uuid for run in found] == [run.uuid for run in (*newest, other)]
    last = found[3]
    assert engine.instances(before=(last.created_at, last.uuid), limit=2) == found[4:6]
    assert engine.instances(workflow_id="other") == [other]
    assert [run.uuid for run in engine.instances(statuses=[RunStatus.FAILED])] == [runs[2].uuid]


def test_events_come_in_order(engine: SqlEngineState) -> None:
    """All of them, those of a run, or those of a tree; from where a reader left off."""
    pushed(engine)
    run = running(engine)
    child = iteration(run, attempt_of(run), 1)
    seen = engine.events()
    assert [(event.after, event.instance_id) for event in seen] == [("CREATED", 1)]
    events = [
        Event("STEP", run.uuid, "daily", 1, 1, NOW, "merge", 2, "CREATED", StepStatus.RUNNING, {"x": ODD}),
        Event("STEP", child.uuid, child.workflow_id, 1, 1, NOW),
    ]
    engine.commit(Changes(runs=[run], new_runs=[child], events=events[:1]))
    engine.commit(Changes(events=events[1:]))
    found = engine.events(after=seen[-1].seq)
    assert [replace(event, seq=0) for event in found] == events
    assert found[0].seq < found[1].seq
    assert engine.events(root_uuid=run.uuid) == [*seen, *found]
    assert engine.events(run_uuid=child.uuid) == found[1:]
    assert engine.events(after=found[0].seq, root_uuid=run.uuid, limit=1) == found[1:]
    assert engine.events(limit=1) == seen


@pytest.mark.parametrize("status", [*RunStatus, *StepStatus])
def test_an_event_keeps_its_statuses(engine: SqlEngineState, status: RunStatus | StepStatus) -> None:
    """Each of them, in whatever form the row holds it."""
    pushed(engine)
    run = running(engine)
    event = Event(STEP_EVENT, run.uuid, "daily", 1, 1, NOW, "merge", 1, status, status)
    engine.commit(Changes(events=[event]))
    assert [replace(found, seq=0) for found in engine.events(after=1)] == [event]


def test_the_events_of_a_tree_come_page_by_page(engine: SqlEngineState) -> None:
    """Those of the root and of its iterations, as they were written."""
    pushed(engine)
    run = running(engine)
    child = iteration(run, attempt_of(run), 1)
    engine.commit(Changes(runs=[run], new_runs=[child]))
    seen = engine.last_event()
    turns = [run, child, child, run, run, child]
    for each in turns:
        engine.commit(Changes(events=[Event(STEP_EVENT, each.uuid, each.workflow_id, 1, 1, NOW, "merge", 1)]))
    found: list[str] = []
    while page := engine.events(after=seen, root_uuid=run.uuid, limit=2):
        found += [event.run_uuid for event in page]
        seen = page[-1].seq
    assert found == [each.uuid for each in turns]


def test_a_log_is_kept_piece_by_piece(engine: SqlEngineState) -> None:
    """The same piece may come twice; another one of its number comes last."""
    pieces = [LogChunk("a", number, f"line {number}\n") for number in range(3)]
    for piece in (*pieces, pieces[1]):
        engine.append_log(piece)
    engine.commit(Changes(logs=[pieces[2]]))
    assert engine.log("a") == pieces
    assert engine.log("a", after=1) == pieces[2:]
    assert engine.log("b") == []
    engine.append_log(LogChunk("a", 1, "other"))
    assert engine.log("a", after=2) == [LogChunk("a", 3, "other")]


def test_thousands_of_iterations_come_in_one_commit(engine: SqlEngineState) -> None:
    """Runs, attempts, tasks and events alike, also more than a statement takes values."""
    pushed(engine)
    parent = running(engine)
    loop = attempt_of(parent, "loop")
    runs = [iteration(parent, loop, number) for number in range(1, 6_001)]
    attempts = [attempt_of(run) for run in runs]
    tasks = [NewTask(TaskKind.STEP, each.run_uuid, each.uuid) for each in attempts]
    engine.commit(Changes(runs=[parent], new_runs=runs, new_attempts=attempts, tasks=tasks))
    over = [replace(each, status=StepStatus.SUCCEEDED) for each in attempts]
    engine.commit(Changes(attempts=over, runs=runs))
    assert engine.children(loop.uuid).active == 6_000
    assert engine.counts()[TaskKind.STEP] == 6_000
    assert engine.rollup(parent.uuid) == {StepStatus.SUCCEEDED: 6_000}


def test_the_maximum_number_of_iterations_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit makes a bounded number of runs, and what stays in memory does not grow with the loop."""
    url = f"sqlite:///{tmp_path}/calve.db"
    with open_store(url) as store:
        playground = Playground(store, url, tmp_path / "attempts")
        playground.push(f"""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 500
        ranges: {{i: {{from: 0, to: {ITERATIONS}}}}}
        jobs:
          - job: {{id: a, type: NoOp}}
""")
        made: list[int] = []
        alive: list[int] = []
        commit = playground.state.commit

        def counting(changes: Changes) -> Committed:
            made.append(len(changes.new_runs))
            if len(made) % 10 == 0:
                alive.append(sum(type(each) is RunState for each in gc.get_objects()))
            return commit(changes)

        monkeypatch.setattr(playground.state, "commit", counting)
        run = playground.start()
        assert run.status is RunStatus.SUCCEEDED
        assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: ITERATIONS}
        assert sum(made) == ITERATIONS
        assert max(made) <= 500
        assert max(alive) < 1_100
        playground.check()


def test_the_failpoints_stand_around_every_commit(engine: SqlEngineState) -> None:
    """Before it nothing is written, after it everything is."""
    pushed(engine)
    run = started(engine).run
    try:
        failpoints.arm("store.engine.before_commit:1:error")
        with pytest.raises(failpoints.FailpointReached):
            engine.commit(Changes(runs=[run]))
        assert loaded(engine, run.uuid).seq == 0
        failpoints.arm("store.engine.after_commit:1:error")
        with pytest.raises(failpoints.FailpointReached):
            engine.commit(Changes(runs=[run]))
        assert loaded(engine, run.uuid).seq == 1
    finally:
        failpoints.arm(None)


def test_a_run_number_is_given_once(engine: SqlEngineState) -> None:
    """The database itself keeps two runs of one number apart."""
    pushed(engine)
    run = started(engine).run
    with pytest.raises(StoreError):
        engine.commit(Changes(new_runs=[replace(run, uuid=new_id())]))
