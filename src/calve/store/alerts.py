"""Alerts that are to be sent (the port is ``calve.alerts.ports.AlertState``)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select, text, update

from calve.alerts.model import Alert, Message, MessageStatus, Route, StoredMessage
from calve.engine.model import VersionRecord
from calve.store.engine_rows import loaded, plain, version_of
from calve.store.engine_tables import version, workflow
from calve.store.following import SqlPositions, moved
from calve.store.observing_tables import IS_WAITING, alert_message
from calve.store.transacting import Transaction

_columns = alert_message.c


class SqlAlertState(SqlPositions):
    """Keeps messages until they are sent, and how far events have been looked at."""

    def take(self, name: str, before: int, after: int, messages: Sequence[Message], now: int) -> None:
        """Move a follower on and keep its messages, both or neither; a message that is known is not kept again.

        Raises:
            Conflict: the follower is no longer where it was.
        """

        def work(transaction: Transaction) -> None:
            moved(transaction, name, before, after)
            rows = [_row(message, now) for message in messages]
            insert = transaction.insert(alert_message).on_conflict_do_nothing()
            for row in rows:
                transaction.connection.execute(insert, row)

        self._transactions.write("take_alerts", work)

    def due(self, now: int, *, without: Sequence[str] = (), limit: int = 100) -> list[StoredMessage]:
        """Return messages that are to be sent, those that wait longest first; none of some channels."""
        query = select(alert_message).where(text(IS_WAITING), _columns.due_at <= now)
        query = query.where(_columns.channel.not_in(without)) if without else query
        with self._transactions.read() as connection:
            return [_stored(row) for row in connection.execute(query.order_by(_columns.due_at).limit(limit))]

    def claim(self, stored: StoredMessage, until: int) -> bool:
        """Take a message in hand until a time: one more try; tell whether nobody else has it."""
        is_mine = (_columns.id == stored.message.id, text(IS_WAITING), _columns.due_at == stored.due_at)
        statement = update(alert_message).where(*is_mine).values(due_at=until, tries=_columns.tries + 1)
        return self._transactions.write(
            "claim_alert", lambda transaction: transaction.connection.execute(statement).rowcount == 1
        )

    def sent(self, message_id: str, now: int) -> None:
        """Record that a message was sent."""
        self._change(message_id, status=MessageStatus.SENT.value, sent_at=now, error="")

    def failed(self, message_id: str, error: str, due_at: int | None) -> None:
        """Record that a message could not be sent, and when it is tried again; never, if no time is given."""
        changed = {"status": MessageStatus.GIVEN_UP.value} if due_at is None else {"due_at": due_at}
        self._change(message_id, error=plain(error), **changed)

    def messages(self, *, status: MessageStatus | None = None, limit: int = 100) -> list[StoredMessage]:
        """Return messages, newest first."""
        query = select(alert_message).order_by(_columns.made_at.desc(), _columns.id).limit(limit)
        if status is not None:
            query = query.where(_columns.status == status.value)
        with self._transactions.read() as connection:
            return [_stored(row) for row in connection.execute(query)]

    def versions(self, since: int) -> list[VersionRecord]:
        """Return the versions of workflows that were made at a time or later, oldest first."""
        query = select(version).where(version.c.created_at >= since).order_by(version.c.created_at)
        with self._transactions.read() as connection:
            return [version_of(row) for row in connection.execute(query)]

    def properties(self, workflow_id: str) -> Mapping[str, object]:
        """Return the properties of a workflow; none, if there is no such workflow."""
        query = select(workflow.c.properties).where(workflow.c.workflow_id == workflow_id)
        with self._transactions.read() as connection:
            found = connection.scalar(query)
        return {} if found is None else loaded(found)

    def _change(self, message_id: str, **values: Any) -> None:
        statement = update(alert_message).where(_columns.id == message_id, text(IS_WAITING)).values(values)
        self._transactions.write("change_alert", lambda transaction: transaction.connection.execute(statement))


def _row(message: Message, now: int) -> dict[str, Any]:
    route = message.route
    return {
        "id": message.id,
        "channel": route.channel,
        "recipients": json.dumps({"to": route.to, "mention": route.mention}),
        "alert": json.dumps(message.alert.as_json()),
        "status": MessageStatus.WAITING.value,
        "tries": 0,
        "error": "",
        "made_at": now,
        "due_at": now,
    }


def _stored(row: Row[Any]) -> StoredMessage:
    people = json.loads(row.recipients)
    route = Route(row.channel, tuple(people["to"]), tuple(people["mention"]))
    return StoredMessage(
        Message(Alert.from_json(json.loads(row.alert)), route),
        MessageStatus(row.status),
        row.tries,
        row.made_at,
        row.due_at,
        row.error,
        row.sent_at,
    )
