"""Tables of signals: what was announced, and what waits for it."""

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, UniqueConstraint
from sqlalchemy.dialects import postgresql

from calve.store.tables import Uuid, metadata

SORTED = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""A text that compares byte by byte, as in SQLite and in Python."""


def _needed(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


signal_name = Table(
    "signal_name",
    metadata,
    Column("name", Text, primary_key=True),
    _needed("last_seq", BigInteger),
)
"""One row a name: who announces a signal of it, or begins to wait for one, locks it."""

signal = Table(
    "signal",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _needed("instance_id"),
    _needed("params"),
    _needed("payload"),
    _needed("announced_at", BigInteger),
    UniqueConstraint("name", "instance_id", name="signal_instance"),
)

signal_param = Table(
    "signal_param",
    metadata,
    Column("name", Text, primary_key=True),
    Column("param", Text, primary_key=True),
    Column("value", SORTED, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
)
"""The params of signals, written so that they sort: see ``calve.store.signals.encoded``."""

signal_wait = Table(
    "signal_wait",
    metadata,
    Column("attempt_uuid", Uuid, primary_key=True),
    Column("name", Text, primary_key=True),
    _needed("run_uuid", Uuid),
)
"""The attempts that wait for a signal of a name."""

signal_subscription = Table(
    "signal_subscription",
    metadata,
    Column("name", Text, primary_key=True),
    Column("workflow_id", Text, primary_key=True),
    Column("trigger_id", Text, primary_key=True),
)
"""The triggers that a signal of a name makes due."""

signal_use = Table(
    "signal_use",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("run_uuid", Uuid, primary_key=True),
    Column("attempt_uuid", Uuid, primary_key=True),
    _needed("workflow_id"),
    _needed("instance_id", BigInteger),
    _needed("run_id", Integer),
    Column("step_id", Text),
    Column("attempt_id", Integer),
)
"""Who sent a signal, and what it started or released."""

Index("signal_announced", signal.c.announced_at, signal.c.name, signal.c.seq)
Index("signal_param_seq", signal_param.c.name, signal_param.c.seq)
Index("signal_wait_name", signal_wait.c.name)
Index("signal_subscription_workflow", signal_subscription.c.workflow_id)
Index("signal_use_instance", signal_use.c.workflow_id, signal_use.c.instance_id)
