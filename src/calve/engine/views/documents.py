"""Documents in Maestro's shape, and what calve adds to them: no secret, nothing where there is no value. Pure."""

from dataclasses import asdict
from typing import Any

from calve.engine.model import Attempt, Run, Started
from calve.engine.statuses import StepStatus
from calve.engine.views.instances import start_event, step_instance, workflow_instance
from calve.engine.views.models import StartResponse
from calve.engine.views.overview import Overview, StepOverview
from calve.engine.views.sources import RunSource, StepSource

Document = dict[str, Any]


def run_json(run: Run) -> Document:
    """Return which run it is, and where it stands."""
    return {
        "workflow_id": run.workflow_id,
        "workflow_version_id": run.version_id,
        "workflow_instance_id": run.instance_id,
        "workflow_run_id": run.run_id,
        "workflow_uuid": run.uuid,
        "status": run.status.value,
    }


def started_json(started: Started) -> Document:
    """Return the answer to a start: which run it is, and whether it was created by it."""
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


def instance_json(run: Run) -> Document:
    """Return a run of an instance as it stands in a list."""
    return workflow_instance(run).as_json() | _own(run)


def _own(run: Run) -> Document:
    """Return what calve says of a run besides."""
    return _present(
        run_policy=run.policy.value,
        request_id=run.request_id,
        tags=list(run.tags) or None,
        is_queued=run.is_queued or None,
        message=run.message or None,
    )


def overview_json(overview: Overview) -> Document:
    """Return a run of an instance in full, with its params and its steps."""
    run, source = overview.run, overview.source
    attempts = [step.attempt for step in overview.steps if step.attempt is not None]
    steps = [_step(run, step, source) for step in overview.steps]
    return workflow_instance(run, source, attempts).as_json() | _own(run) | {"steps": steps}


def attempt_json(run: Run, attempt: Attempt, source: StepSource | None = None) -> Document:
    """Return an attempt of a step."""
    return step_instance(run, attempt, source).as_json() | _present(
        step_instance_uuid=attempt.uuid,
        type=attempt.type,
        status=attempt.status.value,
        retries=dict(attempt.retries) or None,
        next_attempt_time=attempt.due_at,
        worker=attempt.worker,
    )


def _step(run: Run, step: StepOverview, source: RunSource) -> Document:
    if step.attempt is None:
        waiting = StepStatus.NOT_CREATED.value
        return {"step_id": step.step_id, "step_instance_id": step.ordinal, "type": step.type, "status": waiting}
    return attempt_json(run, step.attempt, StepSource(source)) | _present(
        iterations=_present(**asdict(step.iterations)) if step.iterations else None,
        child=run_json(step.child) if step.child else None,
    )


def _present(**values: Any) -> Document:
    return {name: value for name, value in values.items() if value is not None}
