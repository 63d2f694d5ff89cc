"""Workflows that signals start: joined, once each, traced."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines import Playground

from calve.engine import Run, RunStatus, params_from_stored
from calve.failpoints import FailpointReached, arm
from calve.triggers import Scheduler, TriggerType
from calve.triggers.signals import Signals, SignalTriggers, lineage_json


@pytest.fixture
def signals(playground: Playground) -> Signals:
    """Give the façade."""
    return Signals(playground.state, playground.clock)


@pytest.fixture
def scheduler(playground: Playground) -> Scheduler:
    """Give a scheduler of signal triggers."""
    return Scheduler(
        playground.tools, playground.store.triggers, {TriggerType.SIGNAL: SignalTriggers(playground.state)}
    )


def run_all(playground: Playground, scheduler: Scheduler) -> list[Run]:
    """Let triggers and steps go on until nothing happens by itself; return what triggers started."""
    started: list[Run] = []
    while True:
        playground.settle()
        turn = scheduler.turn()
        started += [each.run for each in turn.started]
        if not turn.synced and not turn.looked and not turn.failed:
            return started


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
    assert params_from_stored(run.params)["day"].result == "monday"
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
    assert params_from_stored(playground.fresh(second).params)["day"].result == "2"
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


def test_signals_that_a_trigger_cannot_evaluate_are_recorded_and_do_not_stop_others(
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


def test_the_joined_trigger_of_the_page_starts(playground: Playground, scheduler: Scheduler, signals: Signals) -> None:
    """As docs/howto/signals.md says: by the rows of one signal, and the day of both."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "signals.md").read_text(encoding="utf-8")
    (trigger,) = re.findall(r"^```yaml\n(Trigger:\n  signal:\n.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    playground.push(f"{trigger}Workflow: {{id: w, jobs: [{{job: {{id: a, type: NoOp}}}}]}}")
    run_all(playground, scheduler)
    signals.announce("warehouse/users", {"date": "2026-01-31"})
    signals.announce("warehouse/orders", {"day": "2026-01-31", "region": "eu", "rows": 99})
    assert run_all(playground, scheduler) == []
    signals.announce("warehouse/orders", {"day": "2026-01-31", "region": "eu", "rows": 100})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"warehouse/users": 1, "warehouse/orders": 2}


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
        return Scheduler(
            playground.tools, playground.store.triggers, {TriggerType.SIGNAL: SignalTriggers(playground.state)}
        )

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


def test_a_changed_trigger_continues_where_it_stood(
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
    scheduler = Scheduler(playground.tools, playground.store.triggers, {TriggerType.SIGNAL: kind})
    playground.push(triggered("w", "{signal: x}"))
    run_all(playground, scheduler)
    signals.announce("x", {"n": 1})
    assert run_all(playground, scheduler) == []
    disabled.clear()
    signals.announce("x", {"n": 2})
    (run,) = run_all(playground, scheduler)
    assert run.initiator.trigger["signal_ids"] == {"x": 2}
