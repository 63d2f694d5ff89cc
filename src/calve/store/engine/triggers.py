"""Triggers (the port is ``calve.triggers.TriggerState``)."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, exists, func, insert, select, text, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from calve.engine import Run, TriggerMark
from calve.errors import Conflict
from calve.store.codec import dumped, loaded, plain
from calve.store.database import Transaction, Transactions, chunks, is_below
from calve.store.engine.rows import TRIGGER
from calve.store.tables import (
    IS_DUE,
    IS_INSTANCE,
    IS_LIVE,
    IS_UNSYNCED,
    follower,
    run,
    signal_name,
    signal_subscription,
    trigger,
    workflow,
)
from calve.triggers import Trigger, TriggerType, WantedTrigger

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
_BEAT = "scheduler"
"""The row of ``follower`` in which schedulers record the time."""
_PLACE = tuple_(trigger.c.workflow_id, trigger.c.trigger_id)
_BEGINNING = {"is_begun": False, "error": None, "failures": 0}


class SqlTriggerState:
    """Stores the triggers of active versions."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def unsynced(self, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return workflows whose triggers are not those of their active version, with that version."""
        with self._transactions.read() as connection:
            rows = connection.execute(_UNSYNCED, {"limit": limit})
            return [(row.workflow_id, row.active_version) for row in rows]

    def sync(self, workflow_id: str, version_id: int | None, wanted: Sequence[WantedTrigger], now: int) -> bool:
        """Make the triggers of a workflow those of its active version; False if another version is active now."""

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

    def due(self, now: int, limit: int = 100, kinds: Iterable[TriggerType] = TriggerType) -> list[Trigger]:
        """Return triggers of some kinds that are due, the longest waiting first."""
        asked = {"now": now, "limit": limit, "kinds": [kind.value for kind in kinds]}
        with self._transactions.read() as connection:
            return [TRIGGER.from_row(row) for row in connection.execute(_DUE, asked)]

    def overdue(self, before: int, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[Trigger]:
        """Return the time triggers below ``namespaces`` that were due before a time, the longest waiting first."""
        asked = {"now": before, "limit": limit, "kinds": [TriggerType.TIME.value]}
        with self._transactions.read() as connection:
            query = _DUE.where(is_below(trigger.c.workflow_id, namespaces))
            return [TRIGGER.from_row(row) for row in connection.execute(query, asked)]

    def next_due(self, kinds: Iterable[TriggerType] = TriggerType) -> int | None:
        """Return when the next trigger of some kinds is due; None if none is."""
        with self._transactions.read() as connection:
            return connection.scalar(_NEXT, {"kinds": [kind.value for kind in kinds]})

    def beat(self, now: int) -> None:
        """Record that a scheduler runs."""

        def work(transaction: Transaction) -> None:
            statement = transaction.insert(follower).values(name=_BEAT, seq=now)
            changed = statement.on_conflict_do_update(index_elements=[follower.c.name], set_={"seq": now})
            transaction.connection.execute(changed)

        self._transactions.write("beat", work)

    def last_beat(self) -> int | None:
        """Return when a scheduler last recorded that it runs; None if none ever has."""
        with self._transactions.read() as connection:
            return connection.scalar(select(follower.c.seq).where(follower.c.name == _BEAT))

    def seqs(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the sequence numbers of triggers, by workflow and trigger; those that do not exist are missing."""
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
        return None if row is None else TRIGGER.from_row(row)

    def triggers(
        self,
        *,
        workflow_id: str | None = None,
        kind: TriggerType | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Trigger]:
        """Return triggers by workflow and id, starting after ``after``."""
        query = select(trigger).where(after < _PLACE).order_by(trigger.c.workflow_id, trigger.c.trigger_id)
        if workflow_id is not None:
            query = query.where(trigger.c.workflow_id == workflow_id)
        if kind is not None:
            query = query.where(trigger.c.kind == kind.value)
        with self._transactions.read() as connection:
            return [TRIGGER.from_row(row) for row in connection.execute(query.limit(limit))]

    def of_workflows(self, workflow_ids: Iterable[str]) -> list[Trigger]:
        """Return the triggers of some workflows, by workflow and id."""
        is_theirs = trigger.c.workflow_id.in_(list(workflow_ids))
        query = select(trigger).where(is_theirs).order_by(trigger.c.workflow_id, trigger.c.trigger_id)
        with self._transactions.read() as connection:
            return [TRIGGER.from_row(row) for row in connection.execute(query)]

    def is_unfinished(self, workflow_id: str) -> bool:
        """Tell whether a workflow has an unfinished instance."""
        with self._transactions.read() as connection:
            return is_unfinished(connection, workflow_id)

    def make_due(self, keys: Iterable[tuple[str, str]], now: int) -> int:
        """Make triggers due now; return how many exist."""
        return self._transactions.write("make_due", lambda transaction: make_due(transaction, keys, now))


def make_due(transaction: Transaction, keys: Iterable[tuple[str, str]], now: int) -> int:
    """Make triggers due now, in the transaction that causes it; return how many exist.

    A scheduler that has already read one of them has read it too early: ``seq`` grows, so its result is refused.
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
    transaction: Transaction,
    workflow_id: str,
    version_id: int | None,
    wanted: Sequence[WantedTrigger],
    now: int,
    since: int,
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
            # ``seq`` starts from the time, so that a new trigger is not taken for a deleted one with the same id.
            values = place | beginning | {"version_id": version_id, "state": "{}", "seq": now}
            connection.execute(insert(trigger).values(values))
            continue
        values = {"version_id": version_id, "seq": row.seq + 1}
        if loaded(row.definition) != each.definition:
            values |= beginning
        is_it = (trigger.c.workflow_id == workflow_id) & (trigger.c.trigger_id == each.trigger_id)
        connection.execute(update(trigger).where(is_it).values(values))


_ACTIVE = select(workflow.c.active_version).where(workflow.c.workflow_id == trigger.c.workflow_id).scalar_subquery()
_MARK = (
    update(trigger)
    .where(
        trigger.c.workflow_id == bindparam("the_workflow"),
        trigger.c.trigger_id == bindparam("the_trigger"),
        trigger.c.seq == bindparam("the_seq"),
        trigger.c.version_id == _ACTIVE,
    )
    .values(
        seq=trigger.c.seq + 1,
        state=bindparam("new_state"),
        due_at=bindparam("new_due_at"),
        is_begun=bindparam("new_is_begun"),
        fired_at=func.coalesce(bindparam("new_fired_at"), trigger.c.fired_at),
        error=bindparam("new_error"),
        failures=bindparam("new_failures"),
    )
)


def mark(connection: Connection, marks: Sequence[TriggerMark]) -> None:
    """Write the progress of triggers.

    Raises:
        Conflict: one of them has changed since it was read, or its version is no longer active.
    """
    ordered = sorted(marks, key=lambda each: (each.workflow_id, each.trigger_id))
    if ordered and connection.execute(_MARK, [_mark_row(each) for each in ordered]).rowcount != len(ordered):
        raise Conflict("Another process has moved a trigger.", workflows=[each.workflow_id for each in ordered])


def _mark_row(each: TriggerMark) -> dict[str, Any]:
    return {
        "the_workflow": each.workflow_id,
        "the_trigger": each.trigger_id,
        "the_seq": each.seq,
        "new_state": dumped(each.state),
        "new_due_at": each.due_at,
        "new_is_begun": each.is_begun,
        "new_fired_at": each.fired_at,
        "new_error": None if each.error is None else plain(each.error),
        "new_failures": each.failures,
    }


_CALL = (
    update(trigger)
    .where(trigger.c.workflow_id == bindparam("the_workflow"), trigger.c.kind == "incremental")
    .values(
        due_at=case((trigger.c.due_at <= bindparam("now"), trigger.c.due_at), else_=bindparam("now")),
        seq=trigger.c.seq + 1,
    )
)
"""A scheduler may have read a trigger while the instance still ran: ``seq`` grows, so its result is refused."""
_UNFINISHED = select(
    exists(run.c.uuid).where(run.c.workflow_id == bindparam("workflow_id"), text(IS_INSTANCE), text(IS_LIVE))
)


def is_unfinished(connection: Connection, workflow_id: str) -> bool:
    """Tell whether a workflow has an unfinished instance, queued or running."""
    return bool(connection.scalar(_UNFINISHED, {"workflow_id": workflow_id}))


def call_table_triggers(transaction: Transaction, runs: Sequence[Run]) -> None:
    """Make the table triggers of workflows due whose instances end, in the same transaction."""
    ended = {
        each.workflow_id: {"the_workflow": each.workflow_id, "now": each.ended_at or each.created_at}
        for each in runs
        if each.status.is_terminal and not each.is_inline
    }
    for workflow_id in sorted(ended):
        transaction.is_waking |= transaction.connection.execute(_CALL, ended[workflow_id]).rowcount > 0


def _lock(insert_: Any) -> Any:
    statement = insert_(signal_name).values(name=bindparam("the_name"), last_seq=0)
    return statement.on_conflict_do_update(
        index_elements=[signal_name.c.name], set_={"last_seq": signal_name.c.last_seq}
    ).returning(signal_name.c.last_seq)


_LOCK = {False: _lock(sqlite.insert), True: _lock(postgresql.insert)}
"""By whether the database is PostgreSQL."""


def lock_names(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Lock names of signals, in the same order in all transactions; return the number of the newest signal of each."""
    statement = _LOCK[transaction.is_postgresql]
    execute = transaction.connection.execute
    return {name: execute(statement, {"the_name": name}).scalar_one() for name in sorted(set(names))}


def subscribed(wanted: Sequence[WantedTrigger]) -> set[tuple[str, str]]:
    """Return the names of signals that triggers wait for, each with the trigger."""
    signals = [each for each in wanted if each.kind is TriggerType.SIGNAL]
    return {(name, each.trigger_id) for each in signals for name in each.definition["definitions"]}


def subscribe(transaction: Transaction, workflow_id: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Replace the subscriptions of a workflow's triggers to signals; their names must be locked already."""
    mine = delete(signal_subscription).where(signal_subscription.c.workflow_id == workflow_id)
    transaction.connection.execute(mine)
    rows = [{"name": name, "workflow_id": workflow_id, "trigger_id": trigger_id} for name, trigger_id in sorted(pairs)]
    if rows:
        transaction.connection.execute(insert(signal_subscription), rows)
