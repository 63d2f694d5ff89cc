"""Refuses the changes of a worker that no longer holds its tasks, or that has read what is no longer so."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from calve.engine.model import Changes, Run, Task
from calve.errors import Conflict, LeaseLost
from calve.store.engine_rows import run_changes
from calve.store.engine_tables import run, task
from calve.store.param_sets import write_params
from calve.store.transacting import Transaction

Item = TypeVar("Item")
CHUNK = 5_000
"""How many values one statement takes at most."""

_HELD = (
    select(task.c.key, task.c.owner, task.c.generation, task.c.wakes)
    .where(task.c.key.in_(bindparam("keys", expanding=True)))
    .order_by(task.c.key)
    .with_for_update()
)
_DONE = delete(task).where(task.c.key.in_(bindparam("keys", expanding=True)))
_FREE = update(task).where(task.c.key.in_(bindparam("keys", expanding=True))).values(owner=None, tries=0)
_NUMBERED: dict[str, BindParameter[Any]] = {
    column: bindparam(f"new_{column}")
    for column in run_changes(Run("", "", 0, 0, 0, "", ""), "")
    if column not in {"uuid", "seq"}
}
_RUN = (
    update(run)
    .where(run.c.uuid == bindparam("the_uuid"), run.c.seq == bindparam("the_seq"))
    .values(**_NUMBERED, seq=run.c.seq + 1)
)


def chunks(items: Sequence[Item], size: int = CHUNK) -> Iterator[Sequence[Item]]:
    """Yield the items in pieces that fit into one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def give_back(transaction: Transaction, changes: Changes) -> None:
    """Take tasks that are done off the queue; one that was called for again meanwhile is set free instead.

    Raises:
        LeaseLost: a task is no longer held.
    """
    if not changes.done and not changes.held:
        return
    found = _locked(transaction.connection, changes)
    for held in (*changes.held, *changes.done):
        _check(held, found.get(held.key))
    finished = [done.key for done in changes.done if found[done.key].wakes == done.wakes]
    called = [done.key for done in changes.done if found[done.key].wakes != done.wakes]
    if finished:
        transaction.connection.execute(_DONE, {"keys": finished})
    if called:
        transaction.connection.execute(_FREE, {"keys": called})
        transaction.is_waking = True


def _locked(connection: Connection, changes: Changes) -> dict[str, Any]:
    """Lock, in one order for all, the rows of every task that these changes name and that may be there."""
    made = {attempt.uuid for attempt in changes.new_attempts} | {new.uuid for new in changes.new_runs}
    keys = {held.key for held in (*changes.held, *changes.done)}
    keys |= {new.key for new in changes.tasks if new.key not in made}
    return {row.key: row for row in connection.execute(_HELD, {"keys": sorted(keys)[:CHUNK]})}


def _check(held: Task, row: Any) -> None:
    if row is None or row.owner != held.owner or row.generation != held.generation:
        raise LeaseLost(
            f"The task {held.key} is no longer held by {held.owner}.", task=held.key, generation=held.generation
        )


def update_runs(transaction: Transaction, runs: Sequence[Run]) -> None:
    """Write runs that are as they were read.

    Raises:
        Conflict: one is not.
    """
    if not runs:
        return
    rows = [_update(transaction, each) for each in sorted(runs, key=lambda each: each.uuid)]
    if transaction.connection.execute(_RUN, rows).rowcount != len(rows):
        raise Conflict("A run has changed since it was read.", runs=[each.uuid for each in runs])


def _update(transaction: Transaction, changed: Run) -> dict[str, Any]:
    row = run_changes(changed, write_params(transaction, changed.params, changed.uuid))
    uuid, seq = row.pop("uuid"), row.pop("seq")
    return {"the_uuid": uuid, "the_seq": seq} | {f"new_{column}": value for column, value in row.items()}
