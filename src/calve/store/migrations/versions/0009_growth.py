"""Less of what is the same in every instance, and logs of which the end is kept, or the whole somewhere else."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_UUIDS = {
    "run": ["uuid", "root_uuid", "parent_run", "parent_attempt"],
    "attempt": ["uuid", "run_uuid", "root_uuid"],
    "task": ["run_uuid", "attempt_uuid"],
    "permit_claim": ["attempt_uuid", "run_uuid"],
    "event": ["run_uuid", "root_uuid"],
    "log_chunk": ["attempt_uuid"],
    "log_file": ["attempt_uuid"],
    "signal_wait": ["attempt_uuid", "run_uuid"],
    "signal_use": ["run_uuid", "attempt_uuid"],
}


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
    op.drop_index("event_root", "event")
    op.drop_index("attempt_rollup", "attempt")
    for table in ("event", "attempt"):
        op.execute(sa.text(f"UPDATE {table} SET root_uuid = '' WHERE root_uuid = run_uuid"))  # noqa: S608 - our own names
    for table, columns in _UUIDS.items():
        _shorten(table, columns)
    _index("event_root", "event", ["root_uuid", "seq"], "length(root_uuid) > 0")
    counted = "length(root_uuid) > 0 AND is_leaf AND NOT is_superseded"
    _index("attempt_rollup", "attempt", ["root_uuid", "status", "is_leaf", "is_superseded"], counted)


def _shorten(table: str, columns: list[str]) -> None:
    """Keep UUIDs as 16 bytes instead of as text."""
    if op.get_bind().dialect.name == "postgresql":
        types = [f"ALTER {name} TYPE bytea USING decode(replace({name}, '-', ''), 'hex')" for name in columns]
        op.execute(sa.text(f"ALTER TABLE {table} {', '.join(types)}"))
        return
    driver: Any = op.get_bind().connection.driver_connection
    driver.create_function("as_bytes", 1, lambda text: None if text is None else bytes.fromhex(text.replace("-", "")))
    values = [f"{name} = as_bytes({name})" for name in columns]
    op.execute(sa.text(f"UPDATE {table} SET {', '.join(values)}"))  # noqa: S608 - our own names


def _index(index: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(index, table, columns, sqlite_where=condition, postgresql_where=condition)
