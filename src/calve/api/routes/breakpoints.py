"""Breakpoints: where attempts pause, and how they go on."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.acting import Asking, Blocking
from calve.api.answers import Document
from calve.api.bodies import BreakpointRequest
from calve.api.callers import Call
from calve.api.documents import breakpoint_json, paused_json
from calve.api.identifiers import NAME, AttemptId, InstanceId, RunId, StepPath, WorkflowId, number_of, step_address
from calve.api.models import BreakpointDeleted
from calve.api.policy import READ_SOMEWHERE, RUN, RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.engine import Action, Breakpoint, Engine
from calve.engine.addresses import find_attempt
from calve.engine.views.models import LogEvent
from calve.errors import Conflict

routes = Routes("breakpoints")
_Name = Annotated[str, Query(alias="workflowId", pattern=f"^{NAME}$")]
_Step = Annotated[str, Query(alias="stepId", pattern=f"^{NAME}$")]


@routes.post("/workflows/steps/breakpoints", "add_breakpoint", RUN_SOMEWHERE, shapes.StepBreakpoint)
def add(call: Call, request: BreakpointRequest) -> Response:
    """Let attempts of a step pause before they begin."""
    call.require(Permission.RUN, request.workflow_id)
    point = Breakpoint(
        request.workflow_id,
        request.step_id,
        request.workflow_version_id,
        request.workflow_instance_id,
        request.workflow_run_id,
        request.step_attempt_id,
        created_by=call.name,
        created_at=call.engine.tools.clock(),
    )
    call.engine.pause(point)
    return Document(breakpoint_json(point))


@routes.get("/workflows/steps/breakpoints", "list_breakpoints", READ_SOMEWHERE, list[shapes.StepBreakpoint])
def list_breakpoints(call: Call, workflow_id: _Name, step_id: _Step) -> Response:
    """Return the breakpoints at a step."""
    call.require(Permission.READ, workflow_id)
    points = call.engine.state.breakpoints(workflow_id)
    return Document([breakpoint_json(point) for point in points if point.step_id == step_id])


@routes.delete("/workflows/steps/breakpoints", "delete_breakpoint", RUN_SOMEWHERE, shapes.BreakpointDeleted)
def delete(
    call: Call,
    workflow_id: _Name,
    step_id: _Step,
    *,
    resume: Annotated[bool, Query(description="Let the attempts that are paused go on.")] = True,
) -> Response:
    """Take the breakpoint at a step away."""
    call.require(Permission.RUN, workflow_id)
    point = Breakpoint(workflow_id, step_id)
    if resume:
        resumed = len(call.engine.unpause(point, by=call.name))
    else:
        call.engine.remove_breakpoint(point)
        resumed = 0
    message = f"{call.name} has removed the breakpoint. [{resumed}] steps were resumed."
    event = LogEvent(timestamp=call.engine.tools.clock(), message=message)
    return Document(BreakpointDeleted(workflow_id=workflow_id, step_id=step_id, timeline_event=event).as_json())


@routes.get(
    "/workflows/steps/breakpoints/paused-step-attempts",
    "list_paused_attempts",
    READ_SOMEWHERE,
    list[shapes.PausedAttempt],
)
def paused(call: Call, workflow_id: _Name, step_id: _Step) -> Response:
    """Return the attempts of a step that are paused."""
    call.require(Permission.READ, workflow_id)
    state = call.engine.state
    found = ((state.load(attempt.run_uuid), attempt) for attempt in state.paused(workflow_id, step_id))
    return Document([paused_json(snapshot.run, attempt) for snapshot, attempt in found if snapshot])


@routes.put(
    "/workflows/steps/breakpoints/{workflow_id}/instances/{instance_id}/runs/{run_id}/steps/{step_id:path}"
    "/attempts/{attempt_id}/actions/resume",
    "resume_attempt",
    RUN,
    shapes.StepAction,
    is_slow=True,
)
def resume_attempt(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    run_id: RunId,
    step_id: StepPath,
    attempt_id: AttemptId,
    *,
    blocking: Blocking = True,
) -> Response:
    """Let one paused attempt go on."""
    address = step_address(workflow_id, instance_id, step_id, number_of(run_id))
    call.require_inside(Permission.RUN, address)
    _, attempt = find_attempt(call.engine.state, address, number_of(attempt_id))
    if attempt.is_superseded:
        raise Conflict(f"{address}: a later attempt has taken the place of {attempt.attempt_id}.", remedy="")
    return Asking(call, address, blocking).do(Action.RESUME, Engine.resume)
