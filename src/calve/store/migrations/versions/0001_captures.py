"""Checkpoints, their log, and captures."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TIME = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "checkpoint",
        sa.Column("consumer", sa.Text, primary_key=True),
        sa.Column("catalog", sa.Text, primary_key=True),
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("checkpoint", sa.JSON, nullable=False),
        sa.Column("moved_at", _TIME, nullable=False),
        sa.Column("moved_by", sa.Text, nullable=False),
    )
    op.create_table(
        "checkpoint_log",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("consumer", sa.Text, nullable=False),
        sa.Column("catalog", sa.Text, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("before", sa.JSON),
        sa.Column("after", sa.JSON),
        sa.UniqueConstraint("consumer", "catalog", "table_name", "version", name="checkpoint_log_place"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "capture",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("consumer", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("closed_at", _TIME),
        sa.Column("collected_at", _TIME),
        sa.Column("moves", sa.JSON, nullable=False),
        sa.Column("artifacts", sa.JSON, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
        sa.UniqueConstraint("consumer", "number", name="capture_number"),
    )
    _partial_index("capture_open", ["consumer"], "status = 'open'", unique=True)
    _partial_index(
        "capture_key", ["consumer", "key"], "key IS NOT NULL AND status IN ('open', 'committed')", unique=True
    )
    _partial_index("capture_uncollected", ["created_at"], "collected_at IS NULL", unique=False)


def _partial_index(name: str, columns: list[str], where: str, *, unique: bool) -> None:
    condition = sa.text(where)
    op.create_index(name, "capture", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
