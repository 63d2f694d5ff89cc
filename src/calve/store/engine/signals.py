"""Signals (part of ``calve.engine.ports.EngineState``; also the port ``calve.triggers.signals.SignalState``)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from calve.definition.model import Operator
from calve.definition.params import InitiatorType
from calve.engine import (
    PENDING,
    SEEN,
    Announced,
    Announcement,
    AnnouncementStatus,
    Attempt,
    Changes,
    NewTask,
    ParamMatch,
    Party,
    Run,
    Signal,
    SignalUse,
    StepStatus,
    TaskKind,
    UseKind,
)
from calve.store.database import Transaction, Transactions, chunks
from calve.store.engine.queue import enqueue
from calve.store.engine.rows import SIGNAL, SIGNAL_USE
from calve.store.engine.triggers import lock_names, make_due
from calve.store.tables import run, signal, signal_name, signal_param, signal_subscription, signal_use, signal_wait

_USE = {
    False: sqlite.insert(signal_use).on_conflict_do_nothing(),
    True: postgresql.insert(signal_use).on_conflict_do_nothing(),
}
_KNOWN = select(signal).where(signal.c.name == bindparam("the_name"), signal.c.instance_id == bindparam("the_id"))
_HEAD = update(signal_name).where(signal_name.c.name == bindparam("the_name")).values(last_seq=bindparam("the_seq"))
_names: Any = bindparam("names", expanding=True)
_SUBSCRIBED = select(signal_subscription.c.workflow_id, signal_subscription.c.trigger_id).where(
    signal_subscription.c.name.in_(_names)
)
_WAITING = (
    select(signal_wait.c.run_uuid, run.c.priority)
    .distinct()
    .join(run, run.c.uuid == signal_wait.c.run_uuid)
    .where(signal_wait.c.name.in_(_names))
)
_NO_LONGER = delete(signal_wait).where(signal_wait.c.attempt_uuid.in_(bindparam("uuids", expanding=True)))


class SqlSignals:
    """Stores signals."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def announce(self, announcement: Announcement) -> Announced:
        """Announce a signal, unless it was announced before, and wake what waits for it."""

        def work(transaction: Transaction) -> Announced:
            announcements = announce(transaction, [announcement])
            call_triggers(transaction, announcements)
            enqueue(transaction, woken(transaction, announcements))
            return announcements.announced[0]

        return self._transactions.write("announce", work)

    def signal_heads(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of the newest signal of each name; 0 if there is none."""
        found = dict.fromkeys(names, 0)
        query = select(signal_name.c.name, signal_name.c.last_seq)
        with self._transactions.read() as connection:
            for some in chunks(list(found)):
                rows = connection.execute(query.where(signal_name.c.name.in_(some)))
                found |= {row.name: row.last_seq for row in rows}
        return found

    def match_signal(self, name: str, wanted: Sequence[ParamMatch]) -> Signal | None:
        """Return the newest signal of a name whose params meet the conditions."""
        with self._transactions.read() as connection:
            seq = connection.scalar(_matching(name, wanted)) if wanted else None
            if wanted and seq is None:
                return None
            row = connection.execute(_newest(name, seq)).one_or_none()
        return None if row is None else SIGNAL.from_row(row)

    def sent_signals(self, workflow_id: str, instance_id: int, attempt_uuids: Sequence[str]) -> dict[str, list[Signal]]:
        """Return the signals sent by attempts of an instance, or of runs inside it, by attempt."""
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
                    found.setdefault(row.attempt_uuid, []).append(SIGNAL.from_row(row))
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
        """Return a signal, by default the newest of its name."""
        with self._transactions.read() as connection:
            row = connection.execute(_newest(name, seq)).one_or_none()
        return None if row is None else SIGNAL.from_row(row)

    def signals(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the previous page's last one."""
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
            return [SIGNAL.from_row(row) for row in connection.execute(query)]

    def signals_after(self, name: str, seq: int, limit: int) -> list[Signal]:
        """Return the signals of a name in order, starting after a number."""
        query = select(signal).where(signal.c.name == name, signal.c.seq > seq).order_by(signal.c.seq).limit(limit)
        with self._transactions.read() as connection:
            return [SIGNAL.from_row(row) for row in connection.execute(query)]

    def last_before(self, name: str, at: int) -> int:
        """Return the number of the newest signal of a name that was announced before a time; 0 if there is none."""
        query = select(signal.c.seq).where(signal.c.name == name, signal.c.announced_at < at)
        with self._transactions.read() as connection:
            return connection.scalar(query.order_by(signal.c.seq.desc()).limit(1)) or 0

    def signal_uses(self, name: str, seq: int) -> list[SignalUse]:
        """Return the sender of a signal, and what it started or released."""
        return self._uses(signal_use.c.name == name, signal_use.c.seq == seq)

    def instance_signals(self, workflow_id: str, instance_id: int) -> list[SignalUse]:
        """Return the signals that started or released an instance, and those that it sent."""
        return self._uses(signal_use.c.workflow_id == workflow_id, signal_use.c.instance_id == instance_id)

    def _uses(self, *conditions: ColumnElement[bool]) -> list[SignalUse]:
        order = [signal_use.c[name] for name in ("kind", "name", "seq", "workflow_id", "instance_id", "run_id")]
        query = select(signal_use).where(*conditions).order_by(*order, signal_use.c.step_id, signal_use.c.attempt_id)
        with self._transactions.read() as connection:
            return [SIGNAL_USE.from_row(row) for row in connection.execute(query)]


def _newest(name: str, seq: int | None) -> Any:
    query = select(signal).where(signal.c.name == name)
    return query.order_by(signal.c.seq.desc()).limit(1) if seq is None else query.where(signal.c.seq == seq)


def _matching(name: str, wanted: Sequence[ParamMatch]) -> Any:
    """Return a query for the newest signal whose params meet the conditions."""
    # Equality first: its index finds a few signals, where a range would scan thousands.
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


def _fits(column: ColumnElement[str], wanted: ParamMatch) -> ColumnElement[bool]:
    """Return the condition on an encoded value; the bound on its type keeps a range within that type."""
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


@dataclass(slots=True)
class Announcements:
    """The names that a transaction has locked, the number of the newest signal of each, and what it announced."""

    last_seqs: dict[str, int] = field(default_factory=dict)
    announced: list[Announced] = field(default_factory=list)

    @property
    def new_names(self) -> list[str]:
        """The names that have new signals."""
        return sorted({each.signal.name for each in self.announced if each.status is AnnouncementStatus.CREATED})


def encoded(value: str | int) -> str:
    """Encode a value as a text that sorts like the values of its type; all numbers come before all texts."""
    return f"s{value}" if isinstance(value, str) else f"n{value + 2**63:016x}"


def announce(transaction: Transaction, signals: Sequence[Announcement], waiting: Iterable[str] = ()) -> Announcements:
    """Store new signals; lock their names, and the names for which attempts start to wait."""
    names = {each.name for each in signals} | set(waiting)
    if not names:
        return Announcements()
    announcements = Announcements(lock_names(transaction, names))
    for each in signals:
        announcements.announced.append(_announce(transaction, announcements, each))
    return announcements


def _announce(transaction: Transaction, announcements: Announcements, announcement: Announcement) -> Announced:
    connection = transaction.connection
    known = connection.execute(
        _KNOWN, {"the_name": announcement.name, "the_id": announcement.instance_id}
    ).one_or_none()
    if known is not None:
        return Announced(AnnouncementStatus.DUPLICATED, SIGNAL.from_row(known))
    made = Signal(
        announcement.name,
        announcements.last_seqs[announcement.name] + 1,
        announcement.instance_id,
        announcement.params,
        announcement.payload,
        announcement.at,
    )
    announcements.last_seqs[made.name] = made.seq
    place = {"name": made.name, "seq": made.seq}
    connection.execute(insert(signal), SIGNAL.to_row(made))
    params = [place | {"param": param, "value": encoded(value)} for param, value in made.params.items()]
    if params:
        connection.execute(insert(signal_param), params)
    connection.execute(_HEAD, {"the_name": made.name, "the_seq": made.seq})
    if announcement.sender is not None:
        record_uses(transaction, [SignalUse(made.name, made.seq, UseKind.SENT, announcement.sender)])
    return Announced(AnnouncementStatus.CREATED, made)


def call_triggers(transaction: Transaction, announcements: Announcements) -> None:
    """Make the triggers due that wait for the announced signals."""
    if announcements.new_names:
        rows = transaction.connection.execute(_SUBSCRIBED, {"names": announcements.new_names})
        at = max(
            each.signal.announced_at for each in announcements.announced if each.status is AnnouncementStatus.CREATED
        )
        make_due(transaction, [(row.workflow_id, row.trigger_id) for row in rows], at)


def woken(transaction: Transaction, announcements: Announcements) -> list[NewTask]:
    """Return the tasks of the runs with a step that waits for the announced signals."""
    if not announcements.new_names:
        return []
    rows = transaction.connection.execute(_WAITING, {"names": announcements.new_names})
    return [NewTask(TaskKind.RUN, row.run_uuid, priority=row.priority) for row in rows]


def waits_of(attempt: Attempt) -> dict[str, int]:
    """Return the names that an attempt waits for, and the number of the newest signal of each that it has checked."""
    if attempt.status is not StepStatus.WAITING_FOR_SIGNALS:
        return {}
    pending = [each for each in attempt.dependencies if each["status"] == PENDING]
    return {each["name"]: each[SEEN] for each in pending}


def awaited(changes: Changes) -> set[str]:
    """Return the names for which attempts in these changes wait."""
    return {name for each in (*changes.new_attempts, *changes.attempts) for name in waits_of(each)}


def settle_waits(transaction: Transaction, changes: Changes, announcements: Announcements) -> list[NewTask]:
    """Store the waits of attempts; return the tasks of runs for which a signal was announced since they checked."""
    held = [each for each in (*changes.new_attempts, *changes.attempts) if each.dependencies]
    for some in chunks([each.uuid for each in held]):
        transaction.connection.execute(_NO_LONGER, {"uuids": some})
    waits = [(each, name, seen) for each in held for name, seen in waits_of(each).items()]
    rows = [{"attempt_uuid": each.uuid, "name": name, "run_uuid": each.run_uuid} for each, name, _ in waits]
    if rows:
        transaction.connection.execute(insert(signal_wait), rows)
    return [NewTask(TaskKind.RUN, each.run_uuid) for each, name, seen in waits if announcements.last_seqs[name] > seen]


def record_uses(transaction: Transaction, uses: Sequence[SignalUse]) -> None:
    """Store the links between signals and instances; existing ones are unchanged."""
    if uses:
        transaction.connection.execute(_USE[transaction.is_postgresql], [SIGNAL_USE.to_row(each) for each in uses])


def started_by(runs: Iterable[Run]) -> list[SignalUse]:
    """Return the signals that started new runs."""
    return [
        SignalUse(name, seq, UseKind.STARTED, Party(made.workflow_id, made.instance_id, made.run_id, made.uuid))
        for made in runs
        if made.initiator.type is InitiatorType.SIGNAL and made.policy.is_fresh
        for name, seq in _ids(made.initiator.trigger).items()
    ]


def _ids(trigger: Mapping[str, Any]) -> Mapping[str, int]:
    found: Mapping[str, int] = trigger.get("signal_ids", {})
    return found
