"""Creates the runs of started and restarted instances, and ends runs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from calve.definition import KnownParams, UnknownParam, known_to_step, known_to_workflow, unknown_params
from calve.definition.model import Criticality, Workflow
from calve.engine.instances.unit_of_work import Tools
from calve.engine.model import Initiator, Json, Restart, Run, RunPolicy, RunStatus, WorkflowRecord
from calve.errors import WorkflowMissing

_PRIORITIES = {None: 2, Criticality.CRITICAL: 0, Criticality.HIGH: 1, Criticality.MEDIUM: 2, Criticality.LOW: 3}


def known_workflow(tools: Tools, workflow_id: str) -> WorkflowRecord:
    """Return a workflow.

    Raises:
        WorkflowMissing: it does not exist.
    """
    found = tools.state.workflow(workflow_id)
    if found is None:
        raise WorkflowMissing(
            f"Workflow {workflow_id} does not exist.",
            remedy="Push its definition first: calve push FILE.",
            workflow=workflow_id,
        )
    return found


def new_run(
    tools: Tools,
    workflow_id: str,
    version: str | int,
    *,
    run_params: Json,
    initiator: Initiator,
    now: int,
) -> Run:
    """Return the first run of a new instance, which has no number yet.

    Raises:
        WorkflowMissing: the workflow or the version does not exist.
    """
    workflow = known_workflow(tools, workflow_id)
    number = version_number(tools, workflow_id, version, workflow)
    definition = tools.blueprints.get(workflow_id, number).workflow
    of_tree = definition.instance_step_concurrency
    properties: dict[str, Any] = dict(workflow.properties)
    uuid = tools.new_id()
    return Run(
        uuid=uuid,
        workflow_id=workflow_id,
        instance_id=0,
        run_id=1,
        version_id=number,
        owner_workflow=workflow_id,
        root_uuid=uuid,
        initiator=initiator,
        priority=_PRIORITIES[definition.criticality],
        properties={**properties, "instance_step_concurrency": of_tree} if of_tree else properties,
        run_params=run_params,
        created_at=now,
    )


def version_number(tools: Tools, workflow_id: str, version: str | int, workflow: WorkflowRecord | None = None) -> int:
    """Return the number of a version of a workflow, given as active, latest, default, or a number.

    Raises:
        WorkflowMissing: the workflow or the version does not exist.
    """
    workflow = workflow or known_workflow(tools, workflow_id)
    number = _number(tools, workflow, str(version).lower())
    if number is None:
        raise WorkflowMissing(
            f"Workflow {workflow_id} has no version {version}.",
            remedy=f"The latest is {workflow.latest_version}, the active one {workflow.active_version or 'none'}.",
            workflow=workflow_id,
        )
    return number


def _number(tools: Tools, workflow: WorkflowRecord, selector: str) -> int | None:
    """Return the number of a version, given as active, latest, default (active, else latest), or a number."""
    match selector:
        case "active":
            return workflow.active_version
        case "latest":
            return workflow.latest_version
        case "default":
            return workflow.active_version or workflow.latest_version
        case number if number in {str(workflow.active_version), str(workflow.latest_version)}:
            return int(number)
        case number:
            found = tools.state.version(workflow.workflow_id, number)
            return None if found is None else found.version_id


def find_workflow(tools: Tools, workflow_id: str, version: str) -> Workflow | None:
    """Return a workflow in a version; None if there is none."""
    record = tools.state.workflow(workflow_id)
    number = None if record is None else _number(tools, record, version.lower())
    return None if number is None else tools.blueprints.get(workflow_id, number).workflow


def unknown_run_params(tools: Tools, run: Run, before: Run | None = None) -> list[UnknownParam]:
    """Return the params given to a run that neither its definition nor its previous run knows."""

    def known() -> KnownParams:
        workflow = tools.blueprints.get(run.owner_workflow, run.version_id).workflow
        found = known_to_workflow(workflow, tools.vocabulary, partial(find_workflow, tools), tools.files)
        return found.also(before.params if before else ())

    return unknown_params(f"Workflow {run.workflow_id}", run.run_params, known)


def unknown_step_params(tools: Tools, run: Run, given: Mapping[str, Json]) -> list[UnknownParam]:
    """Return the params that a restart gives to steps that do not know them."""
    workflow = tools.blueprints.get(run.owner_workflow, run.version_id).workflow
    return [
        param
        for step in workflow.all_steps()
        for param in unknown_params(
            f"Step {step.id} of workflow {run.owner_workflow}",
            given.get(step.id, {}),
            partial(known_to_step, step, workflow, tools.vocabulary),
        )
    ]


def ended_run(run: Run, status: RunStatus, run_status: RunStatus, now: int) -> Run:
    """Return a run that has ended."""
    return replace(
        run,
        status=status,
        run_status=run_status,
        ended_at=now,
        is_queued=False,
        is_blocking=status is RunStatus.FAILED,
        action=None,
        timeout_at=None,
    )


def restarted_run(
    before: Run, *, uuid: str, policy: RunPolicy, run_params: Json, restart: Restart, now: int, **changes: Any
) -> Run:
    """Return the run that restarts an instance after its latest run."""
    return replace(
        before,
        uuid=uuid,
        run_id=before.run_id + 1,
        status=RunStatus.CREATED,
        run_status=RunStatus.CREATED,
        policy=policy,
        run_params=run_params,
        params={},
        restart=restart,
        carried={},
        is_queued=False,
        is_latest=True,
        is_blocking=False,
        action=None,
        message="",
        timeline=(),
        created_at=now,
        started_at=None,
        ended_at=None,
        timeout_at=None,
        seq=0,
        **{"request_id": None, **changes},
    )
