"""How far those who follow events have come."""

from sqlalchemy import func, select, update

from calve.errors import Conflict
from calve.store.engine_tables import event
from calve.store.observing_tables import follower
from calve.store.transacting import Transaction, Transactions


class SqlPositions:
    """Keeps the position of each follower (the ports are ``AlertState`` and ``LineageState``)."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def position(self, name: str, first: int | None = None) -> int:
        """Return how far a follower has come; a new one begins at ``first``, or at the newest event."""
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
        """Move a follower on.

        Raises:
            Conflict: it is no longer where it was.
        """
        self._transactions.write("follow", lambda transaction: moved(transaction, name, before, after))


def moved(transaction: Transaction, name: str, before: int, after: int) -> None:
    """Move a follower on in a transaction.

    Raises:
        Conflict: it is no longer where it was.
    """
    statement = update(follower).where(follower.c.name == name, follower.c.seq == before).values(seq=after)
    if transaction.connection.execute(statement).rowcount != 1:
        raise Conflict(f"Another process has moved {name} on.", follower=name)
