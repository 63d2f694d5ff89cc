"""Tables of captures, checkpoints and deliveries."""

from sqlalchemy import JSON, BigInteger, Integer, Table, UniqueConstraint

from calve.store.tables.columns import UtcTime, Uuid, index, key, metadata, number, optional, required

checkpoint = Table(
    "checkpoint",
    metadata,
    key("consumer"),
    key("catalog"),
    key("table_name"),
    required("version", Integer),
    required("checkpoint", JSON),
    required("moved_at", UtcTime),
    required("moved_by"),
)
"""The checkpoints of consumers; always those of the newest rows of the log."""

checkpoint_log = Table(
    "checkpoint_log",
    metadata,
    number("seq"),
    required("at", UtcTime),
    required("consumer"),
    required("catalog"),
    required("table_name"),
    required("version", Integer),
    required("reason"),
    optional("before", JSON(none_as_null=True)),
    optional("after", JSON(none_as_null=True)),
    UniqueConstraint("consumer", "catalog", "table_name", "version", name="checkpoint_log_place"),
    sqlite_autoincrement=True,
)
"""Every move of a checkpoint, including resets. ``checkpoint_log_place`` is the compare-and-set of all of them."""

capture = Table(
    "capture",
    metadata,
    key("id"),
    required("consumer"),
    required("number", Integer),
    optional("key"),
    required("status"),
    required("created_at", UtcTime),
    optional("closed_at", UtcTime),
    optional("collected_at", UtcTime),
    required("moves", JSON),
    required("artifacts", JSON),
    required("document", JSON),
    UniqueConstraint("consumer", "number", name="capture_number"),
)

delivery_branch = Table(
    "delivery_branch",
    metadata,
    key("branch"),
    key("catalog"),
    key("table_name"),
    required("stream"),
    optional("capture_id"),
    required("run"),
    required("part"),
    required("attempt"),
    required("status"),
    required("staged_at", UtcTime),
    required("changed_at", UtcTime),
    required("table_uuid"),
    optional("base_snapshot_id", BigInteger),
    optional("branch_snapshot_id", BigInteger),
)
"""Every branch of a target, from before its creation until long after its end; for held ones, also its snapshots."""

delivery_target = Table(
    "delivery_target",
    metadata,
    key("stream"),
    key("catalog"),
    key("table_name"),
    required("table_uuid"),
    required("delivered_at", UtcTime),
)
"""The table to which each stream last delivered, by name."""

lag_sample = Table(
    "lag_sample",
    metadata,
    key("consumer"),
    key("catalog"),
    key("table_name"),
    key("at", BigInteger),
    optional("commits", BigInteger),
    optional("files", BigInteger),
    optional("rows", BigInteger),
    optional("bytes", BigInteger),
    required("checkpoint_at", BigInteger),
    optional("current_at", BigInteger),
    optional("expires_at", BigInteger),
)
"""The lag of consumers, every five minutes."""

lineage_edge = Table(
    "lineage_edge",
    metadata,
    key("workflow_id"),
    key("step_id"),
    key("direction"),
    key("catalog"),
    key("table_name"),
    required("at", BigInteger),
    required("instance_id", BigInteger),
    required("attempt", Uuid),
    optional("rows", BigInteger),
    optional("bytes", BigInteger),
    optional("snapshot_id", BigInteger),
)
"""The tables that steps read and wrote, from the last attempt that did."""

index("lineage_edge_table", lineage_edge, "table_name")
index("lineage_edge_at", lineage_edge, "at")
index("lag_sample_at", lag_sample, "at", "consumer", "catalog", "table_name")
index("lag_sample_table", lag_sample, "catalog", "table_name", "at")
index("capture_open", capture, "consumer", where="status = 'open'", unique=True)
index(
    "capture_key",
    capture,
    "consumer",
    "key",
    where="key IS NOT NULL AND status IN ('open', 'committed')",
    unique=True,
)
index("capture_created_at", capture, "created_at")
index("capture_uncollected", capture, "created_at", where="collected_at IS NULL")
index("delivery_branch_capture", delivery_branch, "capture_id")
index("delivery_branch_held", delivery_branch, "changed_at", where="status = 'held'")
