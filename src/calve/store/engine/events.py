"""Events, and the positions of their followers.

PostgreSQL numbers events when they are written, but shows them when they are committed: a reader of number 6 could
miss number 5, if that is committed later. So each event has the id of its transaction, and is shown only
when no older transaction is in progress. After a minute it is shown in any case, so that a long transaction of another
application, or the transaction ids of a restored backup, cannot hide it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, insert, select, text, union_all, update

from calve.engine import Event
from calve.errors import Conflict
from calve.store.database import Transaction, Transactions, chunks
from calve.store.engine.rows import EVENT
from calve.store.tables import IS_INNER, event, follower, run

_SETTLED = text(
    "(event.xid < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint"
    " OR event.at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 60000)"
)
_ROOTS = select(run.c.uuid, run.c.root_uuid).where(run.c.uuid.in_(bindparam("uuids", expanding=True)))
_EVENTS = insert(event)


def append_events(connection: Connection, events: Sequence[Event], roots: Mapping[str, str]) -> None:
    """Append events; ``roots`` has the roots of the runs that this transaction has written."""
    if not events:
        return
    missing = sorted({each.run_uuid for each in events} - roots.keys())
    found = dict(roots)
    for some in chunks(missing):
        found |= {row.uuid: row.root_uuid for row in connection.execute(_ROOTS, {"uuids": some})}
    connection.execute(_EVENTS, [EVENT.to_row(each, root_uuid=_inner_root(each, found)) for each in events])


def _inner_root(each: Event, roots: Mapping[str, str]) -> str:
    """Return the root of an event's run; empty if the run is its own root, which most are."""
    root = roots.get(each.run_uuid, each.run_uuid)
    return "" if root == each.run_uuid else root


def read_events(
    connection: Connection, *, after: int, run_uuid: str | None, root_uuid: str | None, limit: int
) -> list[Event]:
    """Return events in order, starting after ``after``; no later event will get a place before the last of them."""
    query = select(event).where(event.c.seq > after).order_by(event.c.seq).limit(limit)
    if connection.dialect.name == "postgresql":
        query = query.where(_SETTLED)
    if run_uuid is not None:
        query = query.where(event.c.run_uuid == run_uuid)
    elif root_uuid is not None:
        query = _of_tree(query, root_uuid, limit)
    return [EVENT.from_row(row) for row in connection.execute(query)]


def _of_tree(query: Select[Any], root_uuid: str, limit: int) -> Select[Any]:
    """Return the first events of a root and of the runs inside it; an index returns each part in order."""
    own = query.where(event.c.run_uuid == root_uuid).subquery()
    inner = query.where(event.c.root_uuid == root_uuid, text(IS_INNER)).subquery()
    both = union_all(select(own), select(inner)).subquery()
    return select(both).order_by(both.c.seq).limit(limit)


class SqlPositions:
    """Stores the position of each follower (the ports are ``AlertState`` and ``LineageState``)."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower; a new one starts at ``first``, or at the newest event."""
        query = select(follower.c.seq).where(follower.c.name == name)
        with self._transactions.read() as connection:
            found = connection.scalar(query)
        if found is not None:
            return int(found)

        def begin(transaction: Transaction) -> int:
            connection = transaction.connection
            newest = connection.scalar(select(func.max(event.c.seq))) or 0 if first is None else first
            row = {"name": name, "seq": newest}
            connection.execute(transaction.insert(follower).values(row).on_conflict_do_nothing())
            return int(connection.scalar(query) or 0)

        return self._transactions.write("begin_following", begin)

    def move(self, name: str, before: int, after: int) -> None:
        """Advance a follower.

        Raises:
            Conflict: its position changed.
        """
        self._transactions.write("follow", lambda transaction: moved(transaction, name, before, after))


def moved(transaction: Transaction, name: str, before: int, after: int) -> None:
    """Advance a follower in a transaction.

    Raises:
        Conflict: its position changed.
    """
    statement = update(follower).where(follower.c.name == name, follower.c.seq == before).values(seq=after)
    if transaction.connection.execute(statement).rowcount != 1:
        raise Conflict(f"Another process has moved {name} on.", follower=name)
