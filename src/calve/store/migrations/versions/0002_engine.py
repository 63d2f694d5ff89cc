"""What the engine keeps: workflows, runs, attempts, tasks, workers, permits, events and logs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_IS_LIVE = "status IN ('CREATED', 'IN_PROGRESS', 'PAUSED')"
_IS_UNENDED = (
    "status IN ('NOT_CREATED', 'CREATED', 'INITIALIZED', 'PAUSED', 'WAITING_FOR_SIGNALS', 'EVALUATING_PARAMS', "
    "'WAITING_FOR_PERMITS', 'STARTING', 'RUNNING', 'FINISHING')"
)


def upgrade() -> None:
    """Make the tables."""
    _make_definitions()
    _make_runs()
    _make_queue()
    _make_controls()
    _make_records()
    _make_indexes()


def _make_definitions() -> None:
    op.create_table(
        "workflow",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("active_version", sa.Integer),
        sa.Column("latest_version", sa.Integer, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("strategy", sa.Text),
        sa.Column("last_instance", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("modified_at", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
    )
    op.create_table(
        "version",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("version_id", sa.Integer, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _make_runs() -> None:
    op.create_table(
        "run",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("instance_id", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("owner_workflow", sa.Text, nullable=False),
        sa.Column("root_uuid", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("run_status", sa.Text, nullable=False),
        sa.Column("initiator", sa.Text, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("parent_run", sa.Text),
        sa.Column("parent_step", sa.Text),
        sa.Column("parent_attempt", sa.Text),
        sa.Column("inline_step", sa.Text),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("run_params", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("restart", sa.Text, nullable=False),
        sa.Column("carried", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("is_queued", sa.Boolean, nullable=False),
        sa.Column("is_latest", sa.Boolean, nullable=False),
        sa.Column("is_blocking", sa.Boolean, nullable=False),
        sa.Column("action", sa.Text),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("timeline", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("timeout_at", sa.BigInteger),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("workflow_id", "instance_id", "run_id", name="run_number"),
    )
    op.create_table(
        "attempt",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("run_uuid", sa.Text, nullable=False),
        sa.Column("root_uuid", sa.Text, nullable=False),
        sa.Column("step_id", sa.Text, nullable=False),
        sa.Column("step_instance_id", sa.Integer, nullable=False),
        sa.Column("attempt_id", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("is_leaf", sa.Boolean, nullable=False),
        sa.Column("is_superseded", sa.Boolean, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("artifacts", sa.Text, nullable=False),
        sa.Column("edges", sa.Text, nullable=False),
        sa.Column("retries", sa.Text, nullable=False),
        sa.Column("times", sa.Text, nullable=False),
        sa.Column("timeline", sa.Text, nullable=False),
        sa.Column("dependencies", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("action", sa.Text),
        sa.Column("due_at", sa.BigInteger),
        sa.Column("timeout_at", sa.BigInteger),
        sa.Column("worker", sa.Text),
        sa.Column("ended_at", sa.BigInteger),
        sa.UniqueConstraint("run_uuid", "step_id", "attempt_id", name="attempt_number"),
    )


def _make_queue() -> None:
    op.create_table(
        "task",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run_uuid", sa.Text, nullable=False),
        sa.Column("attempt_uuid", sa.Text),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("wakes", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.UniqueConstraint("key", name="task_key"),
    )
    op.create_table(
        "worker",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("is_draining", sa.Boolean, nullable=False),
        sa.Column("is_dead", sa.Boolean, nullable=False),
    )


def _make_controls() -> None:
    op.create_table(
        "permit_claim",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("permit", sa.Text, nullable=False),
        sa.Column("attempt_uuid", sa.Text, nullable=False),
        sa.Column("run_uuid", sa.Text, nullable=False),
        sa.Column("max_held", sa.Integer),
        sa.Column("is_held", sa.Boolean, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.UniqueConstraint("attempt_uuid", "permit", name="permit_claim_place"),
    )
    op.create_table(
        "tag_permit",
        sa.Column("tag", sa.Text, primary_key=True),
        sa.Column("max_allowed", sa.Integer, nullable=False),
        sa.Column("modified_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "step_breakpoint",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("step_id", sa.Text, primary_key=True),
        sa.Column("version_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("instance_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _make_records() -> None:
    op.create_table(
        "event",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("xid", sa.BigInteger, server_default=_transaction()),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run_uuid", sa.Text, nullable=False),
        sa.Column("root_uuid", sa.Text, nullable=False),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("instance_id", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("step_id", sa.Text),
        sa.Column("attempt_id", sa.Integer),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "log_chunk",
        sa.Column("attempt_uuid", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
    )


def _transaction() -> sa.TextClause:
    """Give PostgreSQL's number of the transaction; SQLite has one writer, and needs none."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    return sa.text("((pg_current_xact_id()::text)::bigint)" if is_postgresql else "0")


def _make_indexes() -> None:
    _index("run_blocking", "run", ["workflow_id"], where="is_blocking")
    _index("run_child", "run", ["parent_attempt", "instance_id"], where="parent_attempt IS NOT NULL")
    _index(
        "run_live",
        "run",
        ["workflow_id", "is_queued", "instance_id", "run_id"],
        where=f"inline_step IS NULL AND {_IS_LIVE}",
    )
    _index("run_newest", "run", ["created_at", "uuid"], where="is_latest AND inline_step IS NULL")
    _index("run_newest_of", "run", ["workflow_id", "created_at", "uuid"], where="is_latest AND inline_step IS NULL")
    _index(
        "run_open_child",
        "run",
        ["parent_attempt", "status", "is_latest"],
        where="parent_attempt IS NOT NULL AND is_latest AND status <> 'SUCCEEDED'",
    )
    _index("run_request", "run", ["workflow_id", "request_id"], where="request_id IS NOT NULL", unique=True)
    _index("run_root", "run", ["root_uuid"])
    _index("run_timeout", "run", ["timeout_at"], where=f"timeout_at IS NOT NULL AND {_IS_LIVE}")
    _index("attempt_paused", "attempt", ["step_id"], where="status = 'PAUSED'")
    _index(
        "attempt_rollup",
        "attempt",
        ["root_uuid", "status", "is_leaf", "is_superseded"],
        where="is_leaf AND NOT is_superseded",
    )
    _index("attempt_timeout", "attempt", ["timeout_at"], where=f"timeout_at IS NOT NULL AND {_IS_UNENDED}")
    _index("task_due", "task", ["kind", "due_at"], where="owner IS NULL")
    _index("task_free", "task", ["kind", "priority", "seq", "due_at"], where="owner IS NULL")
    _index("task_owner", "task", ["owner"], where="owner IS NOT NULL")
    _index("permit_claim_line", "permit_claim", ["permit", "is_held", "priority", "seq"])
    _index("event_root", "event", ["root_uuid", "seq"])
    _index("event_run", "event", ["run_uuid", "seq"])


def _index(name: str, table: str, columns: list[str], *, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
