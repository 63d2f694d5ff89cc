"""Tables of followers of events, and of alerts to be sent."""

from sqlalchemy import BigInteger, Integer, Table

from calve.store.tables.columns import index, key, metadata, optional, required

IS_WAITING = "status = 'waiting'"

follower = Table(
    "follower",
    metadata,
    key("name"),
    required("seq", BigInteger),
)
"""The last event that each follower has handled."""

alert_message = Table(
    "alert_message",
    metadata,
    key("id"),
    required("channel"),
    required("to"),
    required("mention"),
    required("alert"),
    required("status"),
    required("tries", Integer),
    required("error"),
    required("made_at", BigInteger),
    required("due_at", BigInteger),
    optional("sent_at", BigInteger),
)
"""An outbox: written with the position of its follower in one transaction, sent afterwards."""

index("alert_message_due", alert_message, "due_at", where=IS_WAITING)
index("alert_message_made", alert_message, "made_at")
