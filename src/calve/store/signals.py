"""Signals (the ports are ``calve.engine.ports.SignalBoard`` and ``calve.triggers.ports.SignalState``)."""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from sqlalchemy import ColumnElement, and_, select

from calve.definition.model.triggers import Operator
from calve.engine.signals import Announced, Announcement, Signal, SignalUse, UseKind, Wanted
from calve.store.announcing import announce, call_triggers, encoded, signal_of, use_of, woken
from calve.store.enqueuing import enqueue
from calve.store.fencing import chunks
from calve.store.signal_tables import (
    signal,
    signal_name,
    signal_param,
    signal_subscription,
    signal_use,
    signal_wait,
)
from calve.store.transacting import Transaction, Transactions


class SqlSignals:
    """Keeps signals."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def announce(self, announcement: Announcement) -> Announced:
        """Announce a signal, unless it has been; wake what waits for it."""

        def work(transaction: Transaction) -> Announced:
            board = announce(transaction, [announcement])
            call_triggers(transaction, board)
            enqueue(transaction, woken(transaction, board))
            return board.announced[0]

        return self._transactions.write("announce", work)

    def signal_heads(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of the last signal of each name; 0 where there was none."""
        found = dict.fromkeys(names, 0)
        query = select(signal_name.c.name, signal_name.c.last_seq)
        with self._transactions.read() as connection:
            for some in chunks(list(found)):
                rows = connection.execute(query.where(signal_name.c.name.in_(some)))
                found |= {row.name: row.last_seq for row in rows}
        return found

    def match_signal(self, name: str, wanted: Sequence[Wanted]) -> Signal | None:
        """Return the latest signal of a name whose params fit."""
        with self._transactions.read() as connection:
            seq = connection.scalar(_matching(name, wanted)) if wanted else None
            if wanted and seq is None:
                return None
            row = connection.execute(_newest(name, seq)).one_or_none()
        return None if row is None else signal_of(row)

    def sent_signals(self, workflow_id: str, instance_id: int, attempt_uuids: Sequence[str]) -> dict[str, list[Signal]]:
        """Return the signals that attempts of an instance, or of what runs inside it, have sent, by attempt."""
        is_its = and_(signal.c.name == signal_use.c.name, signal.c.seq == signal_use.c.seq)
        query = (
            select(signal_use.c.attempt_uuid, *signal.c)
            .join(signal, is_its)
            .where(
                signal_use.c.workflow_id == workflow_id,
                signal_use.c.instance_id == instance_id,
                signal_use.c.kind == UseKind.SENT.value,
            )
            .order_by(signal.c.announced_at, signal.c.name, signal.c.seq)
        )
        found: dict[str, list[Signal]] = {}
        with self._transactions.read() as connection:
            for some in chunks(list(attempt_uuids)):
                for row in connection.execute(query.where(signal_use.c.attempt_uuid.in_(some))):
                    found.setdefault(row.attempt_uuid, []).append(signal_of(row))
        return found

    def awaited_signals(self, prefix: str) -> list[str]:
        """Return the names with a prefix that steps or triggers wait for."""
        found: set[str] = set()
        with self._transactions.read() as connection:
            for table in (signal_wait, signal_subscription):
                query = select(table.c.name).where(table.c.name.startswith(prefix, autoescape=True)).distinct()
                found |= set(connection.scalars(query))
        return sorted(found)

    def signal(self, name: str, seq: int | None = None) -> Signal | None:
        """Return a signal, the latest of its name if no number is given."""
        with self._transactions.read() as connection:
            row = connection.execute(_newest(name, seq)).one_or_none()
        return None if row is None else signal_of(row)

    def signals(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the last one of the page before."""
        order = (signal.c.announced_at, signal.c.name, signal.c.seq)
        query = select(signal).order_by(*(column.desc() for column in order)).limit(limit)
        if name is not None:
            query = query.where(signal.c.name == name)
        if before is not None:
            at, named, seq = before
            is_earlier = (order[0] < at) | and_(
                order[0] == at, (order[1] < named) | and_(order[1] == named, order[2] < seq)
            )
            query = query.where(is_earlier)
        with self._transactions.read() as connection:
            return [signal_of(row) for row in connection.execute(query)]

    def signals_after(self, name: str, seq: int, limit: int) -> list[Signal]:
        """Return the signals of a name in order, from the one after a number."""
        query = select(signal).where(signal.c.name == name, signal.c.seq > seq).order_by(signal.c.seq).limit(limit)
        with self._transactions.read() as connection:
            return [signal_of(row) for row in connection.execute(query)]

    def last_before(self, name: str, at: int) -> int:
        """Return the number of the last signal of a name that was announced before a time; 0 if none was."""
        query = select(signal.c.seq).where(signal.c.name == name, signal.c.announced_at < at)
        with self._transactions.read() as connection:
            return connection.scalar(query.order_by(signal.c.seq.desc()).limit(1)) or 0

    def signal_uses(self, name: str, seq: int) -> list[SignalUse]:
        """Return who sent a signal, and what it started or released."""
        return self._uses(signal_use.c.name == name, signal_use.c.seq == seq)

    def instance_signals(self, workflow_id: str, instance_id: int) -> list[SignalUse]:
        """Return the signals that an instance was started or released by, and those that it sent."""
        return self._uses(signal_use.c.workflow_id == workflow_id, signal_use.c.instance_id == instance_id)

    def _uses(self, *conditions: ColumnElement[bool]) -> list[SignalUse]:
        order = [signal_use.c[name] for name in ("kind", "name", "seq", "workflow_id", "instance_id", "run_id")]
        query = select(signal_use).where(*conditions).order_by(*order, signal_use.c.step_id, signal_use.c.attempt_id)
        with self._transactions.read() as connection:
            return [use_of(row) for row in connection.execute(query)]


def _newest(name: str, seq: int | None) -> Any:
    query = select(signal).where(signal.c.name == name)
    return query.order_by(signal.c.seq.desc()).limit(1) if seq is None else query.where(signal.c.seq == seq)


def _matching(name: str, wanted: Sequence[Wanted]) -> Any:
    """Return the query for the latest signal whose params fit: those that must be equal come first."""
    ordered = sorted(wanted, key=lambda each: each.operator.is_range)
    tables = [signal_param.alias(f"p{number}") for number in range(len(ordered))]
    first = tables[0]
    source: Any = first
    for other in tables[1:]:
        source = source.join(other, and_(other.c.name == first.c.name, other.c.seq == first.c.seq))
    query = select(first.c.seq).select_from(source).where(first.c.name == name)
    for each, table in zip(ordered, tables, strict=True):
        query = query.where(table.c.param == each.param, _fits(table.c.value, each))
    return query.order_by(first.c.seq.desc()).limit(1)


def _fits(column: ColumnElement[str], wanted: Wanted) -> ColumnElement[bool]:
    """Return the condition on a written value, which a range must not lead into the other type."""
    value = encoded(wanted.value)
    kind, beyond = ("s", "t") if isinstance(wanted.value, str) else ("n", "o")
    match wanted.operator:
        case Operator.EQUALS:
            return column == value
        case Operator.GREATER:
            return and_(column > value, column < beyond)
        case Operator.GREATER_OR_EQUAL:
            return and_(column >= value, column < beyond)
        case Operator.LESS:
            return and_(column < value, column >= kind)
        case Operator.LESS_OR_EQUAL:
            return and_(column <= value, column >= kind)
        case _:
            assert_never(wanted.operator)
