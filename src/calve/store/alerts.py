"""Alerts to be sent (the port is ``calve.alerts.ports.AlertState``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, text, update

from calve.alerts import Message, MessageStatus, StoredMessage
from calve.engine import VersionRecord
from calve.store.codec import Codec, loaded, plain
from calve.store.database import Transaction
from calve.store.engine import VERSION, SqlPositions, moved
from calve.store.tables import IS_WAITING, alert_message, version, workflow

MESSAGE = Codec(StoredMessage, alert_message)
_columns = alert_message.c


class SqlAlertState(SqlPositions):
    """Stores messages until they are sent, and the positions of their followers."""

    def take(self, name: str, before: int, after: int, messages: Sequence[Message], now: int) -> None:
        """Advance a follower and store its messages, both or neither; a message that is stored already is skipped.

        Raises:
            Conflict: the position of the follower changed.
        """

        def work(transaction: Transaction) -> None:
            moved(transaction, name, before, after)
            insert = transaction.insert(alert_message).on_conflict_do_nothing()
            for message in messages:
                waiting = StoredMessage(message, MessageStatus.WAITING, 0, now, now)
                transaction.connection.execute(insert, MESSAGE.to_row(waiting, id=message.id))

        self._transactions.write("take_alerts", work)

    def due(self, now: int, *, without: Sequence[str] = (), limit: int = 100) -> list[StoredMessage]:
        """Return messages that are due, oldest first, without those for some channels."""
        query = select(alert_message).where(text(IS_WAITING), _columns.due_at <= now)
        query = query.where(_columns.channel.not_in(without)) if without else query
        with self._transactions.read() as connection:
            return [MESSAGE.from_row(row) for row in connection.execute(query.order_by(_columns.due_at).limit(limit))]

    def claim(self, stored: StoredMessage, until: int) -> bool:
        """Claim a message until a time, for one more try; return False if another process has claimed it."""
        is_mine = (_columns.id == stored.message.id, text(IS_WAITING), _columns.due_at == stored.due_at)
        statement = update(alert_message).where(*is_mine).values(due_at=until, tries=_columns.tries + 1)
        return self._transactions.write(
            "claim_alert", lambda transaction: transaction.connection.execute(statement).rowcount == 1
        )

    def sent(self, message_id: str, now: int) -> None:
        """Record that a message was sent."""
        self._change(message_id, status=MessageStatus.SENT.value, sent_at=now, error="")

    def failed(self, message_id: str, error: str, due_at: int | None) -> None:
        """Record that a message could not be sent, and when to try again; None gives it up."""
        changed = {"status": MessageStatus.GIVEN_UP.value} if due_at is None else {"due_at": due_at}
        self._change(message_id, error=plain(error), **changed)

    def messages(self, *, status: MessageStatus | None = None, limit: int = 100) -> list[StoredMessage]:
        """Return messages, newest first."""
        query = select(alert_message).order_by(_columns.made_at.desc(), _columns.id).limit(limit)
        if status is not None:
            query = query.where(_columns.status == status.value)
        with self._transactions.read() as connection:
            return [MESSAGE.from_row(row) for row in connection.execute(query)]

    def versions(self, since: int) -> list[VersionRecord]:
        """Return the versions of workflows created since a time, oldest first."""
        query = select(version).where(version.c.created_at >= since).order_by(version.c.created_at)
        with self._transactions.read() as connection:
            return [VERSION.from_row(row) for row in connection.execute(query)]

    def properties(self, workflow_id: str) -> Mapping[str, object]:
        """Return the properties of a workflow; empty if it does not exist."""
        query = select(workflow.c.properties).where(workflow.c.workflow_id == workflow_id)
        with self._transactions.read() as connection:
            found = connection.scalar(query)
        return {} if found is None else loaded(found)

    def _change(self, message_id: str, **values: Any) -> None:
        statement = update(alert_message).where(_columns.id == message_id, text(IS_WAITING)).values(values)
        self._transactions.write("change_alert", lambda transaction: transaction.connection.execute(statement))
