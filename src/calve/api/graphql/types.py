"""The types of workflows, their versions, instances and steps. Callers see only what they may read."""

from typing import Any

import strawberry

from calve.access import Permission, namespaces
from calve.api.caller import WebCaller
from calve.api.graphql.limits import FEW, LOG, MANY
from calve.api.graphql.values import JSON, Info, Long, described
from calve.engine import Address, Run, RunStatus, VersionRecord, WorkflowRecord, find_run
from calve.engine.views import instance_json, overview_json, overview_of
from calve.errors import RequestInvalid, WorkflowMissing
from calve.operations import cursor_of, place_of

strawberry.enum(RunStatus, name="InstanceStatus")


@described
@strawberry.type
class Step:
    """A step of an instance, in its newest attempt."""

    document: JSON
    """The whole document, in Maestro's format."""
    step_id: str
    type: str | None
    status: str
    attempt_id: int | None
    start_time: Long | None
    end_time: Long | None
    message: str | None
    place: strawberry.Private[Run]

    @strawberry.field
    def log(self, info: Info) -> str | None:
        """Return the last 65,536 bytes of the step's log, if the caller may read it; REST returns all of it."""
        info.context.require(Permission.LOGS, self.place.owner_workflow)
        uuid = _given(self.document).get("step_instance_uuid")
        if uuid is None:
            return None
        return info.context.engine.log_reader(uuid).page(-LOG, LOG).text


@described
@strawberry.type
class Instance:
    """A run of an instance of a workflow, the latest unless another is requested."""

    workflow_id: str
    instance_id: Long
    run_id: int
    version_id: int
    uuid: strawberry.ID
    status: str
    request_id: str | None
    message: str | None
    create_time: Long
    start_time: Long | None
    end_time: Long | None
    document: JSON
    """The document as in lists, in Maestro's format."""
    run: strawberry.Private[Run]

    @strawberry.field
    def params(self, info: Info) -> JSON:
        """Return the params, by name."""
        return JSON(self._overview(info)["params"])

    @strawberry.field
    def overview(self, info: Info) -> JSON:
        """Return the whole document with the steps, in Maestro's format."""
        return JSON(self._overview(info))

    @strawberry.field
    def steps(self, info: Info) -> list[Step]:
        """Return the steps, in the order of the definition."""
        return [step_of(self.run, step) for step in self._overview(info)["steps"]]

    @strawberry.field
    def runs(self, info: Info) -> "list[Instance]":
        """Return all runs of the instance, newest first."""
        runs = info.context.engine.state.runs(self.workflow_id, int(self.instance_id))
        return [instance_of(run) for run in runs[:MANY]]

    def _overview(self, info: Info) -> dict[str, Any]:
        return overview_json(overview_of(info.context.engine.tools, self.run, info.context.may_read))


@described
@strawberry.type
class Instances:
    """A page of instances; ``next`` is the cursor of the next page."""

    items: list[Instance]
    next: str | None


@described
@strawberry.type
class Version:
    """A version of a workflow."""

    workflow_id: str
    version_id: int
    author: str
    create_time: Long
    definition: JSON


@described
@strawberry.type
class Workflow:
    """A workflow with all of its versions."""

    id: strawberry.ID
    active_version: int | None
    latest_version: int
    properties: JSON
    create_time: Long
    modify_time: Long

    @strawberry.field
    def version(self, info: Info, selector: str = "default") -> Version | None:
        """Return a version: active, latest, default, or a number."""
        record = info.context.engine.state.version(str(self.id), selector)
        return None if record is None else version_of(record)

    @strawberry.field
    def versions(self, info: Info) -> list[Version]:
        """Return the versions, newest first."""
        return [version_of(record) for record in info.context.engine.state.versions(str(self.id))[:MANY]]

    @strawberry.field
    def instances(
        self, info: Info, statuses: list[RunStatus] | None = None, first: int = FEW, after: str | None = None
    ) -> Instances:
        """Return instances, newest first."""
        return instances_of(info.context, str(self.id), statuses, first, after)


@described
@strawberry.type
class Workflows:
    """A page of workflows; ``next`` is the cursor of the next page."""

    items: list[Workflow]
    next: str | None


@described
@strawberry.type
class Event:
    """An event."""

    seq: Long
    type: str
    workflow_id: str
    instance_id: Long
    run_id: int
    step_id: str | None
    attempt_id: int | None
    before: str | None
    after: str | None
    at: Long


def count(first: int) -> int:
    """Return the length of a page.

    Raises:
        RequestInvalid: it is not between 1 and the maximum.
    """
    if not 1 <= first <= MANY:
        raise RequestInvalid(f"first must be between 1 and {MANY}, not {first}.")
    return first


def workflow_of(record: WorkflowRecord) -> Workflow:
    """Return a workflow."""
    return Workflow(
        id=strawberry.ID(record.workflow_id),
        active_version=record.active_version,
        latest_version=record.latest_version,
        properties=JSON(dict(record.properties)),
        create_time=Long(record.created_at),
        modify_time=Long(record.modified_at),
    )


def version_of(record: VersionRecord) -> Version:
    """Return a version."""
    return Version(
        workflow_id=record.workflow_id,
        version_id=record.version_id,
        author=record.author,
        create_time=Long(record.created_at),
        definition=JSON(dict(record.definition)),
    )


def instance_of(run: Run) -> Instance:
    """Return a run."""
    return Instance(
        workflow_id=run.workflow_id,
        instance_id=Long(run.instance_id),
        run_id=run.run_id,
        version_id=run.version_id,
        uuid=strawberry.ID(run.uuid),
        status=run.status.value,
        request_id=run.request_id,
        message=run.message or None,
        create_time=Long(run.created_at),
        start_time=None if run.started_at is None else Long(run.started_at),
        end_time=None if run.ended_at is None else Long(run.ended_at),
        document=JSON(instance_json(run)),
        run=run,
    )


def step_of(run: Run, document: dict[str, Any]) -> Step:
    """Return a step of a run."""
    times = document.get("runtime_state", {})
    return Step(
        document=JSON(document),
        step_id=document["step_id"],
        type=document.get("type"),
        status=document["status"],
        attempt_id=document.get("step_attempt_id"),
        start_time=times.get("start_time"),
        end_time=times.get("end_time"),
        message=document.get("message"),
        place=run,
    )


def instances_of(
    call: WebCaller, workflow_id: str | None, statuses: list[RunStatus] | None, first: int, after: str | None
) -> Instances:
    """Return a page of instances that the caller may see."""
    found = call.engine.state.instances(
        workflow_id=workflow_id,
        statuses=tuple(dict.fromkeys(statuses or ())),
        before=place_of(after) if after else None,
        limit=count(first) + 1,
        namespaces=namespaces(call.principal, Permission.READ),
    )
    shown = found[:first]
    return Instances(
        items=[instance_of(run) for run in shown], next=cursor_of(shown[-1]) if len(found) > first else None
    )


def found_workflow(call: WebCaller, workflow_id: str) -> Workflow:
    """Return a workflow that the caller may see."""
    call.require(Permission.READ, workflow_id)
    return workflow_of(call.engine.workflow(workflow_id))


def found_version(call: WebCaller, workflow_id: str, version_id: int) -> Version:
    """Return a version that the caller may see."""
    call.require(Permission.READ, workflow_id)
    record = call.engine.state.version(workflow_id, str(version_id))
    if record is None:
        raise WorkflowMissing(f"Workflow {workflow_id} has no version {version_id}.")
    return version_of(record)


def found_run(call: WebCaller, workflow_id: str, instance_id: int, run_id: int | None = None) -> Run:
    """Return a run that the caller may see."""
    call.require(Permission.READ, workflow_id)
    return find_run(call.engine.state, Address(workflow_id, instance_id, run_id))


def _given(document: JSON) -> dict[str, Any]:
    assert isinstance(document, dict)  # noqa: S101 - we made it
    return document
