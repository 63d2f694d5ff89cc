"""The mutations. Each requires the permission of its REST route."""

from enum import StrEnum
from typing import Any

import strawberry

from calve.access import Permission
from calve.api.graphql.types import Instance, Version, Workflow, instance_of, version_of, workflow_of
from calve.api.graphql.values import JSON, Info, Long, described
from calve.engine import Address
from calve.operations import RestartRequest, StartRequest, defined
from calve.triggers.signals import announced_json


@strawberry.enum
class Act(StrEnum):
    """An action on an instance or a step of it."""

    STOP = "stop"
    KILL = "kill"
    UNBLOCK = "unblock"
    SKIP = "skip"
    BYPASS = "bypass"
    RESUME = "resume"
    APPROVE = "approve"
    REJECT = "reject"


_REASONED = frozenset({Act.STOP, Act.KILL})
_COMMENTED = frozenset({Act.APPROVE, Act.REJECT})


@described
@strawberry.type
class StartedInstance:
    """The result of a start, and its instance."""

    status: str
    """CREATED, DUPLICATED (the request id was known) or STOPPED (by the run strategy)."""
    instance: Instance


@described
@strawberry.type
class Mutation:
    """Changes of workflows, instances and everything else."""

    @strawberry.mutation
    def push(self, info: Info, definition: str) -> Version:
        """Store a definition, as YAML or JSON, as the next version of its workflow."""
        call = info.context
        return version_of(call.engine.push(defined(call, definition.encode()), author=call.name))

    @strawberry.mutation
    def delete(self, info: Info, workflow_id: str) -> bool:
        """Delete a workflow with its versions, instances and logs."""
        info.context.require(Permission.EDIT, workflow_id)
        info.context.engine.delete(workflow_id)
        return True

    @strawberry.mutation
    def activate(self, info: Info, workflow_id: str, version: str = "latest") -> Workflow:
        """Activate a version of a workflow."""
        info.context.require(Permission.EDIT, workflow_id)
        return workflow_of(info.context.engine.activate(workflow_id, version))

    @strawberry.mutation
    def deactivate(self, info: Info, workflow_id: str) -> Workflow:
        """Deactivate a workflow: its triggers no longer fire."""
        info.context.require(Permission.EDIT, workflow_id)
        info.context.engine.deactivate(workflow_id)
        return workflow_of(info.context.engine.workflow(workflow_id))

    @strawberry.mutation
    def start(
        self,
        info: Info,
        workflow_id: str,
        version: str = "active",
        params: JSON | None = None,
        request_id: str | None = None,
    ) -> StartedInstance:
        """Start an instance. Repeating a request id returns the same instance."""
        call = info.context
        call.require(Permission.RUN, workflow_id)
        request = StartRequest.model_validate(
            {"run_params": params or {}, "request_id": request_id, "refuse_unknown_params": True}
        )
        started = call.engine.start(workflow_id, version=version, **request.as_start(call.initiator))
        return StartedInstance(status=started.status.value, instance=instance_of(started.run))

    @strawberry.mutation
    def restart(
        self,
        info: Info,
        workflow_id: str,
        instance_id: Long,
        step_path: str = "",
        params: JSON | None = None,
        from_beginning: bool = False,  # noqa: FBT001, FBT002 - an argument of GraphQL has a name
        latest: bool = False,  # noqa: FBT001, FBT002 - the same
        keep: list[str] | None = None,
    ) -> StartedInstance:
        """Run an instance again: its incomplete steps, all of them, from a step on, or with the newest version."""
        call = info.context
        call.require(Permission.RUN, workflow_id)
        policy = "RESTART_FROM_BEGINNING" if from_beginning else "RESTART_FROM_INCOMPLETE"
        given: dict[str, Any] = {
            "restart_policy": policy,
            "run_params": params or {},
            "latest": latest,
            "keep": keep or [],
            "refuse_unknown_params": True,
        }
        request = RestartRequest.model_validate(given)
        address = _address(workflow_id, instance_id, step_path)
        call.require_inside(Permission.RUN, address)
        started = call.engine.restart(address, **request.as_restart(call.initiator))
        return StartedInstance(status=started.status.value, instance=instance_of(started.run))

    @strawberry.mutation
    def act(
        self, info: Info, action: Act, workflow_id: str, instance_id: Long, step_path: str = "", reason: str = ""
    ) -> Instance:
        """Perform an action on an instance or a step of it; for an approval, the reason is the comment."""
        call = info.context
        call.require(Permission.RUN, workflow_id)
        given: dict[str, Any] = {"reason": reason} if action in _REASONED else {}
        given |= {"comment": reason} if action in _COMMENTED else {}
        address = _address(workflow_id, instance_id, step_path)
        call.require_inside(Permission.RUN, address)
        return instance_of(getattr(call.engine, action.value)(address, by=call.name, **given))

    @strawberry.mutation
    def announce(self, info: Info, name: str, params: JSON | None = None, request_id: str | None = None) -> JSON:
        """Announce a signal: workflows and steps that wait for it start or continue."""
        info.context.require(Permission.RUN, name)
        given: dict[str, Any] = params if isinstance(params, dict) else {}
        return JSON(announced_json(info.context.signals.announce(name, given, request_id=request_id)))


def _address(workflow_id: str, instance_id: int, step_path: str) -> Address:
    return Address(workflow_id, int(instance_id), None, tuple(part for part in step_path.split("/") if part))
