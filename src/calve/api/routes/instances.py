"""Instances and their runs."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Body, Query
from starlette.responses import PlainTextResponse, Response

from calve.access import Permission, namespaces
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import NodeRequest
from calve.api.callers import Call, Caller
from calve.api.documents import present
from calve.api.identifiers import InstanceId, RunId, WorkflowId, number_of
from calve.api.paging import Paged, bad_cursor, page_json, page_of_numbers
from calve.api.policy import READ, READ_SOMEWHERE
from calve.api.routing import Routes
from calve.definition.model.steps import Step
from calve.engine import RUN_ACTIONS, Address, RunStatus
from calve.engine.addresses import find, find_run
from calve.engine.model import Run
from calve.engine.views import instance_json, overview_json, overview_of
from calve.errors import RequestInvalid, WorkflowMissing

routes = Routes("instances")
Statuses = Annotated[list[RunStatus] | None, Query(alias="status", description="Only those in one of these states.")]


@routes.get("/instances", "list_instances", READ_SOMEWHERE, shapes.Instances)
def list_all(
    call: Call,
    page: Paged,
    statuses: Statuses = None,
    workflow_id: Annotated[str | None, Query(max_length=128)] = None,
) -> Response:
    """List instances of all workflows, newest first."""
    page = page.forward()
    found = call.engine.state.instances(
        workflow_id=workflow_id,
        statuses=statuses or (),
        before=place_of(page.cursor) if page.cursor else None,
        limit=page.limit + 1,
        namespaces=namespaces(call.principal, Permission.READ),
    )
    return Document(page_json(found, page, instance_json, cursor_of))


def cursor_of(run: Run) -> str:
    """Return the cursor that a list goes on with after a run."""
    return f"{run.created_at}.{run.uuid}"


def place_of(cursor: str) -> tuple[int, str]:
    """Return where a cursor of ``cursor_of`` points to.

    Raises:
        RequestInvalid: it is none.
    """
    time, dot, uuid = cursor.partition(".")
    if not (dot and uuid.isascii() and uuid.isprintable() and time.isascii() and time.isdecimal() and len(time) <= 18):
        raise bad_cursor(cursor)
    return int(time), uuid


@routes.get("/workflows/instances/action-map", "get_instance_actions", READ_SOMEWHERE)
def action_map(call: Call) -> Response:
    """Return what can be done with an instance, by its status."""
    del call
    return Document({status.value: [action.value for action in actions] for status, actions in RUN_ACTIONS.items()})


@routes.get("/workflows/instances/inline-workflow-id", "get_inline_workflow_id", READ_SOMEWHERE)
def inline_workflow_id(call: Call, nodes: Annotated[list[NodeRequest], Body(min_length=2, max_length=20)]) -> Response:
    """Return the name under which the iterations of a loop are kept.

    The first node is the instance, the others the iterations down to the one that holds the last one's step.
    """
    root, last = nodes[0], nodes[-1]
    if root.workflow_id is None or last.step_id is None:
        raise RequestInvalid("The first node has to name its workflow, the last one its step.")
    call.require(Permission.READ, root.workflow_id)
    run = find_run(call.engine.state, Address(root.workflow_id, root.instance_id))
    workflow = call.engine.tools.blueprints.get(run.owner_workflow, run.version_id).workflow
    loops = _loops(workflow.steps, last.step_id)
    if loops is None or len(loops) != len(nodes) - 1:
        raise WorkflowMissing(f"There are not {len(nodes) - 1} loops around step {last.step_id}.")
    inside = zip(loops, nodes[1:], strict=True)
    path = [part for loop, node in inside for part in (loop, str(node.instance_id))]
    found = find(call.engine.state, Address(root.workflow_id, root.instance_id, path=(*path, last.step_id)))
    return PlainTextResponse(found.run.workflow_id)


def _loops(steps: tuple[Step, ...], step_id: str) -> list[str] | None:
    """Return the loops around a step, from the outermost."""
    for step in steps:
        if step.id == step_id:
            return []
        inside = _loops(getattr(step, "steps", ()), step_id)
        if inside is not None:
            return [step.id, *inside]
    return None


@routes.get("/workflows/{workflow_id}/instances", "list_workflow_instances", READ, shapes.Instances)
def list_of_workflow(call: Call, workflow_id: WorkflowId, page: Paged, statuses: Statuses = None) -> Response:
    """List the instances of a workflow, the highest number first."""
    cursor = page.number()
    if page.is_backward:
        place: dict[str, int | None] = {"after": cursor or 0}
    else:
        place = {"before": cursor}
    found = call.engine.state.numbered(workflow_id, statuses=statuses or (), limit=page.limit + 1, **place)
    return Document(page_json(found, page, instance_json, lambda run: str(run.instance_id)))


@routes.get("/workflows/{workflow_id}/instances/{instance_id}", "get_instance", READ, shapes.WorkflowInstance)
def get_instance(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Return an instance as its latest run leaves it."""
    return _shown(call, Address(workflow_id, instance_id))


@routes.get("/workflows/{workflow_id}/instances/{instance_id}/runs", "list_runs", READ, shapes.Instances)
def list_runs(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, page: Paged) -> Response:
    """List the runs of an instance, newest first."""
    runs = call.engine.state.runs(workflow_id, instance_id)
    return Document(page_of_numbers(runs, page, lambda run: run.run_id, instance_json))


@routes.get("/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}", "get_run", READ, shapes.WorkflowInstance)
def get_run(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Response:
    """Return a run of an instance."""
    return _shown(call, Address(workflow_id, instance_id, number_of(run_id)))


@routes.get("/workflows/{workflow_id}/instances/{instance_id}/inline-path", "get_inline_path", READ)
def inline_path(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Return the way to an iteration, from the instance that it belongs to."""
    run = find_run(call.engine.state, Address(workflow_id, instance_id))
    if not run.is_inline:
        raise RequestInvalid(f"{workflow_id} instance {instance_id} is no iteration of a loop.")
    return Document([*_ancestors(call, run)][::-1])


def _ancestors(call: Caller, run: Run) -> Iterator[dict[str, Any]]:
    """Yield an iteration and what is around it, from the inside."""
    yield _node(run, None)
    while run.is_inline and run.parent is not None:
        step_id = run.parent.step_id
        snapshot = call.engine.state.load(run.parent.run_uuid)
        if snapshot is None:
            return
        run = snapshot.run
        yield _node(run, step_id)


def _node(run: Run, step_id: str | None) -> dict[str, Any]:
    return present(workflow_id=run.workflow_id, instance_id=run.instance_id, run_id=run.run_id, step_id=step_id)


def _shown(call: Caller, address: Address) -> Response:
    run = find_run(call.engine.state, address)
    return Document(overview_json(overview_of(call.engine.tools, run, call.may_read)))
