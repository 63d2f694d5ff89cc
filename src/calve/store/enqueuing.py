"""Puts tasks into the queue, inside the transaction that calls for them."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import case
from sqlalchemy.dialects import postgresql, sqlite

from calve.engine.model import NewTask, Task
from calve.store.engine_rows import Values
from calve.store.engine_tables import task
from calve.store.transacting import Transaction


def _upsert(insert: Any) -> Any:
    statement = insert(task)
    new = statement.excluded
    sooner = case((new.due_at < task.c.due_at, new.due_at), else_=task.c.due_at)
    return statement.on_conflict_do_update(
        index_elements=[task.c.key], set_={"due_at": sooner, "wakes": task.c.wakes + 1}
    )


_UPSERT = {False: _upsert(sqlite.insert), True: _upsert(postgresql.insert)}
"""By whether it is PostgreSQL."""
_UPSERT_OWNED = {
    is_postgresql: statement.returning(task.c.key, task.c.owner, task.c.generation, task.c.wakes, task.c.tries)
    for is_postgresql, statement in _UPSERT.items()
}


def enqueue(transaction: Transaction, tasks: Iterable[NewTask], done: Iterable[Task] = ()) -> list[Task]:
    """Put tasks into the queue, or wake those that are there; return those that their owners hold from now on.

    The generation of a task that was just ``done`` and comes again goes on: nobody can take it for what it was.
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
        if row.wakes == 0:  # it was not there before
            held.append(Task(new.kind, new.key, new.run_uuid, new.attempt_uuid, row.owner, row.generation, 0, 0))
        elif row.owner is None:
            transaction.is_waking = True
    return held


def _one_of_each(tasks: Iterable[NewTask]) -> list[NewTask]:
    """Return the soonest task of each key, in the order of keys, so that two transactions lock them alike."""
    found: dict[str, NewTask] = {}
    for new in tasks:
        known = found.get(new.key)
        if known is None or (known.owner is None and (new.owner is not None or new.due_at < known.due_at)):
            found[new.key] = new
    return [found[key] for key in sorted(found)]


def _row(new: NewTask, generation: int) -> Values:
    return {
        "key": new.key,
        "kind": new.kind.value,
        "run_uuid": new.run_uuid,
        "attempt_uuid": new.attempt_uuid,
        "due_at": new.due_at,
        "priority": new.priority,
        "owner": new.owner,
        "generation": generation,
        "wakes": 0,
        "tries": 0,
    }
