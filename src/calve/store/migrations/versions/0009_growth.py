"""Less of what is the same in every instance: definitions of params once, and roots only where they say something."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table, and let runs that are their own root no longer be named as such.

    Runs and attempts that hold the definitions of their params themselves stay as they are, and can be read.
    """
    op.create_table(
        "param_set",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("definitions", sa.Text, nullable=False),
    )
    _replace("event_root", "event", ["root_uuid", "seq"], "root_uuid <> ''")
    counted = "root_uuid <> '' AND is_leaf AND NOT is_superseded"
    _replace("attempt_rollup", "attempt", ["root_uuid", "status", "is_leaf", "is_superseded"], counted)


def _replace(index: str, table: str, columns: list[str], where: str) -> None:
    op.drop_index(index, table)
    op.execute(sa.text(f"UPDATE {table} SET root_uuid = '' WHERE root_uuid = run_uuid"))  # noqa: S608 - our own names
    condition = sa.text(where)
    op.create_index(index, table, columns, sqlite_where=condition, postgresql_where=condition)
