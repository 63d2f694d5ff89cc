"""The run queue of a workflow: its instances that have not ended, read under the lock of its row."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, text

from calve.definition.model import Rule, RunStrategy
from calve.engine import DEFAULT_STRATEGY, QUEUE_BATCH, Changes, QueueView, StepStatus, needs_all
from calve.errors import WorkflowMissing
from calve.store.database import chunks
from calve.store.tables import IS_INSTANCE, IS_LIVE, attempt, run, workflow

_LOCK = (
    select(workflow.c.workflow_id, workflow.c.strategy, workflow.c.last_instance)
    .where(workflow.c.workflow_id.in_(bindparam("ids", expanding=True)), workflow.c.deleted_at.is_(None))
    .order_by(workflow.c.workflow_id)
    .with_for_update()
)
_LIVE = (
    select(run.c.uuid, run.c.is_queued, run.c.instance_id, run.c.run_id)
    .where(run.c.workflow_id == bindparam("workflow_id"), text(IS_INSTANCE), text(IS_LIVE))
    .order_by(run.c.is_queued, run.c.instance_id, run.c.run_id)
)
_LIVE_LIMITED = _LIVE.limit(bindparam("limit"))
_BLOCKING = select(run.c.uuid).where(run.c.workflow_id == bindparam("workflow_id"), text("is_blocking")).limit(1)
_ABOVE = (
    select(
        run.c.uuid,
        run.c.workflow_id,
        run.c.instance_id,
        run.c.inline_step,
        run.c.parent_run,
        run.c.parent_attempt,
        attempt.c.status,
    )
    .join(attempt, attempt.c.run_uuid == run.c.uuid)
    .where(run.c.uuid == bindparam("the_run"), attempt.c.uuid == bindparam("the_attempt"))
)
_QUEUED_INSIDE = select(run.c.parent_run, run.c.parent_attempt).where(
    run.c.workflow_id == bindparam("workflow_id"),
    text(IS_INSTANCE),
    text(IS_LIVE),
    run.c.is_queued.is_(True),
    run.c.parent_run.is_not(None),
)


@lru_cache(maxsize=1_000)
def strategy_of(written: str | None) -> RunStrategy:
    """Return the run strategy in a workflow's row."""
    return DEFAULT_STRATEGY if written is None else RunStrategy.model_validate(json.loads(written))


@dataclass(slots=True)
class RunQueue:
    """The unfinished instances of one workflow, and their changes in this transaction."""

    workflow_id: str
    strategy: RunStrategy
    last_instance: int
    queued: list[tuple[int, int, str]] = field(default_factory=list)
    active: list[str] = field(default_factory=list)
    is_blocked: bool = False

    @property
    def view(self) -> QueueView:
        """The instances in the form that run strategies decide about."""
        return QueueView(tuple(uuid for _, _, uuid in self.queued), tuple(self.active), self.is_blocked)


def lock_workflows(connection: Connection, changes: Changes) -> dict[str, RunQueue]:
    """Lock the rows of all workflows whose instances these changes start or end, in the same order in all transactions.

    Raises:
        WorkflowMissing: a workflow to be started does not exist.
    """
    starting = {start.run.workflow_id for start in changes.starts}
    ending = {
        each.workflow_id
        for each in (*changes.runs, *changes.new_runs)
        if each.inline_step is None and each.status.is_terminal
    }
    if not starting and not ending:
        return {}
    rows: list[Any] = []
    for some in chunks(sorted(starting | ending)):
        rows += connection.execute(_LOCK, {"ids": some})
    queues = {row.workflow_id: RunQueue(row.workflow_id, strategy_of(row.strategy), row.last_instance) for row in rows}
    for missing in sorted(starting - queues.keys()):
        raise WorkflowMissing(f"Workflow {missing} does not exist.", workflow=missing)
    return queues


def read_queue(connection: Connection, queue: RunQueue) -> None:
    """Read the unfinished instances, as many as the run strategy needs."""
    place: dict[str, Any] = {"workflow_id": queue.workflow_id}
    if needs_all(queue.strategy.rule):
        rows = connection.execute(_LIVE, place)
    else:
        rows = connection.execute(_LIVE_LIMITED, place | {"limit": queue.strategy.concurrency + QUEUE_BATCH})
    for row in rows:
        if row.is_queued:
            queue.queued.append((row.instance_id, row.run_id, row.uuid))
        else:
            queue.active.append(row.uuid)
    if queue.strategy.rule is Rule.STRICT_SEQUENTIAL:
        queue.is_blocked = is_blocked(connection, queue.workflow_id)


def is_blocked(connection: Connection, workflow_id: str) -> bool:
    """Tell whether a workflow has a failed instance that was neither unblocked nor restarted."""
    return connection.scalar(_BLOCKING, {"workflow_id": workflow_id}) is not None


def waiting_for(connection: Connection, parent_run: str, parent_attempt: str) -> list[Any]:
    """Return the runs that wait for the end of a run inside them, innermost first, up to a step that does not wait."""
    found: list[Any] = []
    while parent_run is not None:
        place = {"the_run": parent_run, "the_attempt": parent_attempt}
        row = connection.execute(_ABOVE, place).one_or_none()
        if row is None or StepStatus(row.status).is_final:
            break
        found.append(row)
        parent_run, parent_attempt = row.parent_run, row.parent_attempt
    return found


def waiting_for_queue(connection: Connection, workflow_id: str) -> set[str]:
    """Return the runs that wait for the end of a queued instance of a workflow."""
    places = connection.execute(_QUEUED_INSIDE, {"workflow_id": workflow_id}).all()
    return {row.uuid for place in places for row in waiting_for(connection, *place)}
