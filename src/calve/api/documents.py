"""Documents in Maestro's shape, beside those of ``calve.engine.views``."""

from collections.abc import Mapping
from typing import Any

from calve.engine.model import Attempt, Breakpoint, Event, Run, TagPermit, VersionRecord, WorkflowRecord
from calve.engine.statuses import RunStatus

Json = dict[str, Any]


def present(**values: Any) -> Json:
    """Return what has a value."""
    return {name: value for name, value in values.items() if value is not None}


def properties_json(workflow: WorkflowRecord) -> Json:
    """Return the newest properties of a workflow."""
    return {**workflow.properties, "workflow_id": workflow.workflow_id, "create_time": workflow.modified_at}


def version_json(workflow: WorkflowRecord, version: VersionRecord) -> Json:
    """Return a version of a workflow, with the workflow's properties."""
    return {
        "properties_snapshot": properties_json(workflow),
        "metadata": _metadata(version),
        "workflow": version.definition["workflow"],
        "is_active": workflow.active_version == version.version_id,
        "is_default": (workflow.active_version or workflow.latest_version) == version.version_id,
        "is_latest": workflow.latest_version == version.version_id,
        "modify_time": workflow.modified_at,
    }


def _metadata(version: VersionRecord) -> Json:
    return present(
        workflow_id=version.workflow_id,
        workflow_version_id=version.version_id,
        create_time=version.created_at,
        version_author={"name": version.author},
        git_info=version.definition.get("git_info"),
        extra_info=version.definition.get("extra_info") or None,
    )


def workflow_json(workflow: WorkflowRecord) -> Json:
    """Return a workflow as it stands in a list."""
    return present(
        workflow_id=workflow.workflow_id,
        active_version_id=workflow.active_version,
        latest_version_id=workflow.latest_version,
        properties=dict(workflow.properties),
        create_time=workflow.created_at,
        modify_time=workflow.modified_at,
    )


def workflow_overview_json(
    workflow: WorkflowRecord, counts: Mapping[RunStatus, int], latest_instance: int | None
) -> Json:
    """Return a workflow at a glance."""
    return present(
        workflow_id=workflow.workflow_id,
        active_version_id=workflow.active_version,
        latest_version_id=workflow.latest_version,
        default_version_id=workflow.active_version or workflow.latest_version,
        properties_snapshot=properties_json(workflow),
        step_concurrency=workflow.properties.get("step_concurrency"),
        nonterminal_instances={status.value: number for status, number in counts.items() if not status.is_terminal},
        failed_instances=counts.get(RunStatus.FAILED, 0),
        latest_instance_id=latest_instance,
    )


def action_event(action: str, author: str, now: int, message: str, reason: str = "") -> Json:
    """Return what Maestro's timeline says of an action."""
    event = {"type": "ACTION", "action": action, "author": {"name": author}, "message": message, "timestamp": now}
    return {**event, "reason": reason} if reason else event


def breakpoint_json(point: Breakpoint) -> Json:
    """Return a breakpoint."""
    return {
        "workflow_id": point.workflow_id,
        "step_id": point.step_id,
        "workflow_version_id": point.version_id,
        "workflow_instance_id": point.instance_id,
        "workflow_run_id": point.run_id,
        "step_attempt_id": point.attempt_id,
        "create_time": point.created_at,
        "created_by": {"name": point.created_by},
    }


def paused_json(run: Run, attempt: Attempt) -> Json:
    """Return an attempt that is paused."""
    return {
        "workflow_id": run.workflow_id,
        "workflow_version_id": run.version_id,
        "workflow_instance_id": run.instance_id,
        "workflow_run_id": run.run_id,
        "step_id": attempt.step_id,
        "step_attempt_id": attempt.attempt_id,
        "create_time": attempt.times.get("create", 0),
    }


def permit_json(permit: TagPermit) -> Json:
    """Return the limit of a tag."""
    return {"tag": permit.tag, "max_allowed": permit.max_allowed, "held": permit.held}


def event_json(event: Event) -> Json:
    """Return an event."""
    return present(
        seq=event.seq,
        type=event.kind,
        workflow_id=event.workflow_id,
        workflow_instance_id=event.instance_id,
        workflow_run_id=event.run_id,
        workflow_uuid=event.run_uuid,
        step_id=event.step_id,
        step_attempt_id=event.attempt_id,
        before=event.before,
        after=event.after,
        at=event.at,
        detail=dict(event.detail) or None,
    )
