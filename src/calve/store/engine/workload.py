"""The work of workers, and what waits for them (part of the port ``calve.engine.ports.EngineState``)."""

from typing import Any

from sqlalchemy import Select, and_, bindparam, case, func, select

from calve.engine import QueueState, RunningTask, TaskKind, Workload
from calve.store.database import Transactions
from calve.store.engine.rows import WORKER
from calve.store.tables import attempt, run, task, worker

_root = run.alias("root")
_place = func.row_number().over(partition_by=task.c.owner, order_by=task.c.seq).label("place")
_number = func.count().over(partition_by=task.c.owner).label("number")
_held = select(task.c.owner, task.c.kind, task.c.run_uuid, task.c.attempt_uuid, _place, _number)
_held_tasks = _held.where(task.c.owner.is_not(None)).subquery("held")
_HELD: Select[Any] = (
    select(_held_tasks, _root.c.workflow_id, _root.c.instance_id, run.c.owner_workflow, attempt.c.step_id)
    .join(run, run.c.uuid == _held_tasks.c.run_uuid)
    .join(_root, _root.c.uuid == run.c.root_uuid)
    .outerjoin(attempt, attempt.c.uuid == _held_tasks.c.attempt_uuid)
    .where(_held_tasks.c.place <= bindparam("number"))
    .order_by(_held_tasks.c.place)
)
_WORKERS = select(worker).order_by(worker.c.is_dead, worker.c.started_at, worker.c.uuid)
_is_free = task.c.owner.is_(None)
_is_ready = and_(_is_free, task.c.due_at <= bindparam("now"))
_QUEUE: Select[Any] = select(
    task.c.kind,
    func.count(case((_is_ready, 1))).label("ready"),
    func.count(case((and_(_is_free, task.c.due_at > bindparam("now")), 1))).label("later"),
    func.count(task.c.owner).label("claimed"),
    func.count(case((task.c.tries > 0, 1))).label("retried"),
    func.min(case((_is_ready, task.c.due_at))).label("oldest"),
).group_by(task.c.kind)


class SqlWorkload:
    """Reads the work of workers, and what waits for them."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def workloads(self, number: int = 20) -> list[Workload]:
        """Return the workers, including those that died within a day, each with its first tasks."""
        tasks: dict[str, list[RunningTask]] = {}
        held: dict[str, int] = {}
        with self._transactions.read() as connection:
            for row in connection.execute(_HELD, {"number": number}):
                place = (row.workflow_id, row.instance_id, row.owner_workflow, row.step_id)
                tasks.setdefault(row.owner, []).append(RunningTask(TaskKind(row.kind), *place))
                held[row.owner] = row.number
            return [
                Workload(WORKER.from_row(row), bool(row.is_dead), tuple(tasks.get(row.uuid, ())), held.get(row.uuid, 0))
                for row in connection.execute(_WORKERS)
            ]

    def queue_states(self, now: int) -> dict[TaskKind, QueueState]:
        """Count the tasks in the queue, by kind."""
        with self._transactions.read() as connection:
            rows = connection.execute(_QUEUE, {"now": now}).all()
        found = {
            TaskKind(row.kind): QueueState(row.ready, row.later, row.claimed, row.retried, row.oldest) for row in rows
        }
        return {kind: found.get(kind, QueueState()) for kind in TaskKind}
