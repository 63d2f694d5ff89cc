"""Old signals, and the triggers and steps that may still need them."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, delete, exists, select, text, tuple_

from calve.engine import UseKind
from calve.retention import Key, OldRecord, RecordPage
from calve.store.database import Transaction
from calve.store.engine import TRIGGER, attempt_of, waits_of
from calve.store.tables import (
    IS_UNSYNCED,
    attempt,
    signal,
    signal_name,
    signal_param,
    signal_subscription,
    signal_use,
    signal_wait,
    trigger,
    workflow,
)
from calve.triggers.signals import is_needed, read_through

_PLACE = tuple_(signal.c.announced_at, signal.c.name, signal.c.seq)
_USED = exists().where(
    signal_use.c.name == signal.c.name, signal_use.c.seq == signal.c.seq, signal_use.c.kind != UseKind.SENT.value
)
_OLD = (
    select(signal.c.announced_at, signal.c.name, signal.c.seq, signal_name.c.last_seq, _USED.label("is_used"))
    .join(signal_name, signal_name.c.name == signal.c.name)
    .order_by(signal.c.announced_at, signal.c.name, signal.c.seq)
)
_UNSYNCED = select(workflow.c.workflow_id).where(text(IS_UNSYNCED)).limit(1)


def old_signals(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return signals; all are needed while the triggers of a workflow are not synchronized with its active version."""
    query = _OLD.where(signal.c.announced_at < before).limit(limit)
    rows = connection.execute(query.where(after < _PLACE) if after else query).all()
    names = sorted({row.name for row in rows})
    is_unknown = connection.scalar(_UNSYNCED) is not None
    read = _read(connection, names)
    found = tuple(
        OldRecord(
            (row.announced_at, row.name, row.seq),
            row.announced_at,
            is_needed=is_unknown or is_needed(row.seq, row.last_seq, read[row.name]),
            is_used=bool(row.is_used),
        )
        for row in rows
    )
    return RecordPage(found, found[-1].key if len(found) == limit else None)


def _read(connection: Connection, names: Sequence[str]) -> dict[str, list[int]]:
    """Return, for each name, the last signal that each waiting trigger and step has read."""
    found: dict[str, list[int]] = defaultdict(list)
    is_subscribed = (signal_subscription.c.workflow_id == trigger.c.workflow_id) & (
        signal_subscription.c.trigger_id == trigger.c.trigger_id
    )
    triggers = select(trigger, signal_subscription.c.name).join(signal_subscription, is_subscribed)
    for row in connection.execute(triggers.where(signal_subscription.c.name.in_(names))):
        found[row.name].append(read_through(TRIGGER.from_row(row), row.name))
    attempts = select(attempt, signal_wait.c.name).join(signal_wait, signal_wait.c.attempt_uuid == attempt.c.uuid)
    for row in connection.execute(attempts.where(signal_wait.c.name.in_(names))):
        found[row.name].append(waits_of(attempt_of(row, connection)).get(row.name, 0))
    return found


def forget_signals(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
    """Delete signals, their params, and the records of their use."""
    places = [key[1:] for key in keys]
    for table in (signal_param, signal_use):
        transaction.connection.execute(delete(table).where(tuple_(table.c.name, table.c.seq).in_(places)))
    return transaction.connection.execute(
        delete(signal).where(tuple_(signal.c.name, signal.c.seq).in_(places))
    ).rowcount
