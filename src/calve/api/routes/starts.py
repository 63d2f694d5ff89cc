"""Starts and restarts of instances."""

from typing import Annotated, Any

from fastapi import Body
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import RestartRequest, StartRequest, StepRestartRequest
from calve.api.callers import Call
from calve.api.identifiers import InstanceId, StepPath, Version, WorkflowId, step_address
from calve.api.policy import RUN
from calve.api.routing import Routes
from calve.engine import Address
from calve.engine.engine import BATCH
from calve.engine.views import restart_plan_json, started_json

routes = Routes("starts")


@routes.post("/workflows/{workflow_id}/versions/{version}/actions/start", "start_workflow", RUN, shapes.StartResponse)
def start(call: Call, workflow_id: WorkflowId, version: Version, request: StartRequest) -> Response:
    """Start an instance; the same request id starts it once."""
    started = call.engine.start(workflow_id, version=version, **request.as_start(call.initiator))
    return Document(started_json(started))


@routes.post("/workflows/{workflow_id}/actions/start-batch", "start_batch", RUN)
def start_batch(
    call: Call,
    workflow_id: WorkflowId,
    requests: Annotated[list[StartRequest], Body(min_length=1, max_length=BATCH)],
) -> Response:
    """Start some instances of the active version together, all or none."""
    started = call.engine.start_all(workflow_id, [request.as_start(call.initiator) for request in requests])
    return Document({"elements": [started_json(one) for one in started]})


@routes.post(
    "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/actions/restart",
    "restart_step",
    RUN,
    shapes.StepRestartResponse,
)
def restart_step(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, request: StepRestartRequest
) -> Response:
    """Run a step again, and what comes after it."""
    address = step_address(workflow_id, instance_id, step_id)
    call.require_inside(Permission.RUN, address)
    started = call.engine.restart(address, **request.as_restart(address.path[-1], call.initiator))
    return Document({**started_json(started), "step_id": step_id})


@routes.post(
    "/workflows/{workflow_id}/instances/{instance_id}/actions/restart", "restart_instance", RUN, shapes.StartResponse
)
def restart(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, request: RestartRequest) -> Response:
    """Run an instance again: what is incomplete, or everything."""
    address = Address(workflow_id, instance_id)
    return Document(started_json(call.engine.restart(address, **request.as_restart(call.initiator))))


@routes.post("/workflows/{workflow_id}/instances/{instance_id}/actions/plan-restart", "plan_restart", RUN)
def plan_restart(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, request: RestartRequest) -> Response:
    """Return what a restart would keep and what it would run again; nothing is started."""
    return _planned(call, Address(workflow_id, instance_id), request.as_restart(call.initiator))


@routes.post(
    "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/actions/plan-restart",
    "plan_step_restart",
    RUN,
)
def plan_step_restart(
    call: Call, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, request: StepRestartRequest
) -> Response:
    """Return what a restart of a step would keep and what it would run again; nothing is started."""
    address = step_address(workflow_id, instance_id, step_id)
    call.require_inside(Permission.RUN, address)
    return _planned(call, address, request.as_restart(address.path[-1], call.initiator))


def _planned(call: Call, address: Address, asked: dict[str, Any]) -> Response:
    asked = {name: value for name, value in asked.items() if name != "request_id"}
    return Document(restart_plan_json(call.engine.plan_restart(address, **asked)))
