"""Signals, on both databases: announced once, waited for without polling, joined, sent, traced."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.engines import USER_ERROR, Playground

from calve.definition.model.triggers import Operator
from calve.engine import Outcome, RunStatus, State, StepStatus
from calve.engine.facts import parsed
from calve.engine.model import Run, RunPolicy
from calve.engine.signals import Announced, Announcement, Told, Wanted
from calve.engine.views.documents import attempt_json
from calve.errors import RequestInvalid, SignalMissing
from calve.failpoints import FailpointReached, arm
from calve.triggers import Kind, Scheduler
from calve.triggers.signals import Signals, SignalTriggers, lineage_json

S = StepStatus

WAITS = """
Workflow:
  id: w
  day: '2026-01-01'
  size: 7
  jobs:
    - job: {{id: a, type: Sleep, signal_dependencies: {dependencies}}}
    - job: {{id: b, type: Sleep}}
"""


def waiting(dependencies: str) -> str:
    """Return a workflow whose first step waits for signals."""
    return WAITS.format(dependencies=dependencies)


@pytest.fixture
def signals(playground: Playground) -> Signals:
    """Give the façade."""
    return Signals(playground.state, playground.clock)


@pytest.fixture
def scheduler(playground: Playground) -> Scheduler:
    """Give a scheduler of signal triggers."""
    return Scheduler(playground.tools, playground.store.triggers, {Kind.SIGNAL: SignalTriggers(playground.state)})


def run_all(playground: Playground, scheduler: Scheduler) -> list[Run]:
    """Let triggers and steps go on until nothing happens by itself; return what triggers started."""
    started: list[Run] = []
    while True:
        playground.settle()
        turn = scheduler.turn()
        started += [each.run for each in turn.started]
        if not turn.synced and not turn.looked and not turn.failed:
            return started


# Announcing.


def test_signals_are_numbered_by_name(signals: Signals) -> None:
    """Each name counts from 1."""
    said = [signals.announce(name, {"n": number}) for name, number in [("x", 1), ("y", 1), ("x", 2)]]
    assert [(each.signal.name, each.signal.seq) for each in said] == [("x", 1), ("y", 1), ("x", 2)]
    assert signals.latest("x").params == {"n": 2}
    assert signals.instance("x", 1).params == {"n": 1}


def test_a_request_announces_once(signals: Signals) -> None:
    """Whatever it says the second time."""
    first = signals.announce("x", {"n": 1}, request_id="r")
    second = signals.announce("x", {"n": 2}, request_id="r")
    assert (first.status, second.status) == (Told.CREATED, Told.DUPLICATED)
    assert second.signal == first.signal


def test_without_a_request_the_same_params_announce_once(signals: Signals) -> None:
    """In any order of their names; the payload does not count."""
    signals.announce("x", {"a": 1, "b": "2"})
    again = signals.announce("x", {"b": "2", "a": 1}, payload={"who": "me"})
    assert again.status is Told.DUPLICATED
    assert signals.announce("x", {"a": 1, "b": 2}).status is Told.CREATED


def test_fifty_announce_the_same_request_and_one_signal_comes_of_it(playground: Playground) -> None:
    """All get the same answer."""
    answers: list[Announced] = []

    def announce() -> None:
        answers.append(playground.state.announce(Announcement("x", {"n": 1}, request_id="same", at=1)))

    threads = [threading.Thread(target=announce) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 50
    assert {answer.signal.seq for answer in answers} == {1}
    assert [answer.status for answer in answers].count(Told.CREATED) == 1
    assert playground.state.signal_heads(["x", "y"]) == {"x": 1, "y": 0}


def test_many_announce_different_signals_and_no_number_is_missing(playground: Playground) -> None:
    """Numbers of a name have no gaps."""
    threads = [
        threading.Thread(target=lambda n=number: playground.state.announce(Announcement("x", {"n": n}, at=1)))
        for number in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.seq for each in playground.state.signals_after("x", 0, 100)] == list(range(1, 31))


def test_what_can_be_no_signal_is_refused(signals: Signals) -> None:
    """With a word on what can be."""
    wrong: list[tuple[str, dict[str, str | int]]] = [
        ("", {}),
        (" x", {}),
        ("x", {"a": "\0"}),
        ("x", {"": 1}),
        ("x" * 300, {}),
    ]
    for name, params in wrong:
        with pytest.raises(RequestInvalid):
            signals.announce(name, params)


def test_signals_are_listed_newest_first_in_pages(playground: Playground, signals: Signals) -> None:
    """Of one name, or of all."""
    for number in range(5):
        playground.clock.now += number % 2
        signals.announce("xy"[number % 2], {"n": number})
    whole = signals.list()
    assert [each.params["n"] for each in signals.list(name="x")] == [4, 2, 0]
    first = signals.list(limit=2)
    last = first[-1]
    rest = signals.list(before=(last.announced_at, last.name, last.seq))
    assert [*first, *rest] == whole


def test_a_signal_that_was_not_announced_is_missing(signals: Signals) -> None:
    """By name, or by number."""
    signals.announce("x")
    with pytest.raises(SignalMissing, match="no signal y"):
        signals.latest("y")
    with pytest.raises(SignalMissing, match="number 2"):
        signals.instance("x", 2)


MATCHES: list[tuple[list[tuple[str, Any, str]], int | None]] = [
    ([], 6),
    ([("n", 3, "=")], 3),
    ([("n", 3, ">")], 5),
    ([("n", 3, ">=")], 5),
    ([("n", 3, "<")], 2),
    ([("n", 3, "<=")], 3),
    ([("n", -5, "<")], None),
    ([("n", "3", "=")], None),
    ([("n", "a", ">")], 6),
    ([("n", "z", "<")], 6),
    ([("day", "b", "="), ("n", 1, ">=")], 4),
    ([("day", "b", "="), ("n", 5, ">=")], None),
    ([("missing", 1, "=")], None),
]


@pytest.mark.parametrize(("wanted", "seq"), MATCHES)
def test_the_latest_signal_that_fits_matches(
    playground: Playground, wanted: list[tuple[str, Any, str]], seq: int | None
) -> None:
    """Numbers compare as numbers, texts as texts, and never one with the other."""
    said: list[dict[str, Any]] = [
        {"n": -2, "day": "a"},
        {"n": 2, "day": "b"},
        {"n": 3, "day": "a"},
        {"n": 4, "day": "b"},
        {"n": 10, "day": "é"},
        {"n": "m"},
    ]
    for params in said:
        playground.state.announce(Announcement("x", params))
    playground.state.announce(Announcement("y", {"n": 3, "day": "b"}))
    asked = [Wanted(name, value, Operator(operator)) for name, value, operator in wanted]
    found = playground.state.match_signal("x", asked)
    assert (found.seq if found else None) == seq
    assert seq == next((n for n in range(6, 0, -1) if all(each.fits(said[n - 1]) for each in asked)), None)


# Steps that wait.


def test_a_step_waits_until_its_signal_comes(playground: Playground, signals: Signals) -> None:
    """Others go on; the signal wakes the run at once, and the step shows what it matched."""
    playground.push(waiting("[ready]"))
    run = playground.start()
    assert playground.statuses(run) == {"a": S.WAITING_FOR_SIGNALS, "b": S.SUCCEEDED}
    signals.announce("other")
    playground.settle()
    assert playground.attempt(run, "a").status is S.WAITING_FOR_SIGNALS
    signals.announce("ready", {"day": "today"})
    playground.settle()
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    said = attempt_json(run, playground.attempt(run, "a"))["signal_dependencies"]
    assert said == {
        "dependencies": [
            {"name": "ready", "status": "MATCHED", "match_params": {}, "signal_id": 1, "params": {"day": "today"}}
        ]
    }


def test_a_signal_that_came_before_counts(playground: Playground, signals: Signals) -> None:
    """A step does not wait for what is there."""
    signals.announce("ready")
    playground.push(waiting("[ready]"))
    assert playground.start().status is RunStatus.SUCCEEDED


def test_a_step_waits_for_all_its_dependencies(playground: Playground, signals: Signals) -> None:
    """Each is matched by itself, in any order."""
    playground.push(waiting("[one, two]"))
    run = playground.start()
    signals.announce("two")
    playground.settle()
    assert [each["status"] for each in playground.attempt(run, "a").dependencies] == ["PENDING", "MATCHED"]
    signals.announce("one")
    playground.settle()
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_names_and_values_come_from_params(playground: Playground, signals: Signals) -> None:
    """Of the workflow and of the step itself, of which only what is needed is evaluated before."""
    playground.push("""
Workflow:
  id: w
  day: '2026-01-01'
  size: 7
  jobs:
    - job:
        id: a
        type: Sleep
        '!least<long>': size + 1
        '!got<long>': params.getFromSignalDependency('0', 'n')
        signal_dependencies:
          - name: 'table/${day}'
            match_params:
              day: '${day}'
              n: {operator: '>=', param: {type: LONG, expression: 'least'}}
""")
    run = playground.start()
    (dependency,) = playground.attempt(run, "a").dependencies
    assert dependency["name"] == "table/2026-01-01"
    assert dependency["match_params"] == {
        "day": {"value": "2026-01-01", "operator": "="},
        "n": {"value": 8, "operator": ">="},
    }
    signals.announce("table/2026-01-01", {"day": "2026-01-01", "n": 7})
    playground.settle()
    assert playground.attempt(run, "a").status is S.WAITING_FOR_SIGNALS
    signals.announce("table/2026-01-01", {"day": "2026-01-01", "n": 9})
    playground.settle()
    assert playground.result(run, "a", "got") == 9


@pytest.mark.parametrize(
    ("dependencies", "why"),
    [
        ("[{name: '${nothing}'}]", "Cannot find the referenced param"),
        ("[{name: '${empty}'}]", "is no name of a signal"),
        ("[{name: x, match_params: {p: {param: {type: DOUBLE, value: 1.5}}}}]", "cannot be 1.5"),
    ],
)
def test_a_dependency_that_makes_no_sense_fails_the_step(playground: Playground, dependencies: str, why: str) -> None:
    """It says why."""
    playground.push(waiting(dependencies).replace("size: 7", "empty: ''"))
    run = playground.start()
    assert playground.statuses(run)["a"] is S.INTERNALLY_FAILED
    assert why in playground.told(run, "a")


def test_a_bypassed_dependency_is_skipped_and_a_matched_one_stays(playground: Playground, signals: Signals) -> None:
    """The step goes on without what has not come."""
    playground.push(waiting("[one, two]"))
    run = playground.start()
    signals.announce("one")
    playground.settle()
    playground.engine.bypass(playground.address(run, "a"), by="ann")
    playground.settle()
    assert [each["status"] for each in playground.attempt(run, "a").dependencies] == ["MATCHED", "SKIPPED"]
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_another_attempt_keeps_what_was_matched_and_a_restart_matches_anew(
    playground: Playground, signals: Signals
) -> None:
    """A retry is the same run; a restart is not."""
    playground.push(
        waiting("[ready]").replace("type: Sleep, signal", "type: Sleep, retry_policy: {error_retry_limit: 1}, signal")
    )
    playground.script.parts["a"] = [USER_ERROR]
    run = playground.start()
    signals.announce("ready", {"n": 1})
    playground.settle()
    signals.announce("ready", {"n": 2})
    playground.advance(3_600)
    attempts = playground.state.attempts(run.uuid, "a")
    assert [each.dependencies[0]["signal_id"] for each in attempts] == [1, 1]
    again = playground.restart(run)
    assert playground.attempt(again, "a").dependencies[0]["signal_id"] == 2


def test_a_signal_that_comes_while_a_step_begins_to_wait_is_not_lost(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is announced after the step has looked, and before it is known to wait."""
    playground.push(waiting("[ready]"))
    commit = playground.state.commit
    announced: list[Announced] = []

    def late(changes: Any) -> Any:
        is_waiting = any(each.status is S.WAITING_FOR_SIGNALS for each in changes.new_attempts)
        if is_waiting and not announced:
            announced.append(playground.state.announce(Announcement("ready")))
        return commit(changes)

    monkeypatch.setattr(playground.state, "commit", late)
    run = playground.start()
    assert announced
    assert run.status is RunStatus.SUCCEEDED


def test_a_stopped_step_waits_no_more(playground: Playground, signals: Signals) -> None:
    """A signal wakes nothing that is over."""
    playground.push(waiting("[ready]"))
    run = playground.start()
    playground.engine.stop(playground.address(run))
    playground.settle()
    signals.announce("ready")
    assert playground.claim() == []


# Signals that steps send.


SENDS = """
Workflow:
  id: {name}
  day: '2026-01-01'
  jobs:
    - job:
        id: a
        type: Sleep
        rows: 5
        signal_outputs:
          - name: 'table/${{day}}'
            params: {{rows: {{type: LONG, expression: 'rows + 1'}}, day: '${{day}}'}}
          - plain
"""


def test_a_step_sends_its_signals_when_it_has_succeeded(playground: Playground, signals: Signals) -> None:
    """With itself as their source."""
    playground.push(SENDS.format(name="w"))
    playground.start()
    sent = signals.latest("table/2026-01-01")
    assert sent.params == {"rows": 6, "day": "2026-01-01"}
    source = {
        "workflow_id": "w",
        "workflow_instance_id": 1,
        "workflow_run_id": 1,
        "step_id": "a",
        "step_attempt_id": 1,
    }
    assert sent.payload == {"signal_source": source}
    assert sent.source == source
    assert signals.latest("plain").params == {}


@pytest.mark.parametrize("outcome", [USER_ERROR, Outcome(State.STOPPED)])
def test_a_step_that_has_not_succeeded_sends_nothing(
    playground: Playground, signals: Signals, outcome: Outcome
) -> None:
    """Whatever else became of it."""
    playground.push(SENDS.format(name="w"))
    playground.script.parts["a"] = outcome
    playground.start()
    assert signals.list() == []


def test_another_instance_sends_again_and_a_restart_does_not(playground: Playground, signals: Signals) -> None:
    """A step of an instance says a thing once."""
    playground.push(SENDS.format(name="w"))
    run = playground.start()
    playground.start()
    assert signals.latest("plain").seq == 2
    playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert signals.latest("plain").seq == 2


def test_a_step_may_send_what_its_work_says(playground: Playground, signals: Signals) -> None:
    """Plain, or as Maestro's programs write it."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    outputs = [
        {"name": "plain", "n": 1},
        {"type": "MAP", "value": {"name": {"value": "typed"}, "day": {"type": "STRING", "value": "x"}}},
    ]
    artifacts = {"maestro_dynamic_output": {"signal_outputs": outputs}}
    playground.script.parts["a"] = Outcome(State.DONE, artifacts=artifacts)
    playground.start()
    assert signals.latest("plain").params == {"n": 1}
    assert signals.latest("typed").params == {"day": "x"}


@pytest.mark.parametrize(
    "said", ["nonsense", {"signal_outputs": "x"}, {"signal_outputs": ["x"]}, {"signal_outputs": [{"n": 1}]}]
)
def test_work_that_says_no_signals_fails_its_step(playground: Playground, said: object) -> None:
    """It says why."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = Outcome(State.DONE, artifacts={"maestro_dynamic_output": said})
    run = playground.start()
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}
    assert "The signals cannot be sent" in playground.told(run, "a")


def test_a_signal_that_cannot_be_evaluated_fails_its_step(playground: Playground, signals: Signals) -> None:
    """And none is sent."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, signal_outputs: [x, 'y${nothing}']}}]}")
    run = playground.start()
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}
    assert signals.list() == []


def test_a_step_releases_another_of_its_run(playground: Playground) -> None:
    """Though both move in one turn."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: NoOp, signal_outputs: [x]}
    - job: {id: b, type: NoOp, signal_dependencies: [x]}
""")
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    (dependency,) = playground.attempt(run, "b").dependencies
    assert dependency["signal_source"]["step_id"] == "a"


# Triggers.


def triggered(name: str, trigger: str, day: str = "'none'", outputs: str = "[]") -> str:
    """Return a workflow that signals start."""
    return f"""
Trigger: {trigger}
Workflow:
  id: {name}
  '!day': "{day}"
  jobs: [{{job: {{id: a, type: NoOp, signal_outputs: {outputs}}}}}]
"""


def test_a_signal_starts_a_workflow_once(playground: Playground, scheduler: Scheduler, signals: Signals) -> None:
    """However often the scheduler looks; the instance knows the signal."""
    playground.push(triggered("w", "{signal: ready}", day="params.getFromSignal('ready', 'day')"))
    run_all(playground, scheduler)
    signals.announce("ready", {"day": "monday"})
    (run,) = run_all(playground, scheduler)
    assert run_all(playground, scheduler) == []
    run = playground.fresh(run)
    assert run.status is RunStatus.SUCCEEDED
    assert parsed(run.params)["day"].result == "monday"
    assert run.initiator.type.value == "SIGNAL"
    assert run.initiator.trigger["signal_ids"] == {"ready": 1}
    assert run.initiator.trigger["signals"] == {"ready": {"day": "monday"}}


def test_a_signal_from_before_the_trigger_does_not_count(
    playground: Playground, scheduler: Scheduler, signals: Signals
) -> None:
    """One between the push and the scheduler's first look does."""
    signals.announce("ready", {"n": 1})
    playground.clock.now += 10
    playground.push(triggered("w", "{signal: ready}"))
    signals.announce("ready", {"n": 2})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"ready": 2}


JOINED = """
Trigger:
  signal:
    definitions:
      left: {match_params: {kind: good, size: {value: 3, operator: '>='}}, join_keys: [day]}
      right: {join_keys: [date]}
    params: {day: {type: STRING, expression: "params.getFromSignal('left', 'day')"}}
    condition: "params.getFromSignal('right', 'date') != 'never'"
Workflow:
  id: w
  '!day': params.getFromSignal('day')
  jobs: [{job: {id: a, type: NoOp}}]
"""


def test_signals_are_joined_by_their_keys(playground: Playground, scheduler: Scheduler, signals: Signals) -> None:
    """In any order; those that do not match do not count, and a false condition uses them up."""
    playground.push(JOINED)
    run_all(playground, scheduler)
    good: dict[str, str | int] = {"kind": "good", "size": 3}
    said: list[tuple[str, dict[str, str | int]]] = [
        ("right", {"date": "2"}),
        ("left", {"day": "1", **good}),
        ("left", {"day": "2", "kind": "bad", "size": 3}),
        ("left", {"day": "2", "kind": "good", "size": 2}),
        ("left", {"day": "2"}),
        ("left", {"day": "never", **good}),
        ("right", {"date": "never"}),
        ("right", {}),
    ]
    for name, params in said:
        signals.announce(name, params)
        assert run_all(playground, scheduler) == []
    signals.announce("right", {"date": "1"})
    (first,) = run_all(playground, scheduler)
    signals.announce("left", {"day": "2", **good})
    (second,) = run_all(playground, scheduler)
    assert first.initiator.trigger["signal_ids"] == {"left": 1, "right": 4}
    assert second.initiator.trigger["signal_ids"] == {"left": 6, "right": 1}
    assert second.initiator.trigger["params"] == {"day": "2"}
    assert parsed(playground.fresh(second).params)["day"].result == "2"
    assert playground.fresh(second).status is RunStatus.SUCCEEDED


def test_what_a_dedup_expression_calls_the_same_starts_once(
    playground: Playground, scheduler: Scheduler, signals: Signals
) -> None:
    """The second signal is used up."""
    playground.push(
        triggered("w", "{signal: {definitions: {x: {}}, dedup_expr: \"params.getFromSignal('x', 'day')\"}}")
    )
    run_all(playground, scheduler)
    for number, day in enumerate(["1", "1", "2"]):
        signals.announce("x", {"day": day, "n": number})
    run_all(playground, scheduler)
    assert [run.initiator.trigger["signals"]["x"]["n"] for run in playground.state.instances(workflow_id="w")][
        ::-1
    ] == [0, 2]


def test_signals_that_a_trigger_cannot_judge_are_noted_and_do_not_stop_others(
    playground: Playground, scheduler: Scheduler, signals: Signals
) -> None:
    """The trigger's state says why."""
    playground.push(
        triggered("w", "{signal: {definitions: {x: {}}, condition: \"params.getFromSignal('x', 'n') > 0\"}}")
    )
    run_all(playground, scheduler)
    signals.announce("x", {"other": 1})
    signals.announce("x", {"n": 1})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"x": 2}
    trigger = playground.store.triggers.trigger("w", "signal:0")
    assert trigger is not None
    (failed,) = trigger.state["failed"]
    assert failed["signal_ids"] == {"x": 1}
    assert "Cannot find param [n]" in failed["error"]


def test_a_chain_of_workflows_needs_no_schedule(playground: Playground, scheduler: Scheduler, signals: Signals) -> None:
    """Each sends what starts the next; the lineage leads from one end to the other."""
    playground.push(triggered("first", "{signal: go}", outputs="[one]"))
    playground.push(triggered("second", "{signal: one}", outputs="[two]"))
    playground.push(triggered("third", "{signal: two}"))
    run_all(playground, scheduler)
    signals.announce("go")
    started = run_all(playground, scheduler)
    assert [run.workflow_id for run in started] == ["first", "second", "third"]
    middle = lineage_json(signals.lineage_of("second", 1))
    (cause,) = middle["started_by"]
    assert cause["signal"]["payload"]["signal_source"]["workflow_id"] == "first"
    (effect,) = middle["sent"]
    assert (effect["step_id"], effect["signal"]["name"]) == ("a", "two")
    last = lineage_json(signals.lineage("two"))
    assert last["sent_by"]["workflow_id"] == "second"
    assert [party["workflow_id"] for party in last["started"]] == ["third"]


def test_the_lineage_of_a_signal_names_the_steps_that_it_released(playground: Playground, signals: Signals) -> None:
    """And of an instance, the signals that did."""
    playground.push(waiting("[ready]"))
    playground.start()
    signals.announce("ready")
    playground.settle()
    said = lineage_json(signals.lineage("ready", 1))
    assert (said["sent_by"], said["started"]) == (None, [])
    assert [(party["workflow_id"], party["step_id"]) for party in said["released"]] == [("w", "a")]
    (released,) = signals.lineage_of("w", 1).released_by
    assert released[1].name == "ready"
    playground.engine.delete("w")
    assert signals.lineage("ready").released == ()


@pytest.mark.parametrize("point", ["triggers.looked", "triggers.prepared", "triggers.fired"])
def test_a_scheduler_that_dies_between_a_signal_and_its_start_leaves_one_start(
    playground: Playground, scheduler: Scheduler, signals: Signals, point: str
) -> None:
    """The next one goes on where it stood (B.2-16)."""
    playground.push(triggered("w", "{signal: ready}"))
    run_all(playground, scheduler)
    signals.announce("ready")
    arm(f"{point}:1:error")
    try:
        with pytest.raises(FailpointReached):
            _until(point, scheduler.turn)
    finally:
        arm(None)
    playground.clock.now += 3_600_000
    run_all(playground, scheduler)
    assert len(playground.state.instances(workflow_id="w")) == 1


def _until(point: str, turn: Callable[[], Any]) -> None:
    """Take a turn that dies; what a look raises is noted by the scheduler itself."""
    if turn().failed:
        raise FailpointReached(point)


def test_four_schedulers_start_each_signal_once(playground: Playground, signals: Signals) -> None:
    """Whoever looks (B.2-18)."""
    playground.push(triggered("w", "{signal: x}"))

    def made() -> Scheduler:
        return Scheduler(playground.tools, playground.store.triggers, {Kind.SIGNAL: SignalTriggers(playground.state)})

    run_all(playground, made())

    def work() -> None:
        scheduler = made()
        for _ in range(15):
            scheduler.turn()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        signals.announce("x", {"n": number})
    for thread in threads:
        thread.join()
    run_all(playground, made())
    ids = [run.initiator.trigger["signal_ids"]["x"] for run in playground.state.instances(workflow_id="w")]
    assert sorted(ids) == list(range(1, 21))


def test_a_changed_trigger_goes_on_where_it_stood(
    playground: Playground, scheduler: Scheduler, signals: Signals
) -> None:
    """What waits is judged by the new definition."""
    playground.push(triggered("w", "{signal: [x, y]}"))
    run_all(playground, scheduler)
    signals.announce("x", {"n": 1})
    signals.announce("x", {"n": 2})
    run_all(playground, scheduler)
    playground.clock.now += 1
    playground.push(triggered("w", "{signal: {definitions: {x: {match_params: {n: 2}}, z: {}}}}"))
    run_all(playground, scheduler)
    signals.announce("y")
    assert run_all(playground, scheduler) == []
    signals.announce("z")
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"x": 2, "z": 1}


def test_a_deactivated_workflow_is_started_by_no_signal(
    playground: Playground, scheduler: Scheduler, signals: Signals
) -> None:
    """Nor by what came meanwhile, once it is active again."""
    playground.push(triggered("w", "{signal: x}"))
    run_all(playground, scheduler)
    playground.state.activate("w", None, playground.clock())
    run_all(playground, scheduler)
    signals.announce("x", {"n": 1})
    assert run_all(playground, scheduler) == []
    playground.clock.now += 1
    playground.state.activate("w", 1, playground.clock())
    assert run_all(playground, scheduler) == []
    signals.announce("x", {"n": 2})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"x": 2}


def test_a_disabled_trigger_uses_up_signals_and_starts_nothing(playground: Playground, signals: Signals) -> None:
    """What it would have started is not made up for."""
    disabled = {"w"}
    kind = SignalTriggers(playground.state, is_disabled=disabled.__contains__)
    scheduler = Scheduler(playground.tools, playground.store.triggers, {Kind.SIGNAL: kind})
    playground.push(triggered("w", "{signal: x}"))
    run_all(playground, scheduler)
    signals.announce("x", {"n": 1})
    assert run_all(playground, scheduler) == []
    disabled.clear()
    signals.announce("x", {"n": 2})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"x": 2}
