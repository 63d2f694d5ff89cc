"""Which branches delivery has made in target tables, and which tables it has delivered to."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TIME = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "delivery_branch",
        sa.Column("branch", sa.Text, primary_key=True),
        sa.Column("catalog", sa.Text, primary_key=True),
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("capture_id", sa.Text),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("staged_at", _TIME, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.Column("table_uuid", sa.Text),
        sa.Column("base_snapshot_id", sa.BigInteger),
        sa.Column("branch_snapshot_id", sa.BigInteger),
    )
    op.create_index("delivery_branch_capture", "delivery_branch", ["capture_id"])
    op.create_table(
        "delivery_target",
        sa.Column("stream", sa.Text, primary_key=True),
        sa.Column("catalog", sa.Text, primary_key=True),
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("table_uuid", sa.Text, nullable=False),
        sa.Column("delivered_at", _TIME, nullable=False),
    )
