"""The mutations whose answers have types of their own; each performs operations."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import strawberry

from calve.api.caller import WebCaller
from calve.api.graphql.operations import perform
from calve.api.graphql.types import (
    Instance,
    Version,
    Workflow,
    found_run,
    found_version,
    found_workflow,
    instance_of,
)
from calve.api.graphql.values import JSON, Info, Long, described


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
        about = perform(info.context, "push_workflow", {"body": definition})["metadata"]
        return found_version(info.context, about["workflow_id"], about["workflow_version_id"])

    @strawberry.mutation
    def delete(self, info: Info, workflow_id: str) -> bool:
        """Delete a workflow with its versions, instances and logs."""
        perform(info.context, "delete_workflow", {"workflow_id": workflow_id})
        return True

    @strawberry.mutation
    def activate(self, info: Info, workflow_id: str, version: str = "latest") -> Workflow:
        """Activate a version of a workflow."""
        perform(info.context, "activate", {"workflow_id": workflow_id, "version": version})
        return found_workflow(info.context, workflow_id)

    @strawberry.mutation
    def deactivate(self, info: Info, workflow_id: str) -> Workflow:
        """Deactivate a workflow: its triggers no longer fire."""
        perform(info.context, "deactivate", {"workflow_id": workflow_id})
        return found_workflow(info.context, workflow_id)

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
        request: dict[str, Any] = {"run_params": params or {}, "request_id": request_id, "refuse_unknown_params": True}
        given = {"workflow_id": workflow_id, "version": version, "request": request}
        return _started(info.context, perform(info.context, "start_workflow", given))

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
        request: dict[str, Any] = {
            "run_params": params or {},
            "latest": latest,
            "keep": keep or [],
            "refuse_unknown_params": True,
        }
        given: dict[str, Any] = {"workflow_id": workflow_id, "instance_id": instance_id, "request": request}
        if step_path:
            name, given["step_id"] = "restart_step", step_path
        else:
            name = "restart_instance"
            request["restart_policy"] = "RESTART_FROM_BEGINNING" if from_beginning else "RESTART_FROM_INCOMPLETE"
        return _started(info.context, perform(info.context, name, given))

    @strawberry.mutation
    def act(
        self, info: Info, action: Act, workflow_id: str, instance_id: Long, step_path: str = "", reason: str = ""
    ) -> Instance:
        """Perform an action on an instance or a step of it; for an approval, the reason is the comment."""
        given: dict[str, Any] = {"workflow_id": workflow_id, "instance_id": instance_id}
        given |= {"reason": reason, "comment": reason}  # an operation reads the one that it has
        if step_path:
            given |= {"step_id": step_path, "blocking": False}
            name = f"{action.value}_step"
        else:
            name = f"{action.value}_instance"
        perform(info.context, name, given)
        return instance_of(found_run(info.context, workflow_id, int(instance_id)))

    @strawberry.mutation
    def announce(self, info: Info, name: str, params: JSON | None = None, request_id: str | None = None) -> JSON:
        """Announce a signal: workflows and steps that wait for it start or continue."""
        request: dict[str, Any] = {"name": name, "params": params or {}, "request_id": request_id}
        return JSON(perform(info.context, "announce_signal", {"request": request}))


def _started(call: WebCaller, document: Mapping[str, Any]) -> StartedInstance:
    names = ("workflow_id", "workflow_instance_id", "workflow_run_id")
    return StartedInstance(
        status=document["status"], instance=instance_of(found_run(call, *(document[name] for name in names)))
    )
