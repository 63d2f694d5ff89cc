"""Steps that wait for signals without polling, and steps that send them."""

import threading
from typing import Any

import pytest
from tests.engines import USER_ERROR, Playground, live, wait_for_end

from calve.engine import Announced, Announcement, Outcome, RunPolicy, RunStatus, State, StepStatus
from calve.engine.views import attempt_json
from calve.triggers.signals import Signals, lineage_json

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
        ("[{name: '${empty}'}]", "is not a valid name of a signal"),
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


def test_another_attempt_keeps_what_was_matched_and_a_restart_matches_again(
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


def test_no_signal_is_lost_between_steps_that_begin_to_wait_and_those_who_announce(playground: Playground) -> None:
    """Real workers, and signals that come at any moment."""
    names = [f"s{number}" for number in range(12)]
    for name in names:
        playground.push(
            f"Workflow: {{id: w{name}, jobs: [{{job: {{id: a, type: NoOp, signal_dependencies: [{name}, last]}}}}]}}"
        )

    def announce() -> None:
        for name in (*names, "last"):
            playground.state.announce(Announcement(name, at=1))

    announcing = threading.Thread(target=announce)
    with live(playground):
        runs = [playground.begin(f"w{name}").run for name in names[:6]]
        announcing.start()
        runs += [playground.begin(f"w{name}").run for name in names[6:]]
        announcing.join()
        ended = [wait_for_end(playground, run) for run in runs]
    assert {run.status for run in ended} == {RunStatus.SUCCEEDED}


def test_many_steps_wait_for_one_signal(playground: Playground, signals: Signals) -> None:
    """One announcement releases them all."""
    playground.push(waiting("[ready]"))
    runs = [playground.begin().run for _ in range(40)]
    playground.settle()
    signals.announce("ready")
    playground.settle()
    assert {playground.fresh(run).status for run in runs} == {RunStatus.SUCCEEDED}
    assert len(signals.lineage("ready").released) == 40


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
    ("workflow", "name", "is_sent"),
    [
        ("sales.etl", "sales.ready", True),
        ("sales.etl", "sales.eu.ready", True),
        ("etl", "finance.ready", True),
        ("sales.etl", "finance.ready", False),
        ("sales.etl", "salesforce.ready", False),
        ("sales.eu.etl", "sales.ready", False),
        ("sales.etl", "ready", False),
    ],
)
def test_work_says_signals_of_its_namespace_only(
    playground: Playground, signals: Signals, workflow: str, name: str, *, is_sent: bool
) -> None:
    """And of those below it: who may push programs could announce everybody's signals otherwise."""
    playground.push(f"Workflow: {{id: {workflow}, jobs: [{{job: {{id: a, type: Sleep}}}}]}}")
    artifacts = {"maestro_dynamic_output": {"signal_outputs": [{"name": "sales.eu.first"}, {"name": name}]}}
    playground.script.parts["a"] = Outcome(State.DONE, artifacts=artifacts)
    run = playground.start(workflow)
    assert bool(signals.list()) == is_sent
    if not is_sent:
        assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
        assert f"announced the signal {name}, which is outside the namespace" in playground.told(run, "a")


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
