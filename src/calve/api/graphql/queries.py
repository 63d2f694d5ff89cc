"""The queries."""

from typing import Any

import strawberry
from fastapi.encoders import jsonable_encoder

from calve.access import Permission, namespaces
from calve.api.graphql.limits import FEW
from calve.api.graphql.operations import perform
from calve.api.graphql.types import (
    Instance,
    Instances,
    Workflow,
    Workflows,
    count,
    found_run,
    found_workflow,
    instance_of,
    instances_of,
    workflow_of,
)
from calve.api.graphql.values import JSON, Info, Long, described
from calve.engine import RunStatus


@described
@strawberry.type
class Query:
    """Everything that the caller may read."""

    @strawberry.field
    def workflow(self, info: Info, id: strawberry.ID) -> Workflow:  # noqa: A002 - the name that people expect
        """Return a workflow."""
        return found_workflow(info.context, str(id))

    @strawberry.field
    def workflows(self, info: Info, search: str = "", first: int = FEW, after: str = "") -> Workflows:
        """Return all workflows, or those whose id contains a text, by id."""
        call = info.context
        found = call.engine.state.workflows(
            after=after,
            limit=count(first) + 1,
            contains=search,
            namespaces=namespaces(call.principal, Permission.READ),
        )
        shown = found[:first]
        more = shown[-1].workflow_id if len(found) > first else None
        return Workflows(items=[workflow_of(record) for record in shown], next=more)

    @strawberry.field
    def instance(self, info: Info, workflow_id: str, instance_id: Long, run_id: int | None = None) -> Instance:
        """Return an instance: its latest run, or the given one."""
        return instance_of(found_run(info.context, workflow_id, int(instance_id), run_id))

    @strawberry.field
    def instances(
        self,
        info: Info,
        workflow_id: str | None = None,
        statuses: list[RunStatus] | None = None,
        first: int = FEW,
        after: str | None = None,
    ) -> Instances:
        """Return instances of all workflows, or of one of them, newest first."""
        if workflow_id is not None:
            info.context.require(Permission.READ, workflow_id)
        return instances_of(info.context, workflow_id, statuses, first, after)

    @strawberry.field
    def approvals(self, info: Info, workflow_id: str | None = None, first: int = FEW, after: str = "") -> list[JSON]:
        """Return the Approval steps that wait for people, oldest first; ``after`` is the step_instance_uuid of one."""
        return _elements(info, "list_approvals", workflow_id=workflow_id, first=first, after=after)

    @strawberry.field
    def signals(self, info: Info, name: str | None = None, first: int = FEW) -> list[JSON]:
        """Return the newest signals, all or those with a name."""
        return _elements(info, "list_signals", name=name, first=first)

    @strawberry.field
    def signal_lineage(self, info: Info, name: str, seq: Long | None = None) -> JSON:
        """Return a signal, and what it started and released, as far as the caller may see it."""
        given = {"name": name, "number": "latest" if seq is None else str(seq)}
        return JSON(perform(info.context, "get_signal_lineage", given))

    @strawberry.field
    def captures(self, info: Info, consumer: str | None = None, first: int = FEW) -> list[JSON]:
        """Return captures, newest first."""
        return _elements(info, "list_captures", consumer=consumer, first=first)

    @strawberry.field
    def checkpoints(self, info: Info, consumer: str | None = None, first: int = FEW) -> list[JSON]:
        """Return the checkpoints of consumers, or of one of them."""
        found = info.context.captures.checkpoints(consumer)
        return [JSON(jsonable_encoder(one)) for one in found[: count(first)]]


def _elements(info: Info, operation: str, **given: Any) -> list[JSON]:
    """Return the elements of a list that an operation returns."""
    return [JSON(one) for one in perform(info.context, operation, given)["elements"]]
