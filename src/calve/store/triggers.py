"""Triggers (the port is ``calve.triggers.ports.TriggerState``)."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select, text, tuple_, update

from calve.store.ended import is_unfinished
from calve.store.engine_rows import dumped, loaded
from calve.store.engine_tables import IS_DUE, IS_UNSYNCED, trigger, workflow
from calve.store.fencing import chunks
from calve.store.subscribing import lock_names, subscribe, subscribed
from calve.store.transacting import Transaction, Transactions
from calve.triggers.model import Kind, Trigger, Wanted

_UNSYNCED = (
    select(workflow.c.workflow_id, workflow.c.active_version)
    .where(text(IS_UNSYNCED))
    .order_by(workflow.c.workflow_id)
    .limit(bindparam("limit"))
)
_DUE = (
    select(trigger)
    .where(text(IS_DUE), trigger.c.due_at <= bindparam("now"), trigger.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(trigger.c.due_at)
    .limit(bindparam("limit"))
)
_NEXT = (
    select(trigger.c.due_at)
    .where(text(IS_DUE), trigger.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(trigger.c.due_at)
    .limit(1)
)
_PLACE = tuple_(trigger.c.workflow_id, trigger.c.trigger_id)
_BEGINNING = {"is_begun": False, "error": None, "failures": 0}


class SqlTriggerState:
    """Keeps the triggers of active versions."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def unsynced(self, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return workflows whose triggers are not those of their active version, and which that is."""
        with self._transactions.read() as connection:
            rows = connection.execute(_UNSYNCED, {"limit": limit})
            return [(row.workflow_id, row.active_version) for row in rows]

    def sync(self, workflow_id: str, version_id: int | None, wanted: Sequence[Wanted], now: int) -> bool:
        """Make the triggers of a workflow those of its active version; tell whether it still is."""

        def change(transaction: Transaction) -> bool:
            connection = transaction.connection
            pairs = subscribed(wanted)
            lock_names(transaction, (name for name, _ in pairs))
            lock = select(workflow).where(workflow.c.workflow_id == workflow_id).with_for_update()
            row = connection.execute(lock).one_or_none()
            if row is None or row.active_version != version_id:
                return False
            since = now if row.activated_at is None else int(row.activated_at)
            _replace(transaction, workflow_id, version_id, wanted, now, since)
            subscribe(transaction, workflow_id, pairs)
            synced = {"triggers_version": version_id}
            connection.execute(update(workflow).where(workflow.c.workflow_id == workflow_id).values(synced))
            return True

        return self._transactions.write("sync_triggers", change)

    def due(self, now: int, limit: int = 100, kinds: Iterable[Kind] = Kind) -> list[Trigger]:
        """Return triggers of some kinds that are due, the longest waiting first."""
        asked = {"now": now, "limit": limit, "kinds": [kind.value for kind in kinds]}
        with self._transactions.read() as connection:
            return [trigger_of(row) for row in connection.execute(_DUE, asked)]

    def next_due(self, kinds: Iterable[Kind] = Kind) -> int | None:
        """Return when the next trigger of some kinds is due; None if none is by itself."""
        with self._transactions.read() as connection:
            return connection.scalar(_NEXT, {"kinds": [kind.value for kind in kinds]})

    def seqs(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return how often triggers were changed, by workflow and trigger."""
        found: dict[tuple[str, str], int] = {}
        query = select(trigger.c.workflow_id, trigger.c.trigger_id, trigger.c.seq)
        with self._transactions.read() as connection:
            for some in chunks(list(keys), 500):
                rows = connection.execute(query.where(_PLACE.in_(some)))
                found |= {(row.workflow_id, row.trigger_id): row.seq for row in rows}
        return found

    def trigger(self, workflow_id: str, trigger_id: str) -> Trigger | None:
        """Return a trigger."""
        is_it = (trigger.c.workflow_id == workflow_id) & (trigger.c.trigger_id == trigger_id)
        with self._transactions.read() as connection:
            row = connection.execute(select(trigger).where(is_it)).one_or_none()
        return None if row is None else trigger_of(row)

    def triggers(
        self,
        *,
        workflow_id: str | None = None,
        kind: Kind | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Trigger]:
        """Return triggers by workflow and id, from the one after ``after``."""
        query = select(trigger).where(after < _PLACE).order_by(trigger.c.workflow_id, trigger.c.trigger_id)
        if workflow_id is not None:
            query = query.where(trigger.c.workflow_id == workflow_id)
        if kind is not None:
            query = query.where(trigger.c.kind == kind.value)
        with self._transactions.read() as connection:
            return [trigger_of(row) for row in connection.execute(query.limit(limit))]

    def is_unfinished(self, workflow_id: str) -> bool:
        """Tell whether an instance of a workflow is not over."""
        with self._transactions.read() as connection:
            return is_unfinished(connection, workflow_id)

    def make_due(self, keys: Iterable[tuple[str, str]], now: int) -> int:
        """Let triggers be looked at now; return how many there were."""
        return self._transactions.write("make_due", lambda transaction: make_due(transaction, keys, now))


def make_due(transaction: Transaction, keys: Iterable[tuple[str, str]], now: int) -> int:
    """Let triggers be looked at now, in a transaction that gives them a reason for it; return how many there were.

    Who is looking at one of them already has read it too early: as ``seq`` grows, that look comes to nothing.
    """
    count = 0
    for some in chunks(sorted(set(keys)), 500):
        lock = select(trigger.c.seq).where(_PLACE.in_(some)).order_by(trigger.c.workflow_id, trigger.c.trigger_id)
        transaction.connection.execute(lock.with_for_update())
        values: dict[str, Any] = {"due_at": now, "seq": trigger.c.seq + 1}
        count += transaction.connection.execute(update(trigger).where(_PLACE.in_(some)).values(values)).rowcount
    transaction.is_waking |= count > 0
    return count


def _replace(
    transaction: Transaction, workflow_id: str, version_id: int | None, wanted: Sequence[Wanted], now: int, since: int
) -> None:
    connection = transaction.connection
    mine = select(trigger).where(trigger.c.workflow_id == workflow_id).order_by(trigger.c.trigger_id).with_for_update()
    known = {row.trigger_id: row for row in connection.execute(mine)}
    gone = known.keys() - {each.trigger_id for each in wanted}
    if gone:
        connection.execute(
            delete(trigger).where(trigger.c.workflow_id == workflow_id, trigger.c.trigger_id.in_(sorted(gone)))
        )
    for each in wanted:
        row = known.get(each.trigger_id)
        beginning = {"made_at": since, "due_at": now, "definition": dumped(each.definition), **_BEGINNING}
        if row is None:
            place = {"workflow_id": workflow_id, "trigger_id": each.trigger_id, "kind": each.kind.value}
            # Numbers go on from the time, so that who has read a trigger that is gone takes no later one for it.
            values = place | beginning | {"version_id": version_id, "state": "{}", "seq": now}
            connection.execute(insert(trigger).values(values))
            continue
        values = {"version_id": version_id, "seq": row.seq + 1}
        if loaded(row.definition) != each.definition:
            values |= beginning
        is_it = (trigger.c.workflow_id == workflow_id) & (trigger.c.trigger_id == each.trigger_id)
        connection.execute(update(trigger).where(is_it).values(values))


def trigger_of(row: Row[Any]) -> Trigger:
    """Return the trigger that a row holds."""
    return Trigger(
        workflow_id=row.workflow_id,
        trigger_id=row.trigger_id,
        kind=Kind(row.kind),
        version_id=row.version_id,
        definition=loaded(row.definition),
        state=loaded(row.state),
        due_at=row.due_at,
        seq=row.seq,
        made_at=row.made_at,
        is_begun=row.is_begun,
        fired_at=row.fired_at,
        error=row.error,
        failures=row.failures,
    )
