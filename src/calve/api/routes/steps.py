"""Steps of instances: how they stand, and what is done to them."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from calve.access import Permission, namespaces
from calve.api import shapes
from calve.api.acting import Asking, Blocking
from calve.api.answers import Document
from calve.api.bodies import NOTHING, Why
from calve.api.callers import Call, Caller
from calve.api.identifiers import AttemptId, InstanceId, RunId, StepPath, WorkflowId, number_of, step_address
from calve.api.paging import Paged, bad_cursor, page_json
from calve.api.policy import READ, READ_SOMEWHERE, RUN
from calve.api.routing import Routes
from calve.engine import STEP_ACTIONS, Action, Address, Engine
from calve.engine.addresses import find_attempt, find_run
from calve.engine.views import approval_json, attempt_json, overview_json, overview_of, step_source

routes = Routes("steps")
_INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"
_STEP = f"{_INSTANCE}/steps/{{step_id:path}}"


@routes.get("/workflows/steps/instances/action-map", "get_step_actions", READ_SOMEWHERE)
def action_map(call: Call) -> Response:
    """Return what can be done with a step, by its status."""
    del call
    return Document({status.value: [action.value for action in actions] for status, actions in STEP_ACTIONS.items()})


@routes.get("/approvals", "list_approvals", READ_SOMEWHERE, shapes.Approvals)
def list_approvals(
    call: Call, page: Paged, workflow_id: Annotated[str | None, Query(max_length=128)] = None
) -> Response:
    """List the Approval steps that wait for people, oldest first: what they ask, and who may answer."""
    page = page.forward()
    cursor = page.cursor or ""
    if not (cursor.isascii() and cursor.isprintable()):
        raise bad_cursor(cursor)
    found = call.engine.approvals(
        workflow_id=workflow_id,
        after=cursor,
        limit=page.limit + 1,
        namespaces=namespaces(call.principal, Permission.READ),
    )
    return Document(page_json(found, page, approval_json, lambda approval: approval.attempt.uuid))


@routes.get(f"{_INSTANCE}/steps", "list_steps", READ, list[shapes.Step])
def list_steps(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Return the steps of an instance, as the latest run leaves them."""
    return _steps(call, Address(workflow_id, instance_id))


@routes.get(f"{_INSTANCE}/runs/{{run_id}}/steps", "list_run_steps", READ, list[shapes.Step])
def list_run_steps(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Response:
    """Return the steps of a run."""
    return _steps(call, Address(workflow_id, instance_id, number_of(run_id)))


def _steps(call: Caller, address: Address) -> Response:
    run = find_run(call.engine.state, address)
    return Document(overview_json(overview_of(call.engine.tools, run, call.may_read))["steps"])


@routes.get(
    f"{_INSTANCE}/runs/{{run_id}}/steps/{{step_id:path}}/attempts/{{attempt_id}}",
    "get_attempt",
    READ,
    shapes.StepInstance,
)
def get_attempt(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    run_id: RunId,
    step_id: StepPath,
    attempt_id: AttemptId,
) -> Response:
    """Return an attempt of a step."""
    return _attempt(call, step_address(workflow_id, instance_id, step_id, number_of(run_id)), number_of(attempt_id))


def _attempt(call: Caller, address: Address, attempt_id: int | None = None) -> Response:
    call.require_inside(Permission.READ, address)
    run, attempt = find_attempt(call.engine.state, address, attempt_id)
    return Document(attempt_json(run, attempt, step_source(call.engine.tools, run, attempt, call.may_read)))


async def _asking(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
) -> Asking:
    return Asking(call, step_address(workflow_id, instance_id, step_id), blocking)


_Asked = Annotated[Asking, Depends(_asking)]


@routes.put(f"{_STEP}/actions/stop", "stop_step", RUN, shapes.StepAction, is_slow=True)
def stop(asked: _Asked, why: Why = None) -> Response:
    """Stop a step: it ends as STOPPED."""
    return asked.do(Action.STOP, Engine.stop, reason=(why or NOTHING).reason)


@routes.put(f"{_STEP}/actions/kill", "kill_step", RUN, shapes.StepAction, is_slow=True)
def kill(asked: _Asked, why: Why = None) -> Response:
    """Kill a step: it ends as FATALLY_FAILED."""
    return asked.do(Action.KILL, Engine.kill, reason=(why or NOTHING).reason)


@routes.put(f"{_STEP}/actions/skip", "skip_step", RUN, shapes.StepAction, is_slow=True)
def skip(asked: _Asked) -> Response:
    """Skip a step: those after it go on. One that has ended is skipped by a restart."""
    return asked.do(Action.SKIP, Engine.skip)


@routes.put(f"{_STEP}/actions/bypass", "bypass_step", RUN, shapes.StepAction, is_slow=True)
def bypass(asked: _Asked) -> Response:
    """Let a step go on without the signals that it waits for."""
    return asked.do(Action.BYPASS_STEP_DEPENDENCIES, Engine.bypass)


@routes.put(f"{_STEP}/actions/resume", "resume_step", RUN, shapes.StepAction, is_slow=True)
def resume(asked: _Asked) -> Response:
    """Let a paused step go on."""
    return asked.do(Action.RESUME, Engine.resume)


@routes.put(f"{_STEP}/actions/approve", "approve_step", RUN, shapes.StepAction, is_slow=True)
def approve(asked: _Asked, why: Why = None) -> Response:
    """Agree to what an Approval step asks."""
    return asked.do(Action.APPROVE, Engine.approve, comment=(why or NOTHING).comment)


@routes.put(f"{_STEP}/actions/reject", "reject_step", RUN, shapes.StepAction, is_slow=True)
def reject(asked: _Asked, why: Why = None) -> Response:
    """Refuse what an Approval step asks."""
    return asked.do(Action.REJECT, Engine.reject, comment=(why or NOTHING).comment)


@routes.get(_STEP, "get_step", READ, shapes.StepInstance)
def get_step(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath) -> Response:
    """Return a step as its newest attempt leaves it."""
    return _attempt(call, step_address(workflow_id, instance_id, step_id))
