"""Triggers, and the version of each workflow whose triggers are there."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_UNSYNCED = sa.text("COALESCE(triggers_version, 0) <> COALESCE(active_version, 0)")
_DUE = sa.text("due_at IS NOT NULL")


def upgrade() -> None:
    """Make the tables."""
    op.add_column("workflow", sa.Column("activated_at", sa.BigInteger))
    op.add_column("workflow", sa.Column("triggers_version", sa.Integer))
    op.create_index(
        "workflow_unsynced", "workflow", ["workflow_id"], sqlite_where=_UNSYNCED, postgresql_where=_UNSYNCED
    )
    op.create_table(
        "trigger",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("trigger_id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due_at", sa.BigInteger),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("is_begun", sa.Boolean, nullable=False),
        sa.Column("fired_at", sa.BigInteger),
        sa.Column("error", sa.Text),
        sa.Column("failures", sa.Integer, nullable=False),
    )
    op.create_index("trigger_due", "trigger", ["due_at"], sqlite_where=_DUE, postgresql_where=_DUE)
