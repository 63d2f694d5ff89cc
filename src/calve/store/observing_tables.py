"""Tables of those who follow what happens: how far they have come, and the alerts that are to be sent."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, text

from calve.store.tables import metadata

IS_WAITING = "status = 'waiting'"

follower = Table(
    "follower",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)
"""The event up to which each follower has done its work."""

alert_message = Table(
    "alert_message",
    metadata,
    Column("id", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("recipients", Text, nullable=False),
    Column("alert", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
)
"""An outbox: written with the place of its follower in one transaction, sent afterwards."""

Index(
    "alert_message_due",
    alert_message.c.due_at,
    sqlite_where=text(IS_WAITING),
    postgresql_where=text(IS_WAITING),
)
Index("alert_message_made", alert_message.c.made_at)
