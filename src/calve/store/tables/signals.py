"""Tables of signals, and of what waits for them."""

from sqlalchemy import BigInteger, Integer, Table, Text, UniqueConstraint

from calve.store.tables.columns import Uuid, index, key, metadata, optional, required

SORTED = Text().with_variant(Text(collation="C"), "postgresql")
"""A text that is compared byte by byte, as in SQLite and in Python."""

signal_name = Table(
    "signal_name",
    metadata,
    key("name"),
    required("last_seq", BigInteger),
)
"""One row per name, locked to announce a signal with that name, or to start to wait for one."""

signal = Table(
    "signal",
    metadata,
    key("name"),
    key("seq", BigInteger),
    required("instance_id"),
    required("params"),
    required("payload"),
    required("announced_at", BigInteger),
    UniqueConstraint("name", "instance_id", name="signal_instance"),
)

signal_param = Table(
    "signal_param",
    metadata,
    key("name"),
    key("param"),
    key("value", SORTED),
    key("seq", BigInteger),
)
"""The params of signals, encoded so that they sort: see ``calve.store.engine.signals.encoded``."""

signal_wait = Table(
    "signal_wait",
    metadata,
    key("attempt_uuid", Uuid),
    key("name"),
    required("run_uuid", Uuid),
)
"""The attempts that wait for a signal with a name."""

signal_subscription = Table(
    "signal_subscription",
    metadata,
    key("name"),
    key("workflow_id"),
    key("trigger_id"),
)
"""The triggers that a signal with a name makes due."""

signal_use = Table(
    "signal_use",
    metadata,
    key("name"),
    key("seq", BigInteger),
    key("kind"),
    key("run_uuid", Uuid),
    key("attempt_uuid", Uuid),
    required("workflow_id"),
    required("instance_id", BigInteger),
    required("run_id", Integer),
    optional("step_id"),
    optional("attempt_id", Integer),
)
"""The sender of a signal, and what it started or released."""
index("signal_announced", signal, "announced_at", "name", "seq")
index("signal_param_seq", signal_param, "name", "seq")
index("signal_wait_name", signal_wait, "name")
index("signal_subscription_workflow", signal_subscription, "workflow_id")
index("signal_use_instance", signal_use, "workflow_id", "instance_id")
