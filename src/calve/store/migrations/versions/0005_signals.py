"""Signals, and what waits for them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

_SORTED = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def _key(name: str, kind: sa.types.TypeEngine[str] | type[sa.types.TypeEngine[str]] = sa.Text) -> sa.Column[str]:
    return sa.Column(name, kind, primary_key=True)


def _seq() -> sa.Column[int]:
    return sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table("signal_name", _key("name"), sa.Column("last_seq", sa.BigInteger, nullable=False))
    op.create_table(
        "signal",
        _key("name"),
        _seq(),
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("announced_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("name", "instance_id", name="signal_instance"),
    )
    op.create_index("signal_announced", "signal", ["announced_at", "name", "seq"])
    op.create_table("signal_param", _key("name"), _key("param"), _key("value", _SORTED), _seq())
    op.create_index("signal_param_seq", "signal_param", ["name", "seq"])
    op.create_table("signal_wait", _key("attempt_uuid"), _key("name"), sa.Column("run_uuid", sa.Text, nullable=False))
    op.create_index("signal_wait_name", "signal_wait", ["name"])
    op.create_table("signal_subscription", _key("name"), _key("workflow_id"), _key("trigger_id"))
    op.create_index("signal_subscription_workflow", "signal_subscription", ["workflow_id"])
    op.create_table(
        "signal_use",
        _key("name"),
        _seq(),
        _key("kind"),
        _key("run_uuid"),
        _key("attempt_uuid"),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("instance_id", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("step_id", sa.Text),
        sa.Column("attempt_id", sa.Integer),
    )
    op.create_index("signal_use_instance", "signal_use", ["workflow_id", "instance_id"])
