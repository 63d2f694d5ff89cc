"""The documents of runs, steps and starts as JSON: without secrets, and without fields that have no value. Pure."""

from typing import Any

from calve.engine.model import Attempt, Run, Started
from calve.engine.restarts import RestartPlan
from calve.engine.views.instances import (
    PlannedStepDocument,
    RestartPlanDocument,
    StartResponse,
    listed_instance,
    overview_instance,
    start_event,
)
from calve.engine.views.live_steps import pending_approval
from calve.engine.views.overview import Overview
from calve.engine.views.sources import StepSource
from calve.engine.views.steps import run_reference, step_instance
from calve.engine.views.waits import Approval

Json = dict[str, Any]


def run_json(run: Run) -> Json:
    """Return which run it is, and its status."""
    return run_reference(run).as_json()


def started_json(started: Started) -> Json:
    """Return the answer to a start: which run it is, and whether the start created it."""
    run = started.run
    return StartResponse(
        workflow_id=run.workflow_id,
        workflow_version_id=run.version_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_uuid=run.uuid,
        status=started.status.value,
        timeline_event=start_event(run),
        warnings=started.warnings or None,
    ).as_json()


def restart_plan_json(plan: RestartPlan, repeats: tuple[str, ...] = ()) -> Json:
    """Return what a restart would do with each step, and why; and which steps would repeat their work."""
    return RestartPlanDocument(
        workflow_version_id=plan.from_version,
        restart_version_id=plan.to_version,
        steps=tuple(
            PlannedStepDocument(step_id=step.step_id, fate=step.fate.value, reason=step.reason, obstacle=step.obstacle)
            for step in plan.steps
        ),
        refusal=plan.refusal,
        repeats=repeats,
    ).as_json()


def instance_json(run: Run) -> Json:
    """Return a run of an instance for lists."""
    return listed_instance(run).as_json()


def overview_json(overview: Overview) -> Json:
    """Return a run of an instance in full, with its params and its steps."""
    return overview_instance(overview).as_json()


def attempt_json(run: Run, attempt: Attempt, source: StepSource | None = None) -> Json:
    """Return an attempt of a step."""
    return step_instance(run, attempt, source).as_json()


def approval_json(approval: Approval) -> Json:
    """Return an Approval step that waits for people, with links to decide it."""
    return pending_approval(approval).as_json()
