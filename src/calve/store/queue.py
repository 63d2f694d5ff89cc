"""The queue of tasks, and the workers that take them (the port is ``calve.engine.ports.Queue``)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from calve.engine.model import Beat, Task, TaskKind, WorkerRecord
from calve.store.engine_rows import task_of, worker_of
from calve.store.engine_tables import IS_FREE, attempt, run, task, worker
from calve.store.transacting import Transaction, Transactions

_FORGET_MS = 24 * 3600 * 1000
"""How long a dead worker stays known, so that it learns of its death."""

_CLOCK: dict[bool, ColumnElement[int]] = {
    False: literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    True: literal_column("CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"),
}
"""The database's clock, by whether it is PostgreSQL."""
_NOW = {is_postgresql: select(clock) for is_postgresql, clock in _CLOCK.items()}

_is_due = task.c.due_at <= bindparam("now")
_IS_DUE = {
    kind: select(task.c.seq).where(text(IS_FREE), task.c.kind == kind.value, _is_due).limit(1) for kind in TaskKind
}
_is_alive = exists().where(worker.c.uuid == bindparam("worker"), worker.c.is_dead.is_(False))


def _claim(is_due: ColumnElement[bool]) -> ReturningUpdate[Any]:
    picked = (
        select(task.c.seq)
        .where(text(IS_FREE), task.c.kind == bindparam("the_kind"), is_due, _is_alive)
        .order_by(task.c.priority, task.c.seq)
        .limit(bindparam("number"))
        .with_for_update(skip_locked=True, of=task)
        .cte("picked")
    )
    return (
        update(task)
        .where(task.c.seq.in_(select(picked.c.seq)))
        .values(owner=bindparam("worker"), generation=task.c.generation + 1)
        .returning(task)
    )


_CLAIM = {False: _claim(literal_column("+due_at") <= bindparam("now")), True: _claim(_is_due)}
"""By whether it is PostgreSQL; the plus keeps SQLite from sorting all that is due to find the first."""
_RELEASE = (
    update(task)
    .where(
        task.c.key == bindparam("the_key"),
        task.c.owner == bindparam("the_owner"),
        task.c.generation == bindparam("the_generation"),
    )
    .values(owner=None)
)
_SOONEST = {kind: select(func.min(task.c.due_at)).where(text(IS_FREE), task.c.kind == kind.value) for kind in TaskKind}
_INTERRUPTED = (
    select(attempt.c.uuid)
    .select_from(task.join(attempt, attempt.c.uuid == task.c.attempt_uuid).join(run, run.c.uuid == attempt.c.run_uuid))
    .where(task.c.owner == bindparam("worker"), or_(attempt.c.action.is_not(None), run.c.action.is_not(None)))
)
_OWNED = select(task).where(task.c.owner == bindparam("worker"))
_ALIVE = select(worker).where(worker.c.is_dead.is_(False)).order_by(worker.c.started_at, worker.c.uuid)


class SqlQueue:
    """Hands tasks to workers."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def now(self) -> int:
        """Return the database's clock."""
        with self._transactions.read() as connection:
            return connection.execute(_NOW[self._transactions.is_postgresql]).scalar_one()

    def register(self, record: WorkerRecord) -> None:
        """Make a worker known."""
        row = {
            "uuid": record.uuid,
            "host": record.host,
            "pid": record.pid,
            "started_at": record.started_at,
            "slots": record.slots,
            "is_draining": record.is_draining,
            "is_dead": False,
        }
        statement = insert(worker).values(heartbeat_at=_CLOCK[self._transactions.is_postgresql], **row)
        self._transactions.write("register", lambda transaction: transaction.connection.execute(statement))

    def heartbeat(self, worker_uuid: str, *, is_draining: bool = False) -> Beat:
        """Say that a worker lives."""
        clock = _CLOCK[self._transactions.is_postgresql]
        statement = (
            update(worker)
            .where(worker.c.uuid == worker_uuid, worker.c.is_dead.is_(False))
            .values(heartbeat_at=clock, is_draining=is_draining)
            .returning(worker.c.heartbeat_at)
        )

        def beat(transaction: Transaction) -> Beat:
            now = transaction.connection.scalar(statement)
            if now is None:
                return Beat(False, transaction.connection.execute(_NOW[transaction.is_postgresql]).scalar_one())
            interrupted = transaction.connection.scalars(_INTERRUPTED, {"worker": worker_uuid})
            owned = transaction.connection.execute(_OWNED, {"worker": worker_uuid})
            return Beat(True, now, frozenset(interrupted), tuple(task_of(row) for row in owned))

        return self._transactions.write("heartbeat", beat)

    def retire(self, worker_uuid: str) -> None:
        """Take a worker off the list, and free what it still holds."""

        def leave(transaction: Transaction) -> None:
            transaction.connection.execute(delete(worker).where(worker.c.uuid == worker_uuid))
            _free(transaction, task.c.owner == worker_uuid, tries=0)

        self._transactions.write("retire", leave)

    def workers(self) -> list[WorkerRecord]:
        """Return the workers that are alive."""
        with self._transactions.read() as connection:
            return [worker_of(row) for row in connection.execute(_ALIVE)]

    def claim(self, worker_uuid: str, now: int, *, runs: int, steps: int) -> list[Task]:
        """Take tasks that are due and free: at most so many runs and so many steps, by priority and age."""
        wanted = {TaskKind.RUN: runs, TaskKind.STEP: steps}
        with self._transactions.read() as connection:
            kinds = [kind for kind in _due_kinds(connection, now) if wanted[kind] > 0]
        if not kinds:
            return []  # nothing was written: whoever is idle disturbs nobody

        def take(transaction: Transaction) -> list[Task]:
            rows: list[Any] = []
            for kind in kinds:
                values = {"worker": worker_uuid, "now": now, "the_kind": kind.value, "number": wanted[kind]}
                rows += transaction.connection.execute(_CLAIM[transaction.is_postgresql], values).all()
            return [task_of(row) for row in sorted(rows, key=lambda row: (row.priority, row.seq))]

        return self._transactions.write("claim", take)

    def release(self, tasks: Sequence[Task]) -> None:
        """Give tasks back undone, for others to take."""
        rows = [
            {"the_key": each.key, "the_owner": each.owner, "the_generation": each.generation}
            for each in sorted(tasks, key=lambda each: each.key)
        ]

        def give_back(transaction: Transaction) -> None:
            transaction.connection.execute(_RELEASE, rows)
            transaction.is_waking = True

        if rows:
            self._transactions.write("release", give_back)

    def reap(self, silent_ms: int, *, is_gone: Callable[[WorkerRecord], bool]) -> list[str]:
        """Take all tasks from workers that are silent, or gone for sure, and free them; return those workers."""
        clock = _NOW[self._transactions.is_postgresql]
        with self._transactions.read() as connection:
            now = connection.execute(clock).scalar_one()
            silent = [worker_of(row) for row in connection.execute(_ALIVE)]
            orphans = connection.scalar(select(task.c.seq).where(_is_orphaned()).limit(1))
        dead = [each for each in silent if each.heartbeat_at < now - silent_ms or is_gone(each)]
        if not dead and orphans is None:
            return []

        def bury(transaction: Transaction) -> list[str]:
            return _bury(transaction, dead, now)

        return self._transactions.write("reap", bury)

    def next_due(self, now: int) -> int | None:
        """Return in how many milliseconds the next free task is due; None if there is none."""
        with self._transactions.read() as connection:
            found = [connection.scalar(query) for query in _SOONEST.values()]
        times = [due_at for due_at in found if due_at is not None]
        return max(0, min(times) - now) if times else None

    def wait(self, seconds: float) -> None:
        """Sleep until a task may have come up, in this process or another, or the time is over."""
        self._transactions.bell.wait(seconds)

    def wake(self) -> None:
        """End the ``wait`` of this process."""
        self._transactions.bell.ring()

    def counts(self) -> dict[TaskKind, int]:
        """Count the tasks in the queue."""
        query = select(task.c.kind, func.count().label("number")).group_by(task.c.kind)
        with self._transactions.read() as connection:
            found = {TaskKind(row.kind): row.number for row in connection.execute(query)}
        return {kind: found.get(kind, 0) for kind in TaskKind}


def _due_kinds(connection: Connection, now: int) -> list[TaskKind]:
    return [kind for kind, query in _IS_DUE.items() if connection.scalar(query, {"now": now}) is not None]


def _is_orphaned() -> ColumnElement[bool]:
    """Match the tasks of owners that are dead or were never known."""
    alive = select(worker.c.uuid).where(worker.c.is_dead.is_(False))
    return task.c.owner.is_not(None) & task.c.owner.not_in(alive)


def _bury(transaction: Transaction, dead: Iterable[WorkerRecord], now: int) -> list[str]:
    """Mark workers as dead, unless they have shown life since they were looked at, and free their tasks."""
    buried = []
    for each in dead:
        is_still = (worker.c.uuid == each.uuid) & (worker.c.heartbeat_at == each.heartbeat_at)
        statement = update(worker).where(is_still, worker.c.is_dead.is_(False)).values(is_dead=True)
        if transaction.connection.execute(statement).rowcount:
            buried.append(each.uuid)
    _free(transaction, _is_orphaned(), tries=1)
    is_old = worker.c.is_dead.is_(True) & (worker.c.heartbeat_at < now - _FORGET_MS)
    transaction.connection.execute(delete(worker).where(is_old))
    return buried


def _free(transaction: Transaction, which: ColumnElement[bool], *, tries: int) -> None:
    values: dict[str, Any] = {"owner": None, "generation": task.c.generation + 1, "tries": task.c.tries + tries}
    if transaction.connection.execute(update(task).where(which).values(values)).rowcount:
        transaction.is_waking = True
