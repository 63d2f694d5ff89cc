"""Workflows and instances as lists and overviews read them: many rows with few fields."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from calve.engine.model.runs import Run
from calve.engine.model.statuses import RunStatus, StepStatus
from calve.engine.model.workflows import Json, WorkflowRecord


class WorkflowOrder(StrEnum):
    """The order of a list of workflows; equal ones are ordered by id."""

    ID = "id"
    LAST_RUN = "last_run"
    """Those with the newest instances first."""
    MATCH = "match"
    """Those whose ids contain the search text first."""


@dataclass(frozen=True, slots=True)
class WorkflowQuery:
    """Which workflows a list contains, and in which order."""

    contains: str = ""
    """A text that the id contains."""
    text: str = ""
    """A text that the id, the properties or the default version contains, ignoring case."""
    owner: str | None = None
    tag: str | None = None
    namespaces: Sequence[str] = ("",)
    """Only workflows below one of these."""
    order: WorkflowOrder = WorkflowOrder.ID
    after: tuple[int, str] | None = None
    """The rank and the id of the last workflow of the previous page."""
    limit: int = 100


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """A workflow in a list, with its default version: the active one, else the latest."""

    workflow: WorkflowRecord
    definition: Json
    last_run_at: int | None = None
    """When its newest instance was created."""
    rank: int = 0
    """Its place in the order, lower ones first."""

    @property
    def owner(self) -> str | None:
        """Who owns it."""
        owner = self.workflow.properties.get("owner")
        return owner["name"] if isinstance(owner, Mapping) else owner

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the version, then those that were given to all versions of the workflow."""
        given = (*self.definition["workflow"].get("tags", ()), *self.workflow.properties.get("tags", ()))
        return tuple(dict.fromkeys(tag if isinstance(tag, str) else tag["name"] for tag in given))

    def meets(self, query: WorkflowQuery) -> bool:
        """Tell whether the owner and the tags match a query."""
        return query.owner in {None, self.owner} and (query.tag is None or query.tag in self.tags)


@dataclass(frozen=True, slots=True)
class RecentRun:
    """The latest run of an instance, for a list of many."""

    workflow_id: str
    instance_id: int
    run_id: int
    status: RunStatus
    created_at: int
    started_at: int | None
    ended_at: int | None

    @classmethod
    def of(cls, run: Run) -> "RecentRun":
        """Return what lists show of a run."""
        times = (run.created_at, run.started_at, run.ended_at)
        return cls(run.workflow_id, run.instance_id, run.run_id, run.status, *times)


@dataclass(frozen=True, slots=True)
class HeldWork:
    """Branches that a step of an ended instance wrote, and that wait for the commit of a capture."""

    run: RecentRun
    step_id: str
    capture_id: str | None
    since: int


@dataclass(frozen=True, slots=True)
class FailedRun:
    """An instance that failed and was not restarted, and the step that failed first, at any depth."""

    run: RecentRun
    path: tuple[str, ...] = ()
    """Empty if it failed before any step did."""
    message: str = ""
    """Why the step or the instance failed."""

    @property
    def error(self) -> str:
        """The first line of the message: failures that share it probably have the same cause."""
        return self.message.strip().partition("\n")[0].strip()


Position = tuple[int, str]
"""Where a page of instances continues: (created_at, uuid), or for one workflow (instance_id, "")."""


@dataclass(frozen=True, slots=True)
class InstanceQuery:
    """Which instances a list contains, newest first; those of one workflow by instance id."""

    workflow_id: str | None = None
    statuses: Sequence[RunStatus] = ()
    since: int | None = None
    """Created at this time or later …"""
    until: int | None = None
    """… and before this one."""
    tag: str | None = None
    """One of the tags that it was started with."""
    initiator: str | None = None
    """Who started it: a user, or a type such as TIME."""
    version: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    """Values of params, as texts."""
    namespaces: Sequence[str] = ("",)
    after: Position | None = None
    limit: int = 100

    @property
    def is_filtered(self) -> bool:
        """Tell whether the query filters by more than workflow, status and namespace."""
        asked = (self.since, self.until, self.tag, self.initiator, self.version)
        return bool(self.params) or any(one is not None for one in asked)

    def is_met_by(self, run: Run) -> bool:
        """Tell whether the tags, the initiator and the params of an instance match this query."""
        has_tag = self.tag is None or self.tag in run.tags
        started = {run.initiator.user, run.initiator.type.value, run.initiator.type.value.lower()}
        has_initiator = self.initiator is None or self.initiator in started
        return has_tag and has_initiator and all(_has(run, name, text) for name, text in self.params.items())


def _has(run: Run, name: str, text: str) -> bool:
    if name not in run.params:
        return False
    value = run.params[name]["result"]
    return text in {value if isinstance(value, str) else json.dumps(value), str(value)}


@dataclass(frozen=True, slots=True)
class GridCell:
    """The newest attempt of a step in the latest run of an instance."""

    status: StepStatus
    duration: int | None
    """How many milliseconds it took, if it has ended."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """The latest run of an instance, and its steps by id."""

    run: RecentRun
    version_id: int
    cells: Mapping[str, GridCell]
