"""Documents in Maestro's format, besides those of ``calve.engine.views``."""

from collections.abc import Iterable, Mapping
from typing import Any

from calve.definition.model import DEFAULT_CONCURRENCY
from calve.engine import (
    Attempt,
    Breakpoint,
    Event,
    RecentRun,
    Run,
    RunStatus,
    TagPermit,
    VersionRecord,
    WorkflowRecord,
    WorkflowRow,
)
from calve.engine.views import ActionEvent, WorkflowTimeline, WorkflowTimelineEvent
from calve.operations import models
from calve.operations.models import (
    DefinitionExtras,
    Metadata,
    PausedAttempt,
    PropertiesSnapshot,
    StepBreakpoint,
    WorkflowDefinition,
    WorkflowOverview,
)

Json = dict[str, Any]


def present(**values: Any) -> Json:
    """Return the values that are not None, by name."""
    return {name: value for name, value in values.items() if value is not None}


def properties_json(workflow: WorkflowRecord) -> Json:
    """Return the current properties of a workflow."""
    known = {name: value for name, value in workflow.properties.items() if name in PropertiesSnapshot.names()}
    place = {"workflow_id": workflow.workflow_id, "create_time": workflow.modified_at}
    return PropertiesSnapshot(**{**known, **place}).as_json()


def version_json(workflow: WorkflowRecord, version: VersionRecord, extras: DefinitionExtras | None = None) -> Json:
    """Return a version of a workflow, with the workflow's properties."""
    is_active = workflow.active_version == version.version_id
    return WorkflowDefinition(
        properties_snapshot=properties_json(workflow),
        metadata=_metadata(version),
        workflow=version.definition["workflow"],
        is_active=is_active,
        activate_time=workflow.activated_at if is_active else None,
        is_latest=workflow.latest_version == version.version_id,
        is_default=(workflow.active_version or workflow.latest_version) == version.version_id,
        enriched_extras=extras,
        modify_time=workflow.modified_at,
    ).as_json()


def _metadata(version: VersionRecord) -> Json:
    """Return the origin of a version; further fields of a push are added, and replace none."""
    written = Metadata(
        workflow_id=version.workflow_id,
        workflow_version_id=version.version_id,
        create_time=version.created_at,
        version_author=version.author,
        git_info=version.definition.get("git_info"),
    )
    return {**version.definition.get("extra_info", {}), **written.as_json()}


def workflow_json(row: WorkflowRow) -> Json:
    """Return a workflow of a list."""
    workflow = row.workflow
    known = present(
        workflow_id=workflow.workflow_id,
        active_version_id=workflow.active_version,
        latest_version_id=workflow.latest_version,
        properties=dict(workflow.properties),
        create_time=workflow.created_at,
        modify_time=workflow.modified_at,
    )
    return {
        **known,
        "owner": row.owner,
        "tags": list(row.tags),
        "is_paused": workflow.active_version is None,
        "last_run_time": row.last_run_at,
    }


def recent_run_json(run: RecentRun) -> Json:
    """Return an instance as a bar of a chart."""
    return present(
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        status=run.status.value,
        create_time=run.created_at,
        start_time=run.started_at,
        end_time=run.ended_at,
    )


def workflow_overview_json(
    workflow: WorkflowRecord, counts: Mapping[RunStatus, int], latest_instance: int | None
) -> Json:
    """Return a summary of a workflow."""
    live = {status.value: counts.get(status, 0) for status in RunStatus if not status.is_terminal}
    return WorkflowOverview(
        workflow_id=workflow.workflow_id,
        active_version_id=workflow.active_version,
        latest_version_id=workflow.latest_version,
        default_version_id=workflow.active_version or workflow.latest_version,
        properties_snapshot=properties_json(workflow),
        step_concurrency=workflow.properties.get("step_concurrency") or DEFAULT_CONCURRENCY,
        nonterminal_instances=live,
        failed_instances=counts.get(RunStatus.FAILED, 0),
        latest_instance_id=latest_instance,
    ).as_json()


def timeline_json(workflow_id: str, versions: Iterable[VersionRecord]) -> Json:
    """Return the versions of a workflow with their authors and times."""
    events = tuple(
        WorkflowTimelineEvent(
            author=version.author, log=f"Version [{version.version_id}] was pushed.", timestamp=version.created_at
        )
        for version in versions
    )
    return WorkflowTimeline(workflow_id=workflow_id, timeline_events=events).as_json()


def action_event(action: str, author: str, now: int, message: str, reason: str = "") -> ActionEvent:
    """Return an action as an event of Maestro's timeline."""
    return ActionEvent(timestamp=now, action=action, author=author, message=message, reason=reason or None)


def breakpoint_json(point: Breakpoint) -> Json:
    """Return a breakpoint."""
    return StepBreakpoint(
        workflow_id=point.workflow_id,
        step_id=point.step_id,
        workflow_version_id=point.version_id,
        workflow_instance_id=point.instance_id,
        workflow_run_id=point.run_id,
        step_attempt_id=point.attempt_id,
        create_time=point.created_at,
        created_by=point.created_by,
    ).as_json()


def paused_json(run: Run, attempt: Attempt) -> Json:
    """Return a paused attempt."""
    return PausedAttempt(
        workflow_id=run.workflow_id,
        workflow_version_id=run.version_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        step_id=attempt.step_id,
        step_attempt_id=attempt.attempt_id,
        create_time=attempt.times.get("create", 0),
    ).as_json()


def permit_json(permit: TagPermit) -> Json:
    """Return the limit of a tag."""
    return models.TagPermit(tag=permit.tag, max_allowed=permit.max_allowed, held=permit.held).as_json()


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
