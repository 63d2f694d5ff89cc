"""Steps of instances: how they stand, and what is done to them."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Body, Query
from starlette.responses import Response

from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import ActionRequest
from calve.api.documents import action_event, present
from calve.api.effects import wait_for_effect
from calve.api.finding import attempt_at
from calve.api.identifiers import AttemptId, InstanceId, RunId, StepPath, WorkflowId, number_of, step_address
from calve.api.policy import READ, READ_SOMEWHERE, RUN
from calve.api.routing import Routes
from calve.api.services import Call, Caller
from calve.engine import STEP_ACTIONS, Action, Address, Engine
from calve.engine.addresses import find, find_run
from calve.engine.views import attempt_json, overview_json, overview_of

routes = Routes("steps")
Blocking = Annotated[bool, Query(description="Wait up to 5 seconds for the effect.")]
Why = Annotated[ActionRequest | None, Body()]
_INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"
_STEP = f"{_INSTANCE}/steps/{{step_id:path}}"
_NOTHING = ActionRequest()


@routes.get("/workflows/steps/instances/action-map", "get_step_actions", READ_SOMEWHERE)
def action_map(call: Call) -> Response:
    """Return what can be done with a step, by its status."""
    del call
    return Document({status.value: [action.value for action in actions] for status, actions in STEP_ACTIONS.items()})


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
    return Document(overview_json(overview_of(call.engine.tools, run))["steps"])


@routes.get(
    f"{_INSTANCE}/runs/{{run_id}}/steps/{{step_id:path}}/attempts/{{attempt_id}}", "get_attempt", READ, shapes.Attempt
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
    address = step_address(workflow_id, instance_id, step_id, number_of(run_id))
    run, attempt = attempt_at(call.engine.state, address, number_of(attempt_id))
    return Document(attempt_json(run, attempt))


@routes.put(f"{_STEP}/actions/stop", "stop_step", RUN, shapes.StepAction)
def stop(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    why: Why = None,
    *,
    blocking: Blocking = True,
) -> Response:
    """Stop a step: it ends as STOPPED."""
    reason = (why or _NOTHING).reason
    address = step_address(workflow_id, instance_id, step_id)
    call.engine.stop(address, by=call.name, reason=reason)
    return _asked(call, address, Action.STOP, reason, blocking=blocking)


@routes.put(f"{_STEP}/actions/kill", "kill_step", RUN, shapes.StepAction)
def kill(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    why: Why = None,
    *,
    blocking: Blocking = True,
) -> Response:
    """Kill a step: it ends as FATALLY_FAILED."""
    reason = (why or _NOTHING).reason
    address = step_address(workflow_id, instance_id, step_id)
    call.engine.kill(address, by=call.name, reason=reason)
    return _asked(call, address, Action.KILL, reason, blocking=blocking)


@routes.put(f"{_STEP}/actions/skip", "skip_step", RUN, shapes.StepAction)
def skip(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
) -> Response:
    """Skip a step: those after it go on. One that has ended is skipped by a restart."""
    return _done(call, step_address(workflow_id, instance_id, step_id), Action.SKIP, Engine.skip, blocking=blocking)


@routes.put(f"{_STEP}/actions/bypass", "bypass_step", RUN, shapes.StepAction)
def bypass(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
) -> Response:
    """Let a step go on without the signals that it waits for."""
    address = step_address(workflow_id, instance_id, step_id)
    return _done(call, address, Action.BYPASS_STEP_DEPENDENCIES, Engine.bypass, blocking=blocking)


@routes.put(f"{_STEP}/actions/resume", "resume_step", RUN, shapes.StepAction)
def resume(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
) -> Response:
    """Let a paused step go on."""
    return _done(call, step_address(workflow_id, instance_id, step_id), Action.RESUME, Engine.resume, blocking=blocking)


@routes.put(f"{_STEP}/actions/approve", "approve_step", RUN, shapes.StepAction)
def approve(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    why: Why = None,
    *,
    blocking: Blocking = True,
) -> Response:
    """Agree to what an Approval step asks."""
    comment = (why or _NOTHING).comment
    address = step_address(workflow_id, instance_id, step_id)
    call.engine.approve(address, by=call.name, comment=comment)
    return _asked(call, address, Action.APPROVE, comment, blocking=blocking)


@routes.put(f"{_STEP}/actions/reject", "reject_step", RUN, shapes.StepAction)
def reject(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    why: Why = None,
    *,
    blocking: Blocking = True,
) -> Response:
    """Refuse what an Approval step asks."""
    comment = (why or _NOTHING).comment
    address = step_address(workflow_id, instance_id, step_id)
    call.engine.reject(address, by=call.name, comment=comment)
    return _asked(call, address, Action.REJECT, comment, blocking=blocking)


def _done(call: Caller, address: Address, action: Action, do: Callable[..., object], *, blocking: bool) -> Response:
    do(call.engine, address, by=call.name)
    return _asked(call, address, action, "", blocking=blocking)


def _asked(call: Caller, address: Address, action: Action, reason: str, *, blocking: bool) -> Response:
    if blocking:
        wait_for_effect(call.engine.state, address, action)
    found = find(call.engine.state, address)
    status = found.attempt.status.value if found.attempt else "NOT_CREATED"
    times = {f"{moment}_time": at for moment, at in (found.attempt.times if found.attempt else {}).items()}
    message = f"{action} was asked of {address}."
    return Document(
        present(
            workflow_id=found.run.workflow_id,
            workflow_instance_id=found.run.instance_id,
            workflow_run_id=found.run.run_id,
            step_id=found.step_id,
            step_attempt_id=found.attempt.attempt_id if found.attempt else None,
            step_runtime_state={"status": status, **times},
            timeline_event=action_event(action, call.name, call.engine.tools.clock(), message, reason),
        )
    )


@routes.get(_STEP, "get_step", READ, shapes.Attempt)
def get_step(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath) -> Response:
    """Return a step as its newest attempt leaves it."""
    run, attempt = attempt_at(call.engine.state, step_address(workflow_id, instance_id, step_id), None)
    return Document(attempt_json(run, attempt))
