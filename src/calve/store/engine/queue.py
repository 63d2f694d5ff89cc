"""The queue of tasks, and the workers that claim them (the port is ``calve.engine.ports.Queue``)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    case,
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
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningUpdate

from calve.engine import Changes, HeartbeatReply, NewTask, Task, TaskKind, WorkerRecord
from calve.errors import LeaseLost
from calve.store.database import CHUNK, Transaction, Transactions
from calve.store.engine.rows import NEW_TASK, TASK, WORKER
from calve.store.tables import IS_FREE, attempt, run, task, worker

_FORGET_MS = 24 * 3600 * 1000
"""How long a dead worker stays in the table."""
_CLOCK: dict[bool, ColumnElement[int]] = {
    False: literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    True: literal_column("CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"),
}
"""The database's clock, by whether the database is PostgreSQL."""
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
        # SKIP LOCKED: workers that claim at the same time get different tasks, instead of waiting for each other.
        .with_for_update(skip_locked=True, of=task)
        .cte("picked")
    )
    return (
        update(task)
        .where(task.c.seq.in_(select(picked.c.seq)))
        # The generation is the fence: a worker that was considered dead has an older one, and its commit is refused.
        .values(owner=bindparam("worker"), generation=task.c.generation + 1)
        .returning(task)
    )


_CLAIM = {False: _claim(literal_column("+due_at") <= bindparam("now")), True: _claim(_is_due)}
"""By whether the database is PostgreSQL; the plus keeps SQLite from sorting all due tasks to find the first."""
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
        """Register a worker."""
        clock = _CLOCK[self._transactions.is_postgresql]
        statement = insert(worker).values(WORKER.to_row(record, heartbeat_at=clock, is_dead=False))
        self._transactions.write("register", lambda transaction: transaction.connection.execute(statement))

    def heartbeat(self, worker_uuid: str, *, is_draining: bool = False) -> HeartbeatReply:
        """Record a worker's heartbeat."""
        clock = _CLOCK[self._transactions.is_postgresql]
        statement = (
            update(worker)
            .where(worker.c.uuid == worker_uuid, worker.c.is_dead.is_(False))
            .values(heartbeat_at=clock, is_draining=is_draining)
            .returning(worker.c.heartbeat_at)
        )

        def write(transaction: Transaction) -> HeartbeatReply:
            now = transaction.connection.scalar(statement)
            if now is None:
                # Dead stays dead: other workers may execute its tasks by now, so it must register again.
                return HeartbeatReply(
                    False, transaction.connection.execute(_NOW[transaction.is_postgresql]).scalar_one()
                )
            interrupted = transaction.connection.scalars(_INTERRUPTED, {"worker": worker_uuid})
            owned = transaction.connection.execute(_OWNED, {"worker": worker_uuid})
            return HeartbeatReply(True, now, frozenset(interrupted), tuple(TASK.from_row(row) for row in owned))

        return self._transactions.write("heartbeat", write)

    def retire(self, worker_uuid: str) -> None:
        """Remove a worker, and release the tasks that it still owns."""

        def leave(transaction: Transaction) -> None:
            transaction.connection.execute(delete(worker).where(worker.c.uuid == worker_uuid))
            # tries=0: leaving properly is not a death, and must not count towards setting the run aside.
            _free(transaction, task.c.owner == worker_uuid, tries=0)

        self._transactions.write("retire", leave)

    def workers(self) -> list[WorkerRecord]:
        """Return the workers that are alive."""
        with self._transactions.read() as connection:
            return [WORKER.from_row(row) for row in connection.execute(_ALIVE)]

    def claim(self, worker_uuid: str, now: int, *, runs: int, steps: int) -> list[Task]:
        """Claim tasks that are due and not claimed: up to ``runs`` and ``steps`` of each kind, by priority and age."""
        wanted = {TaskKind.RUN: runs, TaskKind.STEP: steps}
        with self._transactions.read() as connection:
            kinds = [kind for kind in _due_kinds(connection, now) if wanted[kind] > 0]
        if not kinds:
            return []  # an idle worker writes nothing, and blocks no one

        def take(transaction: Transaction) -> list[Task]:
            rows: list[Any] = []
            for kind in kinds:
                values = {"worker": worker_uuid, "now": now, "the_kind": kind.value, "number": wanted[kind]}
                rows += transaction.connection.execute(_CLAIM[transaction.is_postgresql], values).all()
            # Sorted again: UPDATE … RETURNING returns rows in any order.
            return [TASK.from_row(row) for row in sorted(rows, key=lambda row: (row.priority, row.seq))]

        return self._transactions.write("claim", take)

    def release(self, tasks: Sequence[Task]) -> None:
        """Release tasks that were not done, so that other workers can claim them."""
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
        """Release the tasks of workers that are silent, or whose process is certainly gone; return those workers."""
        clock = _NOW[self._transactions.is_postgresql]
        with self._transactions.read() as connection:
            now = connection.execute(clock).scalar_one()
            silent = [WORKER.from_row(row) for row in connection.execute(_ALIVE)]
            orphans = connection.scalar(select(task.c.seq).where(_is_orphaned()).limit(1))
        # Check before writing, because usually no worker is dead: every heartbeat of every worker calls this.
        dead = [each for each in silent if each.heartbeat_at < now - silent_ms or is_gone(each)]
        if not dead and orphans is None:
            return []

        def mark(transaction: Transaction) -> list[str]:
            return _mark_dead(transaction, dead, now)

        return self._transactions.write("reap", mark)

    def next_due(self, now: int) -> int | None:
        """Return the milliseconds until the next unclaimed task is due; None if there is none."""
        with self._transactions.read() as connection:
            found = [connection.scalar(query) for query in _SOONEST.values()]
        times = [due_at for due_at in found if due_at is not None]
        return max(0, min(times) - now) if times else None

    def wait(self, seconds: float) -> None:
        """Sleep until there may be a new task, in this process or another, or until the seconds have passed."""
        self._transactions.notifier.wait(seconds)

    def wake(self) -> None:
        """Wake the ``wait`` of this process."""
        self._transactions.notifier.notify()

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


def _mark_dead(transaction: Transaction, dead: Iterable[WorkerRecord], now: int) -> list[str]:
    """Mark workers as dead, unless they have sent a heartbeat in the meantime, and release their tasks."""
    dead_uuids = []
    for each in dead:
        # Compare the heartbeat that was read: a worker that has sent another one since must not lose its tasks.
        is_still = (worker.c.uuid == each.uuid) & (worker.c.heartbeat_at == each.heartbeat_at)
        statement = update(worker).where(is_still, worker.c.is_dead.is_(False)).values(is_dead=True)
        if transaction.connection.execute(statement).rowcount:
            dead_uuids.append(each.uuid)
    _free(transaction, _is_orphaned(), tries=1)
    is_old = worker.c.is_dead.is_(True) & (worker.c.heartbeat_at < now - _FORGET_MS)
    transaction.connection.execute(delete(worker).where(is_old))
    return dead_uuids


def _free(transaction: Transaction, which: ColumnElement[bool], *, tries: int) -> None:
    # A new generation already here, not only with the next claim: the old owner must not commit in between.
    values: dict[str, Any] = {"owner": None, "generation": task.c.generation + 1, "tries": task.c.tries + tries}
    if transaction.connection.execute(update(task).where(which).values(values)).rowcount:
        transaction.is_waking = True


def _upsert(insert: Any) -> Any:
    statement = insert(task)
    new = statement.excluded
    # One row per key: a thousand children that wake their parent create one task, and are counted in ``wakes``
    # (decision 0013).
    sooner = case((new.due_at < task.c.due_at, new.due_at), else_=task.c.due_at)
    return statement.on_conflict_do_update(
        index_elements=[task.c.key], set_={"due_at": sooner, "wakes": task.c.wakes + 1}
    )


_UPSERT = {False: _upsert(sqlite.insert), True: _upsert(postgresql.insert)}
"""By whether the database is PostgreSQL."""
_UPSERT_OWNED = {
    is_postgresql: statement.returning(task.c.key, task.c.owner, task.c.generation, task.c.wakes, task.c.tries)
    for is_postgresql, statement in _UPSERT.items()
}


def enqueue(transaction: Transaction, tasks: Iterable[NewTask], done: Iterable[Task] = ()) -> list[Task]:
    """Add tasks to the queue, or wake existing ones; return those that got an owner immediately.

    A task that is in ``done`` and enqueued again continues its generation, so that the old lease stays invalid.
    """
    wanted = _one_of_each(tasks)
    generations = {each.key: each.generation for each in done}
    free = [_row(new, generations.get(new.key, 0)) for new in wanted if new.owner is None]
    if free:
        transaction.connection.execute(_UPSERT[transaction.is_postgresql], free)
        transaction.is_waking = True
    return _enqueue_owned(transaction, [new for new in wanted if new.owner is not None])


def _enqueue_owned(transaction: Transaction, tasks: Sequence[NewTask]) -> list[Task]:
    held = []
    for new in tasks:
        statement = _UPSERT_OWNED[transaction.is_postgresql]
        row = transaction.connection.execute(statement, _row(new, 1)).one()
        if row.wakes == 0:  # it did not exist before
            held.append(Task(new.kind, new.key, new.run_uuid, new.attempt_uuid, row.owner, row.generation, 0, 0))
        elif row.owner is None:
            transaction.is_waking = True
    return held


def _one_of_each(tasks: Iterable[NewTask]) -> list[NewTask]:
    """Return the soonest task of each key, ordered by key, so that all transactions lock them in the same order."""
    found: dict[str, NewTask] = {}
    for new in tasks:
        known = found.get(new.key)
        if known is None or (known.owner is None and (new.owner is not None or new.due_at < known.due_at)):
            found[new.key] = new
    return [found[key] for key in sorted(found)]


def _row(new: NewTask, generation: int) -> dict[str, Any]:
    return NEW_TASK.to_row(new, key=new.key, generation=generation, wakes=0, tries=0)


_HELD = (
    select(task.c.key, task.c.owner, task.c.generation, task.c.wakes)
    .where(task.c.key.in_(bindparam("keys", expanding=True)))
    # In the order of keys, like every statement that locks tasks.
    .order_by(task.c.key)
    .with_for_update()
)
_DONE = delete(task).where(task.c.key.in_(bindparam("keys", expanding=True)))
_SET_FREE = update(task).where(task.c.key.in_(bindparam("keys", expanding=True))).values(owner=None, tries=0)


def give_back(transaction: Transaction, changes: Changes) -> None:
    """Remove completed tasks from the queue, or release those that were enqueued again meanwhile.

    Raises:
        LeaseLost: a worker no longer owns a task.
    """
    if not changes.done and not changes.held:
        return
    found = _locked(transaction.connection, changes)
    for held in (*changes.held, *changes.done):
        _check(held, found.get(held.key))
    # A wake-up during the work on a task must not be lost with its row: the task is released for another turn.
    finished = [done.key for done in changes.done if found[done.key].wakes == done.wakes]
    called = [done.key for done in changes.done if found[done.key].wakes != done.wakes]
    if finished:
        transaction.connection.execute(_DONE, {"keys": finished})
    if called:
        transaction.connection.execute(_SET_FREE, {"keys": called})
        transaction.is_waking = True


def _locked(connection: Connection, changes: Changes) -> dict[str, Any]:
    """Lock the rows of all existing tasks that these changes name, in the same order in all transactions."""
    made = {attempt.uuid for attempt in changes.new_attempts} | {new.uuid for new in changes.new_runs}
    keys = {held.key for held in (*changes.held, *changes.done)}
    keys |= {new.key for new in changes.tasks if new.key not in made}
    return {row.key: row for row in connection.execute(_HELD, {"keys": sorted(keys)[:CHUNK]})}


def _check(held: Task, row: Any) -> None:
    if row is None or row.owner != held.owner or row.generation != held.generation:
        raise LeaseLost(
            f"The task {held.key} is no longer held by {held.owner}.", task=held.key, generation=held.generation
        )
