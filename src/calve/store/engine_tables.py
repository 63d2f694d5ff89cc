"""The tables of the engine: times are milliseconds, JSON is text, and an index is as small as its question.

The conditions of partial indexes are texts that the queries use too: SQLite takes an index only if it finds its very
condition in the query, and reads no rows beside it only if the index holds the columns of that condition too.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, UniqueConstraint, text

from calve.store.tables import Uuid, metadata

IS_LIVE = "status IN ('CREATED', 'IN_PROGRESS', 'PAUSED')"
"""Runs that are not over."""
IS_INSTANCE = "inline_step IS NULL"
IS_LATEST = "is_latest"
IS_UNSUCCESSFUL = "status <> 'SUCCEEDED'"
IS_FREE = "owner IS NULL"
IS_UNENDED = (
    "status IN ('NOT_CREATED', 'CREATED', 'INITIALIZED', 'PAUSED', 'WAITING_FOR_SIGNALS', 'EVALUATING_PARAMS', "
    "'WAITING_FOR_PERMITS', 'STARTING', 'RUNNING', 'FINISHING')"
)
"""Attempts that will move again."""
IS_PAUSED = "status = 'PAUSED'"
IS_COUNTED = "is_leaf AND NOT is_superseded"
IS_UNSYNCED = "COALESCE(triggers_version, 0) <> COALESCE(active_version, 0)"
"""Workflows whose triggers are not yet those of the active version."""
IS_DUE = "due_at IS NOT NULL"
"""Triggers that are looked at by themselves at some time."""
HAS_TIMEOUT = "timeout_at IS NOT NULL"
IS_INNER = "length(root_uuid) > 0"
"""Events and attempts of runs that are inside others: where a run is its own root, ``root_uuid`` is empty."""

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database gives; SQLite does so for INTEGER only."""


def _needed(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


workflow = Table(
    "workflow",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("active_version", Integer),
    _needed("latest_version", Integer),
    _needed("properties"),
    Column("strategy", Text),
    _needed("last_instance", BigInteger),
    _needed("created_at", BigInteger),
    _needed("modified_at", BigInteger),
    Column("deleted_at", BigInteger),
    Column("activated_at", BigInteger),
    Column("triggers_version", Integer),
)
"""One row a workflow, kept when it is deleted for the sake of ``last_instance``; who starts an instance locks it."""

version = Table(
    "version",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("version_id", Integer, primary_key=True),
    _needed("definition"),
    _needed("author"),
    _needed("created_at", BigInteger),
)

param_set = Table(
    "param_set",
    metadata,
    Column("id", Text, primary_key=True),
    _needed("definitions"),
)
"""Definitions of params that runs and attempts have in common: see ``param_sets``."""

run = Table(
    "run",
    metadata,
    Column("uuid", Uuid, primary_key=True),
    _needed("workflow_id"),
    _needed("instance_id", BigInteger),
    _needed("run_id", Integer),
    _needed("version_id", Integer),
    _needed("owner_workflow"),
    _needed("root_uuid", Uuid),
    _needed("status"),
    _needed("run_status"),
    _needed("initiator"),
    _needed("policy"),
    Column("parent_run", Uuid),
    Column("parent_step", Text),
    Column("parent_attempt", Uuid),
    Column("inline_step", Text),
    _needed("depth", Integer),
    _needed("priority", Integer),
    _needed("properties"),
    _needed("run_params"),
    _needed("params"),
    _needed("restart"),
    _needed("carried"),
    Column("request_id", Text),
    _needed("tags"),
    _needed("is_queued", Boolean),
    _needed("is_latest", Boolean),
    _needed("is_blocking", Boolean),
    Column("action", Text),
    _needed("message"),
    _needed("timeline"),
    _needed("created_at", BigInteger),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("timeout_at", BigInteger),
    _needed("seq", BigInteger),
    UniqueConstraint("workflow_id", "instance_id", "run_id", name="run_number"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("uuid", Uuid, primary_key=True),
    _needed("run_uuid", Uuid),
    _needed("root_uuid", Uuid),
    _needed("step_id"),
    _needed("step_instance_id", Integer),
    _needed("attempt_id", Integer),
    _needed("type"),
    _needed("status"),
    _needed("is_leaf", Boolean),
    _needed("is_superseded", Boolean),
    _needed("params"),
    _needed("artifacts"),
    _needed("edges"),
    _needed("retries"),
    _needed("times"),
    _needed("timeline"),
    _needed("dependencies"),
    _needed("tags"),
    Column("action", Text),
    Column("due_at", BigInteger),
    Column("timeout_at", BigInteger),
    Column("worker", Text),
    Column("ended_at", BigInteger),
    UniqueConstraint("run_uuid", "step_id", "attempt_id", name="attempt_number"),
)

task = Table(
    "task",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    _needed("key"),
    _needed("kind"),
    _needed("run_uuid", Uuid),
    Column("attempt_uuid", Uuid),
    _needed("due_at", BigInteger),
    _needed("priority", Integer),
    Column("owner", Text),
    _needed("generation", Integer),
    _needed("wakes", Integer),
    _needed("tries", Integer),
    UniqueConstraint("key", name="task_key"),
)

worker = Table(
    "worker",
    metadata,
    Column("uuid", Text, primary_key=True),
    _needed("host"),
    _needed("pid", Integer),
    _needed("started_at", BigInteger),
    _needed("heartbeat_at", BigInteger),
    _needed("slots", Integer),
    _needed("is_draining", Boolean),
    _needed("is_dead", Boolean),
)

claim = Table(
    "permit_claim",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    _needed("permit"),
    _needed("attempt_uuid", Uuid),
    _needed("run_uuid", Uuid),
    Column("max_held", Integer),
    _needed("is_held", Boolean),
    _needed("priority", Integer),
    UniqueConstraint("attempt_uuid", "permit", name="permit_claim_place"),
)
"""What attempts count against: those that hold a permit, and those that wait for one."""

tag_permit = Table(
    "tag_permit",
    metadata,
    Column("tag", Text, primary_key=True),
    _needed("max_allowed", Integer),
    _needed("modified_at", BigInteger),
)

breakpoint_ = Table(
    "step_breakpoint",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("step_id", Text, primary_key=True),
    Column("version_id", Integer, primary_key=True, autoincrement=False),
    Column("instance_id", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", Integer, primary_key=True, autoincrement=False),
    Column("attempt_id", Integer, primary_key=True, autoincrement=False),
    _needed("created_by"),
    _needed("created_at", BigInteger),
)

trigger = Table(
    "trigger",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("trigger_id", Text, primary_key=True),
    _needed("kind"),
    _needed("version_id", Integer),
    _needed("definition"),
    _needed("state"),
    Column("due_at", BigInteger),
    _needed("seq", BigInteger),
    _needed("made_at", BigInteger),
    _needed("is_begun", Boolean),
    Column("fired_at", BigInteger),
    Column("error", Text),
    _needed("failures", Integer),
)
"""What starts workflows by itself: the triggers of active versions, and how far each has come."""

event = Table(
    "event",
    metadata,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    Column("xid", BigInteger),
    _needed("kind"),
    _needed("run_uuid", Uuid),
    _needed("root_uuid", Uuid),
    _needed("workflow_id"),
    _needed("instance_id", BigInteger),
    _needed("run_id", Integer),
    _needed("at", BigInteger),
    Column("step_id", Text),
    Column("attempt_id", Integer),
    Column("before", Text),
    Column("after", Text),
    _needed("detail"),
    sqlite_autoincrement=True,
)
"""Everything that happened. PostgreSQL writes the number of the transaction into ``xid``: see ``recording``."""

log_chunk = Table(
    "log_chunk",
    metadata,
    Column("attempt_uuid", Uuid, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _needed("text"),
    Column("start", BigInteger),
    Column("size", Integer),
    Column("line", BigInteger),
)
"""Pieces of logs; those of an older calve follow each other, without saying where they begin."""

log_file = Table(
    "log_file",
    metadata,
    Column("attempt_uuid", Uuid, primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    _needed("size", BigInteger),
    _needed("address"),
)
"""Where whole logs are kept outside, part by part; the row is there before the file is, and goes after it."""


def _index(name: str, table: Table, *columns: str, where: str | None = None, unique: bool = False) -> Index:
    condition = None if where is None else text(where)
    return Index(
        name,
        *(table.c[column] for column in columns),
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )


_index("run_request", run, "workflow_id", "request_id", where="request_id IS NOT NULL", unique=True)
_index("run_root", run, "root_uuid")
_index("run_child", run, "parent_attempt", "instance_id", where="parent_attempt IS NOT NULL")
_index(
    "run_open_child",
    run,
    "parent_attempt",
    "status",
    "is_latest",
    where=f"parent_attempt IS NOT NULL AND {IS_LATEST} AND {IS_UNSUCCESSFUL}",
)
_index("run_timeout", run, "timeout_at", where=f"{HAS_TIMEOUT} AND {IS_LIVE}")
_index("run_newest", run, "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE}")
_index("run_newest_of", run, "workflow_id", "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE}")
_index("run_live", run, "workflow_id", "is_queued", "instance_id", "run_id", where=f"{IS_INSTANCE} AND {IS_LIVE}")
_index("run_blocking", run, "workflow_id", where="is_blocking")
_index("attempt_timeout", attempt, "timeout_at", where=f"{HAS_TIMEOUT} AND {IS_UNENDED}")
_index("attempt_paused", attempt, "step_id", where=IS_PAUSED)
_index(
    "attempt_rollup", attempt, "root_uuid", "status", "is_leaf", "is_superseded", where=f"{IS_INNER} AND {IS_COUNTED}"
)
_index("task_free", task, "kind", "priority", "seq", "due_at", where=IS_FREE)
_index("task_due", task, "kind", "due_at", where=IS_FREE)
_index("task_owner", task, "owner", where="owner IS NOT NULL")
_index("permit_claim_line", claim, "permit", "is_held", "priority", "seq")
_index("workflow_unsynced", workflow, "workflow_id", where=IS_UNSYNCED)
_index("trigger_due", trigger, "due_at", where=IS_DUE)
_index("event_run", event, "run_uuid", "seq")
_index("event_root", event, "root_uuid", "seq", where=IS_INNER)
