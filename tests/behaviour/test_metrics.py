"""Metrics tell how things stand and what has happened, on both databases."""

import pytest
from tests.engines import BUSY, FATAL_ERROR, Playground

from calve.alerts import Alert, Message, Route
from calve.definition.model import AlertType
from calve.definition.params import InitiatorType
from calve.engine import Initiator
from calve.telemetry import Metrics

pytestmark = pytest.mark.each_store

ONE = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Shell, shell: {script: x}}
    - foreach:
        id: loop
        loop_params: {n: [1, 2]}
        jobs:
          - job: {id: b, type: NoOp}
"""


def values(metrics: Metrics) -> dict[str, float]:
    """Return what a scrape says, by the name of the sample with its labels."""
    lines = metrics.scrape().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def test_what_happens_is_counted_once(playground: Playground) -> None:
    """From the first scrape on; iterations are no runs of their own, their steps are steps."""
    metrics = Metrics(playground.store.telemetry, playground.clock)
    playground.push(ONE)
    playground.start()
    values(metrics)
    playground.start()
    playground.script.parts["a"] = FATAL_ERROR
    playground.start()
    for _ in range(2):
        found = values(metrics)
        assert found['calve_runs_ended_total{status="SUCCEEDED",workflow="w"}'] == 1
        assert found['calve_runs_ended_total{status="FAILED",workflow="w"}'] == 1
        assert found['calve_runs_started_total{initiator="MANUAL"}'] == 2
        assert found['calve_step_attempts_ended_total{status="SUCCEEDED",type="Shell"}'] == 1
        assert found['calve_step_attempts_ended_total{status="FATALLY_FAILED",type="Shell"}'] == 1
        assert found['calve_step_attempts_ended_total{status="SUCCEEDED",type="NoOp"}'] == 4
        assert found['calve_run_duration_seconds_count{status="SUCCEEDED"}'] == 1
        assert found['calve_step_duration_seconds_count{type="Shell"}'] == 2


def test_many_events_are_read_in_pieces(playground: Playground) -> None:
    """None is left out, and none is counted twice."""
    state = playground.store.telemetry
    playground.push(ONE)
    playground.start()
    at, count = 0, 0
    while True:
        happened = state.happened(at, 3)
        at, count = happened.upto, count + len(happened.steps)
        if happened.is_all:
            break
    assert (at, count) == (state.newest(), 4)
    assert state.happened(at).steps == ()


def test_how_things_stand(playground: Playground) -> None:
    """Workers, the queue, instances, triggers and alerts."""
    metrics = Metrics(playground.store.telemetry, playground.clock)
    playground.script.parts["a"] = BUSY
    playground.push(ONE)
    playground.start()
    alert = Alert("k", AlertType.RUN_SUCCESS, "w", 0)
    state = playground.store.alerts
    state.take("x", state.position("x", 0), 1, [Message(alert, Route("c"))], 0)
    found = values(metrics)
    assert found["calve_workers"] == 1
    assert found["calve_worker_slots"] == 100
    assert found["calve_workers_draining"] == 0
    assert found['calve_queue_tasks{kind="step"}'] == 1
    assert found["calve_queue_due_tasks"] == 0
    assert found['calve_instances{status="IN_PROGRESS"}'] == 1
    assert found['calve_alerts{status="waiting"}'] == 1
    assert found["calve_captures_open"] == 0
    assert found["calve_scheduler_lag_seconds"] == 0
    playground.clock.now += 4_000_000
    assert values(metrics)["calve_queue_due_tasks"] == 1


def test_the_latency_of_a_trigger_is_known(playground: Playground) -> None:
    """From its scheduled time, or from the commit that it noticed, to the instance."""
    metrics = Metrics(playground.store.telemetry, playground.clock)
    values(metrics)
    playground.push(ONE)
    due = playground.clock() - 2_000
    playground.start(initiator=Initiator(InitiatorType.TIME, trigger={"scheduled_at": due}))
    found = values(metrics)
    assert found['calve_trigger_latency_seconds_sum{initiator="TIME"}'] == 2
    assert found["calve_run_wait_seconds_count"] == 1
