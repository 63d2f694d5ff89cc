"""What is done to workflows and their instances: activate, stop, kill, unblock."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import NOTHING, ActionRequest, Why
from calve.api.callers import Call, Caller
from calve.api.documents import action_event
from calve.api.identifiers import InstanceId, RunId, Version, WorkflowId, number_of
from calve.api.models import InstanceAction, WorkflowAction
from calve.api.policy import EDIT, RUN
from calve.api.routing import Routes
from calve.engine import Action, Address, Engine
from calve.engine.addresses import find_run
from calve.engine.model import Run

routes = Routes("controls")
_ACCEPTED = "The action is accepted and is still running. Please check it again."


@routes.put("/workflows/{workflow_id}/versions/{version}/actions/activate", "activate", EDIT, shapes.WorkflowAction)
def activate(call: Call, workflow_id: WorkflowId, version: Version) -> Response:
    """Make a version the active one."""
    workflow = call.engine.activate(workflow_id, version.lower())
    active = workflow.active_version or 0
    return Document(_of_workflow(call, workflow_id, active, "ACTIVATE", f"Version [{active}] is active now."))


@routes.put("/workflows/{workflow_id}/actions/deactivate", "deactivate", EDIT, shapes.WorkflowAction)
def deactivate(call: Call, workflow_id: WorkflowId) -> Response:
    """Leave a workflow without an active version: nothing starts it by itself any more."""
    before = call.engine.workflow(workflow_id).active_version or 0
    call.engine.deactivate(workflow_id)
    return Document(_of_workflow(call, workflow_id, before, "DEACTIVATE", "No version is active any more."))


def _of_workflow(call: Caller, workflow_id: str, version: int, action: str, message: str) -> dict[str, Any]:
    event = action_event(action, call.name, call.engine.tools.clock(), message)
    return WorkflowAction(workflow_id=workflow_id, workflow_version_id=version, timeline_event=event).as_json()


@routes.put("/workflows/{workflow_id}/actions/stop", "stop_workflow", RUN, shapes.ActionEvent, status=202)
def stop_all(call: Call, workflow_id: WorkflowId, why: Why = None) -> Response:
    """Stop every instance of a workflow that is not over."""
    runs = call.engine.stop_all(workflow_id, by=call.name, reason=(why or NOTHING).reason)
    return Document(_of_all(call, Action.STOP, runs), 202)


@routes.put("/workflows/{workflow_id}/actions/kill", "kill_workflow", RUN, shapes.ActionEvent, status=202)
def kill_all(call: Call, workflow_id: WorkflowId, why: Why = None) -> Response:
    """Kill every instance of a workflow that is not over."""
    runs = call.engine.kill_all(workflow_id, by=call.name, reason=(why or NOTHING).reason)
    return Document(_of_all(call, Action.KILL, runs), 202)


@routes.put("/workflows/{workflow_id}/actions/unblock", "unblock_workflow", RUN, shapes.ActionEvent)
def unblock_all(call: Call, workflow_id: WorkflowId) -> Response:
    """Let STRICT_SEQUENTIAL go on in spite of all failed instances."""
    return Document(_of_all(call, Action.UNBLOCK, call.engine.unblock_all(workflow_id, by=call.name)))


def _of_all(call: Caller, action: Action, runs: list[Run]) -> dict[str, Any]:
    message = f"{action} was asked of [{len(runs)}] instances."
    return action_event(action, call.name, call.engine.tools.clock(), message).as_json()


_INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"


@routes.put(f"{_INSTANCE}/actions/stop", "stop_instance", RUN, shapes.InstanceAction)
def stop(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, why: Why = None) -> Response:
    """Stop an instance: it ends as STOPPED."""
    return _asked(call, Address(workflow_id, instance_id), Action.STOP, Engine.stop, why)


@routes.put(f"{_INSTANCE}/actions/kill", "kill_instance", RUN, shapes.InstanceAction)
def kill(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, why: Why = None) -> Response:
    """Kill an instance: it ends as FAILED."""
    return _asked(call, Address(workflow_id, instance_id), Action.KILL, Engine.kill, why)


@routes.put(f"{_INSTANCE}/actions/unblock", "unblock_instance", RUN, shapes.InstanceAction)
def unblock(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Let STRICT_SEQUENTIAL go on in spite of this failed instance."""
    return _asked(call, Address(workflow_id, instance_id), Action.UNBLOCK, _unblocked, None)


@routes.put(f"{_INSTANCE}/runs/{{run_id}}/actions/stop", "stop_run", RUN, shapes.InstanceAction)
def stop_run(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId, why: Why = None) -> Response:
    """Stop a run of an instance."""
    return _asked(call, Address(workflow_id, instance_id, number_of(run_id)), Action.STOP, Engine.stop, why)


@routes.put(f"{_INSTANCE}/runs/{{run_id}}/actions/kill", "kill_run", RUN, shapes.InstanceAction)
def kill_run(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId, why: Why = None) -> Response:
    """Kill a run of an instance."""
    return _asked(call, Address(workflow_id, instance_id, number_of(run_id)), Action.KILL, Engine.kill, why)


@routes.put(f"{_INSTANCE}/runs/{{run_id}}/actions/unblock", "unblock_run", RUN, shapes.InstanceAction)
def unblock_run(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Response:
    """Let STRICT_SEQUENTIAL go on in spite of this failed run."""
    return _asked(call, Address(workflow_id, instance_id, number_of(run_id)), Action.UNBLOCK, _unblocked, None)


def _unblocked(engine: Engine, address: Address, *, by: str, reason: str) -> Run:
    del reason
    return engine.unblock(address, by=by)


def _asked(
    call: Caller, address: Address, action: Action, do: Callable[..., Run], why: ActionRequest | None
) -> Response:
    reason = (why or NOTHING).reason
    do(call.engine, address, by=call.name, reason=reason)
    run = find_run(call.engine.state, address)
    is_done = action is Action.UNBLOCK or run.status.is_terminal
    message = f"{action} was asked of {address}."
    answer = InstanceAction(
        workflow_id=run.workflow_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_instance_status=run.status.value,
        info="The action is done." if is_done else _ACCEPTED,
        timeline_event=action_event(action, call.name, call.engine.tools.clock(), message, reason),
        completed=is_done,
    )
    return Document(answer.as_json())
