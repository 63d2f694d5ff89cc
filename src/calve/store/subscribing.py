"""The names of signals, and the triggers that subscribe to them.

Who announces a signal, and who begins to wait for one, locks the row of its name first: either the one sees the wait,
or the other sees the signal.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert
from sqlalchemy.dialects import postgresql, sqlite

from calve.store.signal_tables import signal_name, signal_subscription
from calve.store.transacting import Transaction
from calve.triggers.model import Kind, Wanted


def _lock(insert_: Any) -> Any:
    statement = insert_(signal_name).values(name=bindparam("the_name"), last_seq=0)
    return statement.on_conflict_do_update(
        index_elements=[signal_name.c.name], set_={"last_seq": signal_name.c.last_seq}
    ).returning(signal_name.c.last_seq)


_LOCK = {False: _lock(sqlite.insert), True: _lock(postgresql.insert)}
"""By whether it is PostgreSQL."""


def lock_names(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Lock names, in one order for all, and return the number of the last signal of each."""
    statement = _LOCK[transaction.is_postgresql]
    execute = transaction.connection.execute
    return {name: execute(statement, {"the_name": name}).scalar_one() for name in sorted(set(names))}


def subscribed(wanted: Sequence[Wanted]) -> set[tuple[str, str]]:
    """Return the names of signals that triggers wait for, each with the trigger."""
    signals = [each for each in wanted if each.kind is Kind.SIGNAL]
    return {(name, each.trigger_id) for each in signals for name in each.definition["definitions"]}


def subscribe(transaction: Transaction, workflow_id: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Let signals make the triggers of a workflow due, these ones and no others; their names are locked already."""
    mine = delete(signal_subscription).where(signal_subscription.c.workflow_id == workflow_id)
    transaction.connection.execute(mine)
    rows = [{"name": name, "workflow_id": workflow_id, "trigger_id": trigger_id} for name, trigger_id in sorted(pairs)]
    if rows:
        transaction.connection.execute(insert(signal_subscription), rows)
