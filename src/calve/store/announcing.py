"""Announces signals, wakes what waits for them, and lets steps wait, inside the transaction that calls for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from calve.definition.params import InitiatorType
from calve.engine.awaiting import PENDING, SEEN
from calve.engine.model import Attempt, Changes, NewTask, Run, TaskKind
from calve.engine.signals import Announced, Announcement, Party, Signal, SignalUse, Told, UseKind
from calve.engine.statuses import StepStatus
from calve.store.engine_rows import dumped, loaded
from calve.store.engine_tables import run
from calve.store.fencing import chunks
from calve.store.signal_tables import (
    signal,
    signal_name,
    signal_param,
    signal_subscription,
    signal_use,
    signal_wait,
)
from calve.store.subscribing import lock_names
from calve.store.transacting import Transaction
from calve.store.triggers import make_due

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


@dataclass(slots=True)
class Board:
    """The names that a transaction has locked, the last signal of each, and what it announced."""

    heads: dict[str, int] = field(default_factory=dict)
    announced: list[Announced] = field(default_factory=list)

    @property
    def told(self) -> list[str]:
        """The names of which there are new signals, each once."""
        return sorted({each.signal.name for each in self.announced if each.status is Told.CREATED})


def encoded(value: str | int) -> str:
    """Return a value as a text that sorts as the values of its type do; all numbers come before all texts."""
    return f"s{value}" if isinstance(value, str) else f"n{value + 2**63:016x}"


def signal_of(row: Any) -> Signal:
    """Return the signal that a row holds."""
    return Signal(row.name, row.seq, row.instance_id, loaded(row.params), loaded(row.payload), row.announced_at)


def announce(transaction: Transaction, signals: Sequence[Announcement], waiting: Iterable[str] = ()) -> Board:
    """Keep signals, and lock their names and those that somebody begins to wait for; known ones are answered."""
    names = {each.name for each in signals} | set(waiting)
    if not names:
        return Board()
    board = Board(lock_names(transaction, names))
    for each in signals:
        board.announced.append(_announce(transaction, board, each))
    return board


def _announce(transaction: Transaction, board: Board, said: Announcement) -> Announced:
    connection = transaction.connection
    known = connection.execute(_KNOWN, {"the_name": said.name, "the_id": said.instance_id}).one_or_none()
    if known is not None:
        return Announced(Told.DUPLICATED, signal_of(known))
    made = Signal(said.name, board.heads[said.name] + 1, said.instance_id, said.params, said.payload, said.at)
    board.heads[made.name] = made.seq
    place = {"name": made.name, "seq": made.seq}
    texts = {"params": dumped(made.params), "payload": dumped(made.payload)}
    connection.execute(
        insert(signal), place | texts | {"instance_id": made.instance_id, "announced_at": made.announced_at}
    )
    params = [place | {"param": param, "value": encoded(value)} for param, value in made.params.items()]
    if params:
        connection.execute(insert(signal_param), params)
    connection.execute(_HEAD, {"the_name": made.name, "the_seq": made.seq})
    if said.sender is not None:
        record_uses(transaction, [SignalUse(made.name, made.seq, UseKind.SENT, said.sender)])
    return Announced(Told.CREATED, made)


def call_triggers(transaction: Transaction, board: Board) -> None:
    """Make the triggers due that wait for what was announced."""
    if board.told:
        rows = transaction.connection.execute(_SUBSCRIBED, {"names": board.told})
        at = max(each.signal.announced_at for each in board.announced if each.status is Told.CREATED)
        make_due(transaction, [(row.workflow_id, row.trigger_id) for row in rows], at)


def woken(transaction: Transaction, board: Board) -> list[NewTask]:
    """Return the tasks of the runs with a step that waits for what was announced."""
    if not board.told:
        return []
    rows = transaction.connection.execute(_WAITING, {"names": board.told})
    return [NewTask(TaskKind.RUN, row.run_uuid, priority=row.priority) for row in rows]


def waits_of(attempt: Attempt) -> dict[str, int]:
    """Return the names that an attempt waits for, and the last signal of each that it has looked at."""
    if attempt.status is not StepStatus.WAITING_FOR_SIGNALS:
        return {}
    pending = [each for each in attempt.dependencies if each["status"] == PENDING]
    return {each["name"]: each[SEEN] for each in pending}


def awaited(changes: Changes) -> set[str]:
    """Return the names that attempts wait for which these changes write."""
    return {name for each in (*changes.new_attempts, *changes.attempts) for name in waits_of(each)}


def settle_waits(transaction: Transaction, changes: Changes, board: Board) -> list[NewTask]:
    """Keep who waits for what; return the tasks of those for whom something has come since they looked."""
    held = [each for each in (*changes.new_attempts, *changes.attempts) if each.dependencies]
    for some in chunks([each.uuid for each in held]):
        transaction.connection.execute(_NO_LONGER, {"uuids": some})
    waits = [(each, name, seen) for each in held for name, seen in waits_of(each).items()]
    rows = [{"attempt_uuid": each.uuid, "name": name, "run_uuid": each.run_uuid} for each, name, _ in waits]
    if rows:
        transaction.connection.execute(insert(signal_wait), rows)
    return [NewTask(TaskKind.RUN, each.run_uuid) for each, name, seen in waits if board.heads[name] > seen]


def record_uses(transaction: Transaction, uses: Sequence[SignalUse]) -> None:
    """Keep what signals have to do with instances; what is known is left as it is."""
    if uses:
        transaction.connection.execute(_USE[transaction.is_postgresql], [_use_row(each) for each in uses])


def started_by(runs: Iterable[Run]) -> list[SignalUse]:
    """Return which signals have started new runs."""
    return [
        SignalUse(name, seq, UseKind.STARTED, Party(made.workflow_id, made.instance_id, made.run_id, made.uuid))
        for made in runs
        if made.initiator.type is InitiatorType.SIGNAL and made.policy.is_fresh
        for name, seq in _ids(made.initiator.trigger).items()
    ]


def _ids(trigger: Mapping[str, Any]) -> Mapping[str, int]:
    found: Mapping[str, int] = trigger.get("signal_ids", {})
    return found


def _use_row(use: SignalUse) -> dict[str, Any]:
    party = use.party
    return {
        "name": use.name,
        "seq": use.seq,
        "kind": use.kind.value,
        "run_uuid": party.run_uuid,
        "attempt_uuid": party.attempt_uuid,
        "workflow_id": party.workflow_id,
        "instance_id": party.instance_id,
        "run_id": party.run_id,
        "step_id": party.step_id,
        "attempt_id": party.attempt_id,
    }


def use_of(row: Any) -> SignalUse:
    """Return what a row says of a signal."""
    party = Party(
        row.workflow_id, row.instance_id, row.run_id, row.run_uuid, row.step_id, row.attempt_id, row.attempt_uuid
    )
    return SignalUse(row.name, row.seq, UseKind(row.kind), party)
