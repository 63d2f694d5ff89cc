"""Instances of workflows and their runs: started, listed, read, stopped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from calve.access import Permission, namespaces
from calve.definition.model import Step
from calve.engine import BATCH, RUN_ACTIONS, Action, Address, Engine, InstanceQuery, Run, RunStatus, find, find_run
from calve.engine.views import (
    ActionEvent,
    StartResponse,
    StepRestartResponse,
    WorkflowInstance,
    instance_json,
    overview_json,
    overview_of,
    repeated_work,
    restart_plan_json,
    run_json,
    started_json,
)
from calve.errors import RequestInvalid, WaitedTooLong, WorkflowMissing
from calve.operations import models
from calve.operations.arguments import (
    InstanceId,
    OfWorkflow,
    RunId,
    StepPath,
    Version,
    WorkflowId,
    number_of,
    step_address,
)
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation, request
from calve.operations.documents import action_event, present
from calve.operations.pages import FIRST, Page, bad_cursor, page_json, page_of_numbers
from calve.operations.policy import EDIT, READ, READ_SOMEWHERE, RUN
from calve.operations.requests import (
    ActionRequest,
    NodeRequest,
    RestartRequest,
    StartRequest,
    StepRestartRequest,
)

OVER = frozenset(status.value for status in RunStatus if status.is_terminal)
"""The statuses of instances that have ended."""
Statuses = Annotated[list[RunStatus] | None, Argument("Only instances with one of these statuses.", alias="status")]
Since = Annotated[
    str | None, Argument("Created at this time or later: milliseconds, or ISO 8601.", alias="from", max_length=40)
]
Until = Annotated[str | None, Argument("Created before this time.", alias="to", max_length=40)]
OfTag = Annotated[str | None, Argument("Only instances that were started with this tag.", max_length=128)]
OfInitiator = Annotated[str | None, Argument("Started by this user, or by a type such as TIME.", max_length=128)]
OfVersion = Annotated[int | None, Argument("Only instances of this version.", ge=1, le=2**31 - 1)]
OfParams = Annotated[list[str] | None, Argument("NAME=VALUE: the value of one of its params.", max_length=10)]
_INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"
_STEP = f"{_INSTANCE}/steps/{{step_id:path}}"
_ACCEPTED = "The action is accepted and is still running. Please check it again."
_OFTEN = 0.2
_LONGEST_TIME = 18
"""Maximum number of digits of a time in milliseconds that the state database can compare."""


class Starts(Topic):
    """Starts and restarts instances."""

    __slots__ = ()
    tag = "starts"

    def start(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: str | int = "active",
        request_id: str | None = None,
    ) -> Document:
        """Start an instance.

        Args:
            workflow_id: which workflow.
            params: run params as plain values, or as definitions in Maestro's form.
            version: active, latest, default, or a number.
            request_id: a name for this request: repeating it returns the same instance.

        Returns:
            The instance: workflow_id, workflow_instance_id, workflow_run_id, status …

        Raises:
            RequestInvalid: the workflow does not have one of the params.
        """
        return self.start_workflow(workflow_id, version, self._request(params, request_id))

    @operation(
        "POST /workflows/{workflow_id}/versions/{version}/actions/start",
        RUN,
        answer=StartResponse,
        is_repeatable=True,
    )
    def start_workflow(self, workflow_id: WorkflowId, version: Version, request: StartRequest) -> Document:
        """Start an instance. Repeating a request id returns the same instance."""
        started = self.call.engine.start(workflow_id, version=version, **request.as_start(self.call.initiator))
        return started_json(started)

    def start_batch(self, workflow_id: str, requests: Sequence[Mapping[str, Any]]) -> list[Document]:
        """Start up to ten instances, all or none; each request contains the params of one."""
        answer = self.start_workflow_batch(workflow_id, [self._request(params, None) for params in requests])
        return list(answer["elements"])

    @operation("POST /workflows/{workflow_id}/actions/start-batch", RUN, id="start_batch", is_repeatable=True)
    def start_workflow_batch(
        self,
        workflow_id: WorkflowId,
        requests: Annotated[list[StartRequest], Argument(min_length=1, max_length=BATCH)],
    ) -> Document:
        """Start several instances of the active version, all or none."""
        started = self.call.engine.start_all(
            workflow_id, [request.as_start(self.call.initiator) for request in requests]
        )
        return {"elements": [started_json(one) for one in started]}

    def _request(self, params: Mapping[str, Any] | None, request_id: str | None) -> StartRequest:
        return request(
            StartRequest,
            initiator={"type": "MANUAL"},
            request_id=self.request_id(request_id),
            run_params=dict(params or {}),
            refuse_unknown_params=True,
        )

    def restart(self, workflow_id: str, instance_id: int, step_id: str | None = None, **asked: Any) -> Document:
        """Run an instance again, or one of its steps and the steps after it.

        ``asked`` has Maestro's fields: restart_policy, run_params, step_run_params, and a list of steps to skip.
        With ``latest=True`` the instance continues with the newest version, and keeps the steps that succeeded and did
        not change, and those that ``keep`` lists. A step is its id, or its path: ``loop/3/job``.
        """
        asked = {"request_id": self.request_id(None), "refuse_unknown_params": True, **asked}
        if step_id is None:
            return self.restart_instance(workflow_id, instance_id, request(RestartRequest, **asked))
        return self.restart_step(workflow_id, instance_id, step_id, request(StepRestartRequest, **asked))

    @operation(f"POST {_STEP}/actions/restart", RUN, answer=StepRestartResponse, is_repeatable=True)
    def restart_step(
        self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, request: StepRestartRequest
    ) -> Document:
        """Run a step and the steps after it again."""
        address = step_address(workflow_id, instance_id, step_id)
        self.call.require_inside(Permission.RUN, address)
        started = self.call.engine.restart(address, **request.as_restart(address.path[-1], self.call.initiator))
        return {**started_json(started), "step_id": step_id}

    @operation(f"POST {_INSTANCE}/actions/restart", RUN, answer=StartResponse, is_repeatable=True)
    def restart_instance(self, workflow_id: WorkflowId, instance_id: InstanceId, request: RestartRequest) -> Document:
        """Run an instance again: only its incomplete steps, or all of them."""
        address = Address(workflow_id, instance_id)
        return started_json(self.call.engine.restart(address, **request.as_restart(self.call.initiator)))

    def plan_restart(self, workflow_id: str, instance_id: int, step_id: str | None = None, **asked: Any) -> Document:
        """Show which steps ``restart`` would keep, and which it would run again; nothing is started."""
        if step_id is None:
            return self.plan_instance_restart(workflow_id, instance_id, request(RestartRequest, **asked))
        return self.plan_step_restart(workflow_id, instance_id, step_id, request(StepRestartRequest, **asked))

    @operation(f"POST {_INSTANCE}/actions/plan-restart", RUN, id="plan_restart", is_repeatable=True)
    def plan_instance_restart(
        self, workflow_id: WorkflowId, instance_id: InstanceId, request: RestartRequest
    ) -> Document:
        """Show which steps a restart would keep, and which it would run again; nothing is started."""
        return _planned(self.call, Address(workflow_id, instance_id), request.as_restart(self.call.initiator))

    @operation(f"POST {_STEP}/actions/plan-restart", RUN, is_repeatable=True)
    def plan_step_restart(
        self, workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepPath, request: StepRestartRequest
    ) -> Document:
        """Show which steps a restart of a step would keep, and which it would run again; nothing is started."""
        address = step_address(workflow_id, instance_id, step_id)
        self.call.require_inside(Permission.RUN, address)
        return _planned(self.call, address, request.as_restart(address.path[-1], self.call.initiator))


def _planned(call: Caller, address: Address, asked: dict[str, Any]) -> Document:
    asked = {name: value for name, value in asked.items() if name != "request_id"}
    plan = call.engine.plan_restart(address, **asked)
    policy, is_latest = asked.get("policy"), bool(asked.get("is_latest"))
    repeats = repeated_work(
        call.engine.tools, address, plan, policy=policy, is_latest=is_latest, may_read=call.may_read
    )
    return restart_plan_json(plan, repeats)


class Controls(Topic):
    """Activates workflows; stops, kills and unblocks their instances."""

    __slots__ = ()
    tag = "controls"

    def act(
        self,
        action: str,
        workflow_id: str,
        instance_id: int | None = None,
        step_id: str | None = None,
        *,
        is_blocking: bool | None = None,
        **said: Any,
    ) -> Any:
        """Perform an action on a step, an instance, or all instances of a workflow.

        Args:
            action: stop, kill, unblock; of a step also skip, bypass, resume, approve, reject.
            workflow_id: which workflow.
            instance_id: which instance; if not given, all that have not ended.
            step_id: which step.
            is_blocking: wait a few seconds for the effect on a step.
            said: further arguments of the action, such as a reason or a comment.

        Raises:
            RequestInvalid: there is no such action.
        """
        names = (workflow_id, instance_id, step_id)
        given = tuple(name for name in names if name is not None)
        level = ("workflow", "instance", "step")[len(given) - 1]
        do = getattr(self, f"{action}_{level}", None)
        if do is None:
            raise RequestInvalid(f"There is no action {action} of a {level}.")
        if is_blocking is not None and step_id is not None:
            said["blocking"] = is_blocking
        return do(*given, **said)

    def stop(self, workflow_id: str, instance_id: int | None = None, step_id: str | None = None, **said: Any) -> Any:
        """Stop a step, an instance, or all instances of a workflow: they end as STOPPED."""
        return self.act("stop", workflow_id, instance_id, step_id, **said)

    def kill(self, workflow_id: str, instance_id: int | None = None, step_id: str | None = None, **said: Any) -> Any:
        """Kill a step, an instance, or all instances of a workflow: they end as FAILED."""
        return self.act("kill", workflow_id, instance_id, step_id, **said)

    def skip(self, workflow_id: str, instance_id: int, step_id: str, **said: Any) -> Any:
        """Skip a step; the steps after it continue. If it has ended, restart without it."""
        return self.act("skip", workflow_id, instance_id, step_id, **said)

    def bypass(self, workflow_id: str, instance_id: int, step_id: str, **said: Any) -> Any:
        """Continue a step without its signals."""
        return self.act("bypass", workflow_id, instance_id, step_id, **said)

    def approve(self, workflow_id: str, instance_id: int, step_id: str, **said: Any) -> Any:
        """Approve an Approval step."""
        return self.act("approve", workflow_id, instance_id, step_id, **said)

    def reject(self, workflow_id: str, instance_id: int, step_id: str, **said: Any) -> Any:
        """Reject an Approval step."""
        return self.act("reject", workflow_id, instance_id, step_id, **said)

    def unblock(self, workflow_id: str, instance_id: int | None = None) -> Any:
        """Let a STRICT_SEQUENTIAL workflow continue despite failed instances."""
        return self.act("unblock", workflow_id, instance_id)

    @operation(
        "PUT /workflows/{workflow_id}/versions/{version}/actions/activate",
        EDIT,
        answer=models.WorkflowAction,
    )
    def activate(self, workflow_id: WorkflowId, version: Version = "latest") -> Document:
        """Activate a version of a workflow."""
        workflow = self.call.engine.activate(workflow_id, str(version).lower())
        active = workflow.active_version or 0
        return _of_workflow(self.call, workflow_id, active, "ACTIVATE", f"Version [{active}] is active now.")

    @operation("PUT /workflows/{workflow_id}/actions/deactivate", EDIT, answer=models.WorkflowAction)
    def deactivate(self, workflow_id: WorkflowId) -> Document:
        """Deactivate a workflow: its triggers no longer fire."""
        before = self.call.engine.workflow(workflow_id).active_version or 0
        self.call.engine.deactivate(workflow_id)
        return _of_workflow(self.call, workflow_id, before, "DEACTIVATE", "No version is active any more.")

    @operation("PUT /workflows/{workflow_id}/actions/stop", RUN, answer=ActionEvent, status=202, body=ActionRequest)
    def stop_workflow(self, workflow_id: WorkflowId, *, reason: str = "") -> Document:
        """Stop all running instances of a workflow."""
        return _of_all(self.call, Action.STOP, self.call.engine.stop_all(workflow_id, by=self.call.name, reason=reason))

    @operation("PUT /workflows/{workflow_id}/actions/kill", RUN, answer=ActionEvent, status=202, body=ActionRequest)
    def kill_workflow(self, workflow_id: WorkflowId, *, reason: str = "") -> Document:
        """Kill all running instances of a workflow."""
        return _of_all(self.call, Action.KILL, self.call.engine.kill_all(workflow_id, by=self.call.name, reason=reason))

    @operation("PUT /workflows/{workflow_id}/actions/unblock", RUN, answer=ActionEvent)
    def unblock_workflow(self, workflow_id: WorkflowId) -> Document:
        """Let a STRICT_SEQUENTIAL workflow continue despite its failed instances."""
        return _of_all(self.call, Action.UNBLOCK, self.call.engine.unblock_all(workflow_id, by=self.call.name))

    @operation(f"PUT {_INSTANCE}/actions/stop", RUN, answer=models.InstanceAction, body=ActionRequest)
    def stop_instance(self, workflow_id: WorkflowId, instance_id: InstanceId, *, reason: str = "") -> Document:
        """Stop an instance: it ends as STOPPED."""
        return _asked(self.call, Address(workflow_id, instance_id), Action.STOP, Engine.stop, reason)

    @operation(f"PUT {_INSTANCE}/actions/kill", RUN, answer=models.InstanceAction, body=ActionRequest)
    def kill_instance(self, workflow_id: WorkflowId, instance_id: InstanceId, *, reason: str = "") -> Document:
        """Kill an instance: it ends as FAILED."""
        return _asked(self.call, Address(workflow_id, instance_id), Action.KILL, Engine.kill, reason)

    @operation(f"PUT {_INSTANCE}/actions/unblock", RUN, answer=models.InstanceAction)
    def unblock_instance(self, workflow_id: WorkflowId, instance_id: InstanceId) -> Document:
        """Let a STRICT_SEQUENTIAL workflow continue despite this failed instance."""
        return _asked(self.call, Address(workflow_id, instance_id), Action.UNBLOCK, _unblock)

    @operation(f"PUT {_INSTANCE}/runs/{{run_id}}/actions/stop", RUN, answer=models.InstanceAction, body=ActionRequest)
    def stop_run(
        self, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId, *, reason: str = ""
    ) -> Document:
        """Stop a run of an instance."""
        address = Address(workflow_id, instance_id, number_of(run_id))
        return _asked(self.call, address, Action.STOP, Engine.stop, reason)

    @operation(f"PUT {_INSTANCE}/runs/{{run_id}}/actions/kill", RUN, answer=models.InstanceAction, body=ActionRequest)
    def kill_run(
        self, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId, *, reason: str = ""
    ) -> Document:
        """Kill a run of an instance."""
        address = Address(workflow_id, instance_id, number_of(run_id))
        return _asked(self.call, address, Action.KILL, Engine.kill, reason)

    @operation(f"PUT {_INSTANCE}/runs/{{run_id}}/actions/unblock", RUN, answer=models.InstanceAction)
    def unblock_run(self, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Document:
        """Let a STRICT_SEQUENTIAL workflow continue despite this failed run."""
        return _asked(self.call, Address(workflow_id, instance_id, number_of(run_id)), Action.UNBLOCK, _unblock)


def _status(name: str) -> RunStatus:
    try:
        return RunStatus(name.upper())
    except ValueError:
        known = ", ".join(RunStatus)
        raise RequestInvalid(f"{name!r} is not the status of an instance.", remedy=f"Use one of {known}.") from None


def _of_workflow(call: Caller, workflow_id: str, version: int, action: str, message: str) -> Document:
    event = action_event(action, call.name, call.engine.tools.clock(), message)
    return models.WorkflowAction(workflow_id=workflow_id, workflow_version_id=version, timeline_event=event).as_json()


def _of_all(call: Caller, action: Action, runs: list[Run]) -> Document:
    message = f"{action} requested for [{len(runs)}] instances."
    event = action_event(action, call.name, call.engine.tools.clock(), message).as_json()
    return {**event, "instances": [run_json(run) for run in runs]}


def _unblock(engine: Engine, address: Address, *, by: str, reason: str) -> Run:
    del reason
    return engine.unblock(address, by=by)


def _asked(call: Caller, address: Address, action: Action, do: Callable[..., Run], reason: str = "") -> Document:
    do(call.engine, address, by=call.name, reason=reason)
    run = find_run(call.engine.state, address)
    is_done = action is Action.UNBLOCK or run.status.is_terminal
    message = f"{action} requested for {address}."
    return models.InstanceAction(
        workflow_id=run.workflow_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_instance_status=run.status.value,
        info="The action is done." if is_done else _ACCEPTED,
        timeline_event=action_event(action, call.name, call.engine.tools.clock(), message, reason),
        completed=is_done,
    ).as_json()


class Instances(Topic):
    """Lists and reads instances and their runs."""

    __slots__ = ()
    tag = "instances"

    def wait(
        self, workflow_id: str, instance_id: int, run_id: int | None = None, *, timeout: float | None = None
    ) -> Document:
        """Wait until an instance has ended, and return it as ``instance`` does.

        Raises:
            WaitedTooLong: it has not ended after ``timeout`` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (seen := self.instance(workflow_id, instance_id, run_id))["status"] not in OVER:
            if end is not None and time.monotonic() >= end:
                raise waited_too_long(f"{workflow_id} {instance_id}", seen["status"], timeout)
            time.sleep(_OFTEN)
        return seen

    def instance(self, workflow_id: str, instance_id: int, run_id: int | None = None) -> Document:
        """Return an instance with its params and steps: its latest run, or the given one."""
        if run_id is None:
            return self.get_instance(workflow_id, instance_id)
        return self.get_run(workflow_id, instance_id, run_id)

    def instances(
        self,
        workflow_id: str | None = None,
        *,
        statuses: Sequence[str] = (),
        limit: int | None = None,
        **filters: Any,
    ) -> Iterator[Document]:
        """Yield instances, newest first: of a workflow, or of all of them.

        Args:
            workflow_id: only instances of this workflow.
            statuses: only instances with one of these statuses.
            limit: the maximum number of instances.
            filters: ``since``, ``until``, ``tag``, ``initiator``, ``version`` and ``param``, as for ``list_instances``.
        """
        chosen = [_status(name) for name in statuses] or None
        found = self.pages(self.list_instances, workflow_id=workflow_id, statuses=chosen, **filters)
        return found if limit is None else (one for one, _ in zip(found, range(limit), strict=False))

    @operation("GET /instances", READ_SOMEWHERE, answer=models.Instances)
    def list_instances(
        self,
        page: Page = FIRST,
        statuses: Statuses = None,
        workflow_id: OfWorkflow = None,
        since: Since = None,
        until: Until = None,
        tag: OfTag = None,
        initiator: OfInitiator = None,
        version: OfVersion = None,
        param: OfParams = None,
    ) -> Document:
        """List instances of all workflows, newest first."""
        page = page.forward()
        query = _query(page, statuses, since, until, tag, initiator, version, param)
        query = replace(query, namespaces=namespaces(self.call.principal, Permission.READ))
        if workflow_id is not None and query.is_filtered:
            self.call.require(Permission.READ, workflow_id)
            return _filtered(self.call, replace(query, workflow_id=workflow_id), page)
        if query.is_filtered:
            return _filtered(self.call, query, page)
        found = self.call.engine.state.instances(
            workflow_id=workflow_id,
            statuses=query.statuses,
            before=place_of(page.cursor) if page.cursor else None,
            limit=query.limit,
            namespaces=query.namespaces,
        )
        return page_json(found, page, instance_json, cursor_of)

    @operation("GET /workflows/instances/action-map", READ_SOMEWHERE, id="get_instance_actions")
    def instance_actions(self) -> Document:
        """Return which actions are possible on an instance, by its status."""
        return {status.value: [action.value for action in actions] for status, actions in RUN_ACTIONS.items()}

    @operation("GET /workflows/instances/inline-workflow-id", READ_SOMEWHERE, id="get_inline_workflow_id")
    def inline_workflow_id(self, nodes: Annotated[list[NodeRequest], Argument(min_length=2, max_length=20)]) -> str:
        """Return the inline workflow id of a loop's iterations.

        The first node is the instance; the others are the iterations around the last node's step, outermost first.
        """
        root, last = nodes[0], nodes[-1]
        if root.workflow_id is None or last.step_id is None:
            raise RequestInvalid("The first node must name its workflow, the last one its step.")
        self.call.require(Permission.READ, root.workflow_id)
        engine = self.call.engine
        run = find_run(engine.state, Address(root.workflow_id, root.instance_id))
        workflow = engine.tools.blueprints.get(run.owner_workflow, run.version_id).workflow
        loops = _loops(workflow.steps, last.step_id)
        if loops is None or len(loops) != len(nodes) - 1:
            raise WorkflowMissing(f"Step {last.step_id} is not inside {len(nodes) - 1} loops.")
        inside = zip(loops, nodes[1:], strict=True)
        path = [part for loop, node in inside for part in (loop, str(node.instance_id))]
        found = find(engine.state, Address(root.workflow_id, root.instance_id, path=(*path, last.step_id)))
        return found.run.workflow_id

    @operation("GET /workflows/{workflow_id}/instances", READ, answer=models.Instances)
    def list_workflow_instances(
        self,
        workflow_id: WorkflowId,
        page: Page = FIRST,
        statuses: Statuses = None,
        since: Since = None,
        until: Until = None,
        tag: OfTag = None,
        initiator: OfInitiator = None,
        version: OfVersion = None,
        param: OfParams = None,
    ) -> Document:
        """List the instances of a workflow, newest first."""
        query = _query(page, statuses, since, until, tag, initiator, version, param)
        if query.is_filtered:
            return _filtered(self.call, replace(query, workflow_id=workflow_id), page.forward())
        cursor = page.number()
        place: dict[str, int | None] = {"after": cursor or 0} if page.is_backward else {"before": cursor}
        found = self.call.engine.state.numbered(workflow_id, statuses=query.statuses, limit=query.limit, **place)
        return page_json(found, page, instance_json, lambda run: str(run.instance_id))

    @operation(f"GET {_INSTANCE}", READ, answer=WorkflowInstance)
    def get_instance(self, workflow_id: WorkflowId, instance_id: InstanceId) -> Document:
        """Return an instance in its latest run."""
        return overview(self.call, Address(workflow_id, instance_id))

    def runs(self, workflow_id: str, instance_id: int) -> list[Document]:
        """Return every run of an instance, newest first."""
        return list(self.pages(self.list_runs, workflow_id=workflow_id, instance_id=instance_id))

    @operation(f"GET {_INSTANCE}/runs", READ, answer=models.Instances)
    def list_runs(self, workflow_id: WorkflowId, instance_id: InstanceId, page: Page = FIRST) -> Document:
        """List the runs of an instance, newest first."""
        runs = self.call.engine.state.runs(workflow_id, instance_id)
        return page_of_numbers(runs, page, lambda run: run.run_id, instance_json)

    @operation(f"GET {_INSTANCE}/runs/{{run_id}}", READ, answer=WorkflowInstance)
    def get_run(self, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Document:
        """Return a run of an instance."""
        return overview(self.call, Address(workflow_id, instance_id, number_of(run_id)))

    @operation(f"GET {_INSTANCE}/inline-path", READ, id="get_inline_path")
    def inline_path(self, workflow_id: WorkflowId, instance_id: InstanceId) -> list[Document]:
        """Return the path to an iteration, starting at its instance."""
        run = find_run(self.call.engine.state, Address(workflow_id, instance_id))
        if not run.is_inline:
            raise RequestInvalid(f"{workflow_id} instance {instance_id} is not an iteration of a loop.")
        return [*_ancestors(self.call, run)][::-1]


def _query(
    page: Page,
    statuses: Statuses,
    since: Since,
    until: Until,
    tag: OfTag,
    initiator: OfInitiator,
    version: OfVersion,
    param: OfParams,
) -> InstanceQuery:
    return InstanceQuery(
        statuses=statuses or (),
        since=milliseconds(since),
        until=milliseconds(until),
        tag=tag,
        initiator=initiator,
        version=version,
        params=params_of(param),
        limit=page.limit + 1,
    )


def _filtered(call: Caller, query: InstanceQuery, page: Page) -> Document:
    """Return a page of instances; if many had to be searched, it may be short, and its cursor continues the search."""
    is_one = query.workflow_id is not None
    after = (page.number() or 0, "") if is_one and page.cursor else place_of(page.cursor) if page.cursor else None
    found, onward = call.engine.state.filtered_instances(replace(query, after=after))
    look_on = None if onward is None else str(onward[0]) if is_one else f"{onward[0]}.{onward[1]}"
    return page_json(
        found, page, instance_json, lambda run: str(run.instance_id) if is_one else cursor_of(run), look_on
    )


def params_of(given: list[str] | None) -> dict[str, str]:
    """Return the values of params to filter by.

    Raises:
        RequestInvalid: one of them has no value.
    """
    pairs = [one.partition("=") for one in given or ()]
    if bad := next((name for name, equals, _ in pairs if not (name and equals)), None):
        raise RequestInvalid(f"param={bad} has no value.", remedy="Write param=NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def milliseconds(given: str | None) -> int | None:
    """Return a time in milliseconds since 1970: a number, a date, or an ISO time; one without a zone is in UTC.

    Raises:
        RequestInvalid: it is not a time.
    """
    if given is None:
        return None
    if given.isdecimal() and len(given) <= _LONGEST_TIME:
        return int(given)
    try:
        time_ = datetime.fromisoformat(given)
    except ValueError:
        raise RequestInvalid(f"{given!r} is not a time.", remedy="Write milliseconds, or 2026-01-31T06:00Z.") from None
    return int((time_ if time_.tzinfo else time_.replace(tzinfo=UTC)).timestamp() * 1_000)


def cursor_of(run: Run) -> str:
    """Return the cursor of the page after a run."""
    return f"{run.created_at}.{run.uuid}"


def place_of(cursor: str) -> tuple[int, str]:
    """Return the place that a cursor of ``cursor_of`` stands for.

    Raises:
        RequestInvalid: it is not such a cursor.
    """
    time, dot, uuid = cursor.partition(".")
    if not (dot and uuid.isascii() and uuid.isprintable() and time.isascii() and time.isdecimal() and len(time) <= 18):
        raise bad_cursor(cursor)
    return int(time), uuid


def overview(call: Caller, address: Address) -> Document:
    """Return a run with its steps."""
    run = find_run(call.engine.state, address)
    return overview_json(overview_of(call.engine.tools, run, call.may_read))


def waited_too_long(name: str, status: str, seconds: float | None) -> WaitedTooLong:
    """Return the error for an instance that has not ended in time."""
    return WaitedTooLong(f"{name} is {status} after {seconds} s.", remedy="Wait again, or stop it.")


def _loops(steps: tuple[Step, ...], step_id: str) -> list[str] | None:
    """Return the loops around a step, from the outermost."""
    for step in steps:
        if step.id == step_id:
            return []
        inside = _loops(getattr(step, "steps", ()), step_id)
        if inside is not None:
            return [step.id, *inside]
    return None


def _ancestors(call: Caller, run: Run) -> Iterator[Document]:
    """Yield an iteration and the iterations that contain it, innermost first."""
    yield _node(run, None)
    while run.is_inline and run.parent is not None:
        step_id = run.parent.step_id
        snapshot = call.engine.state.load(run.parent.run_uuid)
        if snapshot is None:
            return
        run = snapshot.run
        yield _node(run, step_id)


def _node(run: Run, step_id: str | None) -> Document:
    return present(workflow_id=run.workflow_id, instance_id=run.instance_id, run_id=run.run_id, step_id=step_id)
