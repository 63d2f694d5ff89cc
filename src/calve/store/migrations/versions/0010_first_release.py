"""The schema of the first release, from that of the last unreleased version.

A new database is created from ``calve.store.tables``, at the newest revision. Those of the other unreleased versions,
0001 to 0008, cannot be upgraded.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = None


def upgrade() -> None:
    """Add the tables of lag and lineage and the columns that were missing, and name tables as the codec does."""
    with op.batch_alter_table("worker") as worker:
        worker.add_column(sa.Column("version", sa.Text, nullable=False, server_default=""))
    with op.batch_alter_table("worker") as worker:
        worker.alter_column("version", server_default=None)
    _split_recipients()
    _require_offsets()
    _name_tables()
    op.execute("UPDATE delivery_branch SET table_uuid = '' WHERE table_uuid IS NULL")
    with op.batch_alter_table("delivery_branch") as branch:
        branch.alter_column("table_uuid", existing_type=sa.Text, nullable=False)
    _add_tables()
    ended = "is_latest AND inline_step IS NULL AND status"
    _index("run_failed", "run", ["created_at", "uuid"], f"{ended} IN ('FAILED', 'TIMED_OUT')")
    _index("run_stopped", "run", ["created_at", "uuid"], f"{ended} = 'STOPPED'")
    _index("delivery_branch_held", "delivery_branch", ["changed_at"], "status = 'held'")
    op.create_index("capture_created_at", "capture", ["created_at"])


def _split_recipients() -> None:
    """Store the addresses and the mentions of an alert in columns of their own."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    with op.batch_alter_table("alert_message") as message:
        for name in ("to", "mention"):
            message.add_column(sa.Column(name, sa.Text, nullable=False, server_default="[]"))
    for name in ("to", "mention"):
        value = f"recipients::json ->> '{name}'" if is_postgresql else f"json_extract(recipients, '$.{name}')"
        op.execute(f'UPDATE alert_message SET "{name}" = {value}')  # noqa: S608 - our own names
    with op.batch_alter_table("alert_message") as message:
        message.drop_column("recipients")
        for name in ("to", "mention"):
            message.alter_column(name, server_default=None)


def _require_offsets() -> None:
    """Compute the offsets of the logs that were written before logs had them."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    size = "octet_length(text)" if is_postgresql else "length(CAST(text AS BLOB))"
    lines = "length(text) - length(replace(text, chr(10), ''))"
    before = "OVER (PARTITION BY attempt_uuid ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    offsets = (
        "SELECT attempt_uuid, number, "  # noqa: S608 - our own names
        f"{size} AS size, coalesce(sum({size}) {before}, 0) AS start, "
        f"coalesce(sum({lines if is_postgresql else lines.replace('chr', 'char')}) {before}, 0) AS line FROM log_chunk"
    )
    op.execute(
        "UPDATE log_chunk SET start = found.start, size = found.size, line = found.line "  # noqa: S608 - the same
        f"FROM ({offsets}) AS found WHERE log_chunk.start IS NULL "
        "AND found.attempt_uuid = log_chunk.attempt_uuid AND found.number = log_chunk.number"
    )
    with op.batch_alter_table("log_chunk") as chunk:
        for name in ("start", "line"):
            chunk.alter_column(name, existing_type=sa.BigInteger, nullable=False)
        chunk.alter_column("size", existing_type=sa.Integer, nullable=False)


def _name_tables() -> None:
    """Store the name of a table in a capture as an object instead of as a list."""
    capture = sa.table("capture", sa.column("id"), sa.column("moves", sa.JSON), sa.column("artifacts", sa.JSON))
    for row in op.get_bind().execute(sa.select(capture)).all():
        moves = [{**move, "table": _name(move["table"])} for move in row.moves]
        tables = [_name(table) for table in row.artifacts["tables"]]
        tags = [[_name(table), tag] for table, tag in row.artifacts["tags"]]
        values = {"moves": moves, "artifacts": {**row.artifacts, "tables": tables, "tags": tags}}
        op.get_bind().execute(sa.update(capture).where(capture.c.id == row.id).values(values))


def _name(parts: list[str]) -> dict[str, Any]:
    catalog, *namespace, name = parts
    return {"catalog": catalog, "namespace": namespace, "name": name}


def _add_tables() -> None:
    numbers = ("commits", "files", "rows", "bytes")
    op.create_table(
        "lag_sample",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("consumer", "catalog", "table_name")),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.BigInteger) for name in numbers),
        sa.Column("checkpoint_at", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in ("current_at", "expires_at")),
    )
    op.create_index("lag_sample_at", "lag_sample", ["at", "consumer", "catalog", "table_name"])
    op.create_index("lag_sample_table", "lag_sample", ["catalog", "table_name", "at"])
    edge = ("workflow_id", "step_id", "direction", "catalog", "table_name")
    op.create_table(
        "lineage_edge",
        *(sa.Column(name, sa.Text, primary_key=True) for name in edge),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("at", "instance_id")),
        sa.Column("attempt", _uuid(), nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in ("rows", "bytes", "snapshot_id")),
    )
    op.create_index("lineage_edge_table", "lineage_edge", ["table_name"])
    op.create_index("lineage_edge_at", "lineage_edge", ["at"])


def _uuid() -> "sa.types.TypeEngine[str]":
    """Return the type of a UUID: text in SQLite, 16 bytes in PostgreSQL."""
    return sa.Text().with_variant(sa.LargeBinary(), "postgresql")


def _index(index: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(index, table, columns, sqlite_where=condition, postgresql_where=condition)
