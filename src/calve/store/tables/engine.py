"""The tables of the engine: times are milliseconds, JSON is text, and each index is as small as its queries allow.

The conditions of partial indexes are texts that the queries contain too: SQLite uses such an index only if the query
contains the same condition, and reads no rows besides it only if the index has the columns of the condition too.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table, UniqueConstraint
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from calve.store.tables.columns import Uuid, index, key, metadata, number, optional, required

IS_LIVE = "status IN ('CREATED', 'IN_PROGRESS', 'PAUSED')"
"""Unfinished runs."""
IS_INSTANCE = "inline_step IS NULL"
IS_LATEST = "is_latest"
IS_UNSUCCESSFUL = "status <> 'SUCCEEDED'"
IS_FAILED = "status IN ('FAILED', 'TIMED_OUT')"
IS_STOPPED = "status = 'STOPPED'"
IS_FREE = "owner IS NULL"
IS_UNENDED = (
    "status IN ('NOT_CREATED', 'CREATED', 'INITIALIZED', 'PAUSED', 'WAITING_FOR_SIGNALS', 'EVALUATING_PARAMS', "
    "'WAITING_FOR_PERMITS', 'STARTING', 'RUNNING', 'FINISHING')"
)
"""Unfinished attempts."""
IS_PAUSED = "status = 'PAUSED'"
IS_COUNTED = "is_leaf AND NOT is_superseded"
IS_UNSYNCED = "COALESCE(triggers_version, 0) <> COALESCE(active_version, 0)"
"""Workflows whose triggers are not yet those of the active version."""
IS_DUE = "due_at IS NOT NULL"
"""Triggers with a time at which they are checked."""
HAS_TIMEOUT = "timeout_at IS NOT NULL"
IS_INNER = "length(root_uuid) > 0"
"""Events and attempts of runs inside other runs; for a run that is its own root, ``root_uuid`` is empty."""


class _TransactionNumber(FunctionElement[int]):
    """The id of the transaction in PostgreSQL; 0 in SQLite, which writes one transaction after the other."""

    inherit_cache = True


@compiles(_TransactionNumber)
def _compile_number(_element: Any, compiler: Any, **_options: Any) -> str:
    return "((pg_current_xact_id()::text)::bigint)" if compiler.dialect.name == "postgresql" else "0"


workflow = Table(
    "workflow",
    metadata,
    key("workflow_id"),
    optional("active_version", Integer),
    required("latest_version", Integer),
    required("properties"),
    optional("strategy"),
    required("last_instance", BigInteger),
    required("created_at", BigInteger),
    required("modified_at", BigInteger),
    optional("deleted_at", BigInteger),
    optional("activated_at", BigInteger),
    optional("triggers_version", Integer),
)
"""One row per workflow, locked to start an instance. A deleted workflow keeps its row, so that numbers continue."""

version = Table(
    "version",
    metadata,
    key("workflow_id"),
    key("version_id", Integer),
    required("definition"),
    required("author"),
    required("created_at", BigInteger),
)

param_set = Table(
    "param_set",
    metadata,
    key("id"),
    required("definitions"),
)
"""Definitions of params that runs and attempts have in common: see ``calve.store.engine.params``."""

run = Table(
    "run",
    metadata,
    key("uuid", Uuid),
    required("workflow_id"),
    required("instance_id", BigInteger),
    required("run_id", Integer),
    required("version_id", Integer),
    required("owner_workflow"),
    required("root_uuid", Uuid),
    required("status"),
    required("run_status"),
    required("initiator"),
    required("policy"),
    optional("parent_run", Uuid),
    optional("parent_step"),
    optional("parent_attempt", Uuid),
    optional("inline_step"),
    required("depth", Integer),
    required("priority", Integer),
    required("properties"),
    required("run_params"),
    required("params"),
    required("restart"),
    required("carried"),
    optional("request_id"),
    required("tags"),
    required("is_queued", Boolean),
    required("is_latest", Boolean),
    required("is_blocking", Boolean),
    optional("action"),
    required("message"),
    required("timeline"),
    required("created_at", BigInteger),
    optional("started_at", BigInteger),
    optional("ended_at", BigInteger),
    optional("timeout_at", BigInteger),
    required("seq", BigInteger),
    UniqueConstraint("workflow_id", "instance_id", "run_id", name="run_number"),
)

attempt = Table(
    "attempt",
    metadata,
    key("uuid", Uuid),
    required("run_uuid", Uuid),
    required("root_uuid", Uuid),
    required("step_id"),
    required("step_instance_id", Integer),
    required("attempt_id", Integer),
    required("type"),
    required("status"),
    required("is_leaf", Boolean),
    required("is_superseded", Boolean),
    required("params"),
    required("artifacts"),
    required("edges"),
    required("retries"),
    required("times"),
    required("timeline"),
    required("dependencies"),
    required("tags"),
    optional("action"),
    optional("due_at", BigInteger),
    optional("timeout_at", BigInteger),
    optional("worker"),
    optional("ended_at", BigInteger),
    UniqueConstraint("run_uuid", "step_id", "attempt_id", name="attempt_number"),
)

task = Table(
    "task",
    metadata,
    number("seq"),
    required("key"),
    required("kind"),
    required("run_uuid", Uuid),
    optional("attempt_uuid", Uuid),
    required("due_at", BigInteger),
    required("priority", Integer),
    optional("owner"),
    required("generation", Integer),
    required("wakes", Integer),
    required("tries", Integer),
    UniqueConstraint("key", name="task_key"),
)

worker = Table(
    "worker",
    metadata,
    key("uuid"),
    required("host"),
    required("pid", Integer),
    required("started_at", BigInteger),
    required("heartbeat_at", BigInteger),
    required("slots", Integer),
    required("is_draining", Boolean),
    required("is_dead", Boolean),
    required("version"),
)

claim = Table(
    "permit_claim",
    metadata,
    number("seq"),
    required("permit"),
    required("attempt_uuid", Uuid),
    required("run_uuid", Uuid),
    optional("max_held", Integer),
    required("is_held", Boolean),
    required("priority", Integer),
    UniqueConstraint("attempt_uuid", "permit", name="permit_claim_place"),
)
"""The claims of attempts on permits, held or waiting."""

tag_permit = Table(
    "tag_permit",
    metadata,
    key("tag"),
    required("max_allowed", Integer),
    required("modified_at", BigInteger),
)

breakpoint_ = Table(
    "step_breakpoint",
    metadata,
    key("workflow_id"),
    key("step_id"),
    key("version_id", Integer),
    key("instance_id", BigInteger),
    key("run_id", Integer),
    key("attempt_id", Integer),
    required("created_by"),
    required("created_at", BigInteger),
)

trigger = Table(
    "trigger",
    metadata,
    key("workflow_id"),
    key("trigger_id"),
    required("kind"),
    required("version_id", Integer),
    required("definition"),
    required("state"),
    optional("due_at", BigInteger),
    required("seq", BigInteger),
    required("made_at", BigInteger),
    required("is_begun", Boolean),
    optional("fired_at", BigInteger),
    optional("error"),
    required("failures", Integer),
)
"""The triggers of active versions, with their progress."""

event = Table(
    "event",
    metadata,
    number("seq"),
    Column("xid", BigInteger, server_default=_TransactionNumber()),
    required("kind"),
    required("run_uuid", Uuid),
    required("root_uuid", Uuid),
    required("workflow_id"),
    required("instance_id", BigInteger),
    required("run_id", Integer),
    required("at", BigInteger),
    optional("step_id"),
    optional("attempt_id", Integer),
    optional("before"),
    optional("after"),
    required("detail"),
    sqlite_autoincrement=True,
)
"""Everything that happened. ``xid`` is the id of the transaction in PostgreSQL: ``calve.store.engine.events``."""

log_chunk = Table(
    "log_chunk",
    metadata,
    key("attempt_uuid", Uuid),
    key("number", Integer),
    required("text"),
    required("start", BigInteger),
    required("size", Integer),
    required("line", BigInteger),
)
"""Pieces of logs, with their offsets in bytes and in lines."""

log_file = Table(
    "log_file",
    metadata,
    key("attempt_uuid", Uuid),
    key("start", BigInteger),
    required("size", BigInteger),
    required("address"),
)
"""The files outside the store with parts of whole logs; a row exists before its file does, and is deleted after it."""
index("run_request", run, "workflow_id", "request_id", where="request_id IS NOT NULL", unique=True)
index("run_root", run, "root_uuid")
index("run_child", run, "parent_attempt", "instance_id", where="parent_attempt IS NOT NULL")
index(
    "run_open_child",
    run,
    "parent_attempt",
    "status",
    "is_latest",
    where=f"parent_attempt IS NOT NULL AND {IS_LATEST} AND {IS_UNSUCCESSFUL}",
)
index("run_timeout", run, "timeout_at", where=f"{HAS_TIMEOUT} AND {IS_LIVE}")
index("run_newest", run, "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE}")
index("run_newest_of", run, "workflow_id", "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE}")
index("run_failed", run, "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE} AND {IS_FAILED}")
index("run_stopped", run, "created_at", "uuid", where=f"{IS_LATEST} AND {IS_INSTANCE} AND {IS_STOPPED}")
index("run_live", run, "workflow_id", "is_queued", "instance_id", "run_id", where=f"{IS_INSTANCE} AND {IS_LIVE}")
index("run_blocking", run, "workflow_id", where="is_blocking")
index("attempt_timeout", attempt, "timeout_at", where=f"{HAS_TIMEOUT} AND {IS_UNENDED}")
index("attempt_paused", attempt, "step_id", where=IS_PAUSED)
index(
    "attempt_rollup", attempt, "root_uuid", "status", "is_leaf", "is_superseded", where=f"{IS_INNER} AND {IS_COUNTED}"
)
index("task_free", task, "kind", "priority", "seq", "due_at", where=IS_FREE)
index("task_due", task, "kind", "due_at", where=IS_FREE)
index("task_owner", task, "owner", where="owner IS NOT NULL")
index("permit_claim_line", claim, "permit", "is_held", "priority", "seq")
index("workflow_unsynced", workflow, "workflow_id", where=IS_UNSYNCED)
index("trigger_due", trigger, "due_at", where=IS_DUE)
index("event_run", event, "run_uuid", "seq")
index("event_root", event, "root_uuid", "seq", where=IS_INNER)

job_template = Table(
    "job_template",
    metadata,
    key("job_type"),
    key("version"),
    required("document"),
    required("modified_at", BigInteger),
)
"""Each version of each template, as JSON."""
