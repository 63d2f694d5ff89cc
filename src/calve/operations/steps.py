"""Steps of instances: their states, actions on them, breakpoints, and outputs of running attempts."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from calve.access import Permission, namespaces
from calve.engine import (
    STEP_ACTIONS,
    Action,
    Address,
    Attempt,
    Breakpoint,
    Engine,
    Found,
    Instances,
    StepStatus,
    dynamic_signal_names,
    find,
    find_attempt,
)
from calve.engine.views import (
    ActionEvent,
    LogEvent,
    RuntimeState,
    StepInstance,
    approval_json,
    approvals_of,
    attempt_json,
    run_json,
    runtime_state,
    step_source,
)
from calve.errors import ActionPending, Conflict, RequestInvalid, WorkflowMissing
from calve.operations import models, shapes
from calve.operations.arguments import (
    NAME,
    AttemptId,
    Blocking,
    InstanceId,
    OfWorkflow,
    RunId,
    StepPath,
    WorkflowId,
    number_of,
    step_address,
)
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.documents import action_event, breakpoint_json, paused_json
from calve.operations.instances import overview
from calve.operations.pages import FIRST, LIMIT, Page, bad_cursor, page_json
from calve.operations.policy import READ, READ_SOMEWHERE, RUN, RUN_SOMEWHERE
from calve.operations.requests import ActionRequest, BreakpointRequest, OutputRequest

_INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"
_STEP = f"{_INSTANCE}/steps/{{step_id:path}}"
_POINTS = "/workflows/steps/breakpoints"
_WorkflowId = Annotated[str, Argument(alias="workflowId", pattern=f"^{NAME}$")]
_StepId = Annotated[str, Argument(alias="stepId", pattern=f"^{NAME}$")]


class Steps(Topic):
    """Reads steps of instances, and performs actions on them."""

    __slots__ = ()
    tag = "steps"

    @operation("GET /workflows/steps/instances/action-map", READ_SOMEWHERE, id="get_step_actions")
    def step_actions(self) -> Document:
        """Return which actions are possible on a step, by its status."""
        return {status.value: [action.value for action in actions] for status, actions in STEP_ACTIONS.items()}

    def approvals(self, workflow_id: str | None = None) -> Iterator[Document]:
        """Yield the Approval steps that wait for people, oldest first: of a workflow, or of all of them."""
        return self.pages(self.list_approvals, workflow_id=workflow_id)

    @operation("GET /approvals", READ_SOMEWHERE, answer=shapes.Approvals)
    def list_approvals(self, page: Page = FIRST, workflow_id: OfWorkflow = None) -> Document:
        """List the Approval steps that wait for people, oldest first: what they ask, and who may answer."""
        page = page.forward()
        cursor = page.cursor or ""
        if not (cursor.isascii() and cursor.isprintable()):
            raise bad_cursor(cursor)
        found = self.call.engine.approvals(
            workflow_id=workflow_id,
            after=cursor,
            limit=page.limit + 1,
            namespaces=namespaces(self.call.principal, Permission.READ),
        )
        return page_json(found, page, approval_json, lambda approval: approval.attempt.uuid)

    @operation(f"GET {_INSTANCE}/steps", READ, id="list_steps", answer=list[shapes.Step])
    def steps(self, workflow_id: WorkflowId, instance_id: InstanceId) -> list[Document]:
        """Return the steps of an instance in its latest run."""
        return list(overview(self.call, Address(workflow_id, instance_id))["steps"])

    @operation(f"GET {_INSTANCE}/runs/{{run_id}}/steps", READ, id="list_run_steps", answer=list[shapes.Step])
    def run_steps(self, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> list[Document]:
        """Return the steps of a run."""
        return list(overview(self.call, Address(workflow_id, instance_id, number_of(run_id)))["steps"])

    def attempt(
        self, workflow_id: str, instance_id: int, step_id: str, attempt_id: int | str, *, run_id: int | str = "latest"
    ) -> Document:
        """Return an attempt of a step."""
        return self.get_attempt(workflow_id, instance_id, run_id, step_id, attempt_id)

    @operation(
        f"GET {_INSTANCE}/runs/{{run_id}}/steps/{{step_id:path}}/attempts/{{attempt_id}}", READ, answer=StepInstance
    )
    def get_attempt(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        run_id: RunId,
        step_id: StepPath,
        attempt_id: AttemptId,
    ) -> Document:
        """Return an attempt of a step."""
        address = step_address(workflow_id, instance_id, step_id, number_of(run_id))
        return _attempt(self.call, address, number_of(attempt_id))

    @operation(f"PUT {_STEP}/actions/stop", RUN, answer=models.StepAction, body=ActionRequest, is_slow=True)
    def stop_step(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        *,
        reason: str = "",
        blocking: Blocking = True,
    ) -> Document:
        """Stop a step: it ends as STOPPED."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.STOP, Engine.stop, is_blocking=blocking, reason=reason)

    @operation(f"PUT {_STEP}/actions/kill", RUN, answer=models.StepAction, body=ActionRequest, is_slow=True)
    def kill_step(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        *,
        reason: str = "",
        blocking: Blocking = True,
    ) -> Document:
        """Kill a step: it ends as FATALLY_FAILED."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.KILL, Engine.kill, is_blocking=blocking, reason=reason)

    @operation(f"PUT {_STEP}/actions/skip", RUN, answer=models.StepAction, is_slow=True)
    def skip_step(
        self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
    ) -> Document:
        """Skip a step; the steps after it continue. If it has ended, restart without it."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.SKIP, Engine.skip, is_blocking=blocking)

    @operation(f"PUT {_STEP}/actions/bypass", RUN, answer=models.StepAction, is_slow=True)
    def bypass_step(
        self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
    ) -> Document:
        """Continue a step without its signals."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.BYPASS_STEP_DEPENDENCIES, Engine.bypass, is_blocking=blocking)

    @operation(f"PUT {_STEP}/actions/resume", RUN, answer=models.StepAction, is_slow=True)
    def resume_step(
        self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, *, blocking: Blocking = True
    ) -> Document:
        """Resume a paused step."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.RESUME, Engine.resume, is_blocking=blocking)

    @operation(f"PUT {_STEP}/actions/approve", RUN, answer=models.StepAction, body=ActionRequest, is_slow=True)
    def approve_step(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        *,
        comment: str = "",
        blocking: Blocking = True,
    ) -> Document:
        """Approve an Approval step."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.APPROVE, Engine.approve, is_blocking=blocking, comment=comment)

    @operation(f"PUT {_STEP}/actions/reject", RUN, answer=models.StepAction, body=ActionRequest, is_slow=True)
    def reject_step(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        *,
        comment: str = "",
        blocking: Blocking = True,
    ) -> Document:
        """Reject an Approval step."""
        address = step_address(workflow_id, instance_id, step_id)
        return _act(self.call, address, Action.REJECT, Engine.reject, is_blocking=blocking, comment=comment)

    @operation(f"GET {_STEP}", READ, id="get_step", answer=StepInstance)
    def step(self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath) -> Document:
        """Return a step in its newest attempt."""
        return _attempt(self.call, step_address(workflow_id, instance_id, step_id))


def paused_rows(call: Caller, granted: Sequence[str], limit: int) -> list[Document]:
    """Return the paused attempts of some namespaces, oldest first."""
    state = call.engine.state
    return [
        {
            "workflow_id": one.address.workflow_id,
            "workflow_instance_id": one.address.instance_id,
            "path": "/".join(one.address.path),
            "step_attempt_id": one.attempt.attempt_id,
            "since": one.attempt.times.get("pause"),
        }
        for one in approvals_of(state, state.all_paused(limit=limit, namespaces=granted))
    ]


def _attempt(call: Caller, address: Address, attempt_id: int | None = None) -> Document:
    call.require_inside(Permission.READ, address)
    run, attempt = find_attempt(call.engine.state, address, attempt_id)
    return attempt_json(run, attempt, step_source(call.engine.tools, run, attempt, call.may_read))


def _act(
    call: Caller, address: Address, action: Action, act: Callable[..., object], *, is_blocking: bool, **said: str
) -> Document:
    """Request an action from the engine, and return the state of the step afterwards."""
    engine = call.engine
    call.require_inside(Permission.RUN, address)
    act(engine, address, by=call.name, **said)
    if is_blocking:
        wait_for_effect(engine.state, address, action)
    message = f"{action} requested for {address}."
    event = action_event(action, call.name, engine.tools.clock(), message, "".join(said.values()))
    return _acted(find(engine.state, address), event).as_json()


def _acted(found: Found, event: ActionEvent) -> models.StepAction:
    attempt = found.attempt
    return models.StepAction(
        workflow_id=found.run.workflow_id,
        workflow_instance_id=found.run.instance_id,
        workflow_run_id=found.run.run_id,
        step_id=found.step_id,
        step_attempt_id=attempt.attempt_id if attempt else None,
        step_runtime_state=runtime_state(attempt) if attempt else RuntimeState(status="NOT_CREATED"),
        timeline_event=event,
    )


EFFECT_SECONDS = 5.0
_OFTEN = 0.05
_LEAVING = {
    Action.BYPASS_STEP_DEPENDENCIES: StepStatus.WAITING_FOR_SIGNALS,
    Action.RESUME: StepStatus.PAUSED,
}
"""Actions after which a step continues; all others end it."""


def wait_for_effect(instances: Instances, address: Address, action: Action, seconds: float = EFFECT_SECONDS) -> None:
    """Wait until an action has taken effect.

    Raises:
        ActionPending: it has not yet; it will.
    """
    end = time.monotonic() + seconds
    while not _has_effect(find(instances, address).attempt, action):
        if time.monotonic() >= end:
            raise ActionPending(f"{action} of {address} is recorded, but has not taken effect yet.")
        time.sleep(_OFTEN)


def _has_effect(attempt: Attempt | None, action: Action) -> bool:
    if attempt is None:
        return True
    if action in _LEAVING:
        return attempt.status is not _LEAVING[action]
    return attempt.status.is_terminal


class Breakpoints(Steps):
    """Sets breakpoints, at which attempts pause, and resumes the attempts."""

    __slots__ = ()
    tag = "breakpoints"

    def pause(self, workflow_id: str, step_id: str, instance_id: int | None = None) -> Document:
        """Set a breakpoint: attempts of a step pause before they start, in one instance or in all."""
        return self.add_breakpoint(workflow_id, step_id, workflow_instance_id=instance_id or 0)

    @operation(
        f"POST {_POINTS}",
        RUN_SOMEWHERE,
        answer=models.StepBreakpoint,
        body=BreakpointRequest,
        is_repeatable=True,
    )
    def add_breakpoint(
        self,
        workflow_id: str,
        step_id: str,
        *,
        workflow_version_id: int = 0,
        workflow_instance_id: int = 0,
        workflow_run_id: int = 0,
        step_attempt_id: int = 0,
    ) -> Document:
        """Set a breakpoint: attempts of a step pause before they start."""
        self.call.require(Permission.RUN, workflow_id)
        point = Breakpoint(
            workflow_id,
            step_id,
            workflow_version_id,
            workflow_instance_id,
            workflow_run_id,
            step_attempt_id,
            created_by=self.call.name,
            created_at=self.call.engine.tools.clock(),
        )
        self.call.engine.pause(point)
        return breakpoint_json(point)

    @operation(f"GET {_POINTS}", READ_SOMEWHERE, id="list_breakpoints", answer=list[models.StepBreakpoint])
    def breakpoints(self, workflow_id: _WorkflowId, step_id: _StepId) -> list[Document]:
        """Return the breakpoints of a step."""
        self.call.require(Permission.READ, workflow_id)
        points = self.call.engine.state.breakpoints(workflow_id)
        return [breakpoint_json(point) for point in points if point.step_id == step_id]

    @operation("GET /breakpoints", READ_SOMEWHERE, id="list_all_breakpoints")
    def all_breakpoints(self) -> Document:
        """Return the breakpoints of all workflows, and the paused attempts."""
        points = self.call.engine.state.breakpoints()
        granted = namespaces(self.call.principal, Permission.READ)
        return {
            "breakpoints": [breakpoint_json(point) for point in points if self.call.may_read(point.workflow_id)],
            "paused": paused_rows(self.call, granted, LIMIT),
        }

    @operation(
        f"DELETE {_POINTS}",
        RUN_SOMEWHERE,
        id="delete_breakpoint",
        answer=models.BreakpointDeleted,
        is_repeatable=True,
    )
    def unpause(
        self,
        workflow_id: _WorkflowId,
        step_id: _StepId,
        *,
        instance_id: Annotated[
            int, Argument("Only the breakpoint of this instance.", alias="workflowInstanceId", ge=0, lt=2**63)
        ] = 0,
        resume: Annotated[bool, Argument("Resume the paused attempts.")] = True,
    ) -> Document:
        """Remove the breakpoint of a step."""
        self.call.require(Permission.RUN, workflow_id)
        point = Breakpoint(workflow_id, step_id, instance_id=instance_id)
        if resume:
            resumed = len(self.call.engine.unpause(point, by=self.call.name))
        else:
            self.call.engine.remove_breakpoint(point)
            resumed = 0
        message = f"{self.call.name} has removed the breakpoint. [{resumed}] steps were resumed."
        event = LogEvent(timestamp=self.call.engine.tools.clock(), message=message)
        return models.BreakpointDeleted(workflow_id=workflow_id, step_id=step_id, timeline_event=event).as_json()

    @operation(
        f"GET {_POINTS}/paused-step-attempts",
        READ_SOMEWHERE,
        id="list_paused_attempts",
        answer=list[models.PausedAttempt],
    )
    def paused(self, workflow_id: _WorkflowId, step_id: _StepId) -> list[Document]:
        """Return the paused attempts of a step."""
        self.call.require(Permission.READ, workflow_id)
        state = self.call.engine.state
        found = ((state.load(attempt.run_uuid), attempt) for attempt in state.paused(workflow_id, step_id))
        return [paused_json(snapshot.run, attempt) for snapshot, attempt in found if snapshot]

    def resume(self, workflow_id: str, step_id: str | None = None, instance_id: int | None = None) -> list[Document]:
        """Remove breakpoints of a workflow, a step, or a step of one instance, and resume the steps that they paused.

        Returns:
            The runs that continue.
        """
        if instance_id is None or step_id is None:
            given = {} if step_id is None else {"step_id": step_id}
            return list(self.resume_workflow(workflow_id, **given)["elements"])
        self.unpause(workflow_id, step_id.rpartition("/")[2], instance_id=instance_id, resume=False)
        return [self.resume_step(workflow_id, instance_id, step_id, blocking=False)]

    @operation("PUT /workflows/{workflow_id}/actions/resume", RUN, is_repeatable=True)
    def resume_workflow(
        self,
        workflow_id: WorkflowId,
        *,
        step_id: Annotated[str | None, Argument("Only the breakpoints of this step.", pattern=f"^{NAME}$")] = None,
    ) -> Document:
        """Remove breakpoints of a workflow, or of one of its steps, and resume the steps that they paused."""
        engine = self.call.engine
        points = [point for point in engine.state.breakpoints(workflow_id) if step_id in {None, point.step_id}]
        if not points:
            where = f"step {step_id} of {workflow_id}" if step_id else workflow_id
            raise RequestInvalid(f"There is no breakpoint at {where}.", remedy="To set one: calve pause WORKFLOW STEP.")
        runs = [run for point in points for run in engine.unpause(point, by=self.call.name)]
        return {"elements": [run_json(run) for run in runs]}

    @operation(
        f"PUT {_POINTS}/{{workflow_id}}/instances/{{instance_id}}/runs/{{run_id}}/steps/{{step_id:path}}"
        "/attempts/{attempt_id}/actions/resume",
        RUN,
        answer=models.StepAction,
        is_slow=True,
    )
    def resume_attempt(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        run_id: RunId,
        step_id: StepPath,
        attempt_id: AttemptId,
        *,
        blocking: Blocking = True,
    ) -> Document:
        """Resume one paused attempt."""
        address = step_address(workflow_id, instance_id, step_id, number_of(run_id))
        self.call.require_inside(Permission.RUN, address)
        _, attempt = find_attempt(self.call.engine.state, address, number_of(attempt_id))
        if attempt.is_superseded:
            raise Conflict(f"{address}: a later attempt has replaced attempt {attempt.attempt_id}.", remedy="")
        return _act(self.call, address, Action.RESUME, Engine.resume, is_blocking=blocking)


class Outputs(Topic):
    """Stores outputs of running attempts."""

    __slots__ = ()
    tag = "outputs"

    @operation("PUT /output-data", RUN_SOMEWHERE)
    def put_output_data(self, request: OutputRequest) -> Document:
        """Store output params and artifacts of a running attempt."""
        engine = self.call.engine
        attempt = engine.state.attempt(request.step_instance_uuid)
        snapshot = engine.state.load(attempt.run_uuid) if attempt else None
        if snapshot is None:
            raise WorkflowMissing(f"Attempt {request.step_instance_uuid} does not exist.")
        self.call.require(Permission.RUN, snapshot.run.owner_workflow)
        for name in dynamic_signal_names(request.artifacts):
            self.call.require(Permission.RUN, name)
        engine.put_outputs(request.step_instance_uuid, request.params, request.artifacts)
        return {}
