"""Less of what is the same in every instance, and logs of which the end is kept, or the whole somewhere else."""

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
    for column in ("start", "line"):
        op.add_column("log_chunk", sa.Column(column, sa.BigInteger))
    op.add_column("log_chunk", sa.Column("size", sa.Integer))
    op.create_table(
        "log_file",
        sa.Column("attempt_uuid", sa.Text, primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
    )
    _replace("event_root", "event", ["root_uuid", "seq"], "root_uuid <> ''")
    counted = "root_uuid <> '' AND is_leaf AND NOT is_superseded"
    _replace("attempt_rollup", "attempt", ["root_uuid", "status", "is_leaf", "is_superseded"], counted)


def _replace(index: str, table: str, columns: list[str], where: str) -> None:
    op.drop_index(index, table)
    op.execute(sa.text(f"UPDATE {table} SET root_uuid = '' WHERE root_uuid = run_uuid"))  # noqa: S608 - our own names
    condition = sa.text(where)
    op.create_index(index, table, columns, sqlite_where=condition, postgresql_where=condition)
