"""How far followers of events have come, and the alerts that are to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "follower",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "alert_message",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("recipients", sa.Text, nullable=False),
        sa.Column("alert", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
    )
    is_waiting = sa.text("status = 'waiting'")
    op.create_index(
        "alert_message_due", "alert_message", ["due_at"], sqlite_where=is_waiting, postgresql_where=is_waiting
    )
    op.create_index("alert_message_made", "alert_message", ["made_at"])
