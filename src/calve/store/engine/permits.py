"""Permits: which attempts may start, and which runs are woken when others end.

An attempt that starts holds a claim on each of its permits; one that must wait stores its claims unheld. A transaction
that releases or requests a permit locks it until the end, so that no attempt begins to wait for a permit that is just
being released.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, select, text, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from calve.engine import HOLDING, Admission, Attempt, Changes, NewTask, Permit, StepStatus, TaskKind
from calve.store.database import StartOver, Transaction, chunks
from calve.store.tables import claim, tag_permit

TAG = "tag:"
"""The prefix of the names of the permits of tags."""
_PAGE = 200
_FIRST = -(2**31)
"""Less than any priority."""
_LOCKS = 0x63616C76
"""The first half of the advisory locks of permits: "calv" in ASCII."""
_names: BindParameter[Any] = bindparam("names", expanding=True)
_uuids: BindParameter[Any] = bindparam("uuids", expanding=True)
_FREED = delete(claim).where(claim.c.attempt_uuid.in_(_uuids)).returning(claim.c.permit)
_UNHELD = delete(claim).where(claim.c.attempt_uuid.in_(_uuids), claim.c.is_held.is_(True)).returning(claim.c.permit)
_COUNTS = (
    select(claim.c.permit, claim.c.is_held, func.count().label("number"))
    .where(claim.c.permit.in_(_names))
    .group_by(claim.c.permit, claim.c.is_held)
)
_LIMITS = select(tag_permit.c.tag, tag_permit.c.max_allowed).where(tag_permit.c.tag.in_(_names))
_LINE = (
    select(claim.c.attempt_uuid, claim.c.run_uuid, claim.c.priority, claim.c.seq)
    .where(
        claim.c.permit == bindparam("permit"),
        claim.c.is_held.is_(False),
        tuple_(claim.c.priority, claim.c.seq) > tuple_(bindparam("priority"), bindparam("seq")),
        # Leave out those that also wait for a full permit: they could not start, and waking them costs a turn.
        claim.c.attempt_uuid.not_in(
            select(claim.c.attempt_uuid).where(
                claim.c.permit.in_(bindparam("full", expanding=True)), claim.c.is_held.is_(False)
            )
        ),
    )
    .order_by(claim.c.priority, claim.c.seq)
    .limit(_PAGE)
)
_CLAIMS = select(claim.c.attempt_uuid, claim.c.permit, claim.c.max_held).where(claim.c.attempt_uuid.in_(_uuids))
_LOCK = text("SELECT pg_advisory_xact_lock(:space, key) FROM unnest(CAST(:keys AS int[])) AS key")
_TRY_LOCK = text("SELECT bool_and(pg_try_advisory_xact_lock(:space, key)) FROM unnest(CAST(:keys AS int[])) AS key")
_HAND_OVER = (
    update(claim)
    .where(claim.c.attempt_uuid == bindparam("ended"), claim.c.permit.in_(_names), claim.c.is_held.is_(True))
    .values(attempt_uuid=bindparam("started"), priority=bindparam("new_priority"))
)


def _upsert(insert: Any) -> Any:
    statement = insert(claim)
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=[claim.c.attempt_uuid, claim.c.permit],
        set_={"is_held": new.is_held, "max_held": new.max_held, "priority": new.priority},
    )


_UPSERT = {False: _upsert(sqlite.insert), True: _upsert(postgresql.insert)}


def _keys(names: Iterable[str]) -> list[int]:
    """Return the keys of the advisory locks of permits, in order."""
    # Advisory locks have numbers, and the second half is a signed int. Two names with the same number only wait for
    # each other needlessly.
    return sorted({crc32(name.encode()) - 2**31 for name in names})


@dataclass(frozen=True, slots=True)
class Admitted:
    """The attempts that got their permits, and the tasks of runs that are woken because permits are free."""

    uuids: frozenset[str] = frozenset()
    woken: tuple[NewTask, ...] = ()


def settle_permits(transaction: Transaction, changes: Changes) -> Admitted:
    """Release the permits of attempts that end, admit those that want to start, and wake those that now could."""
    asking = {admission.waiting.uuid for admission in changes.admissions}
    if _handed_over(transaction.connection, changes, asking):
        return Admitted(frozenset(asking))
    freed = _free(transaction.connection, [each for each in changes.attempts if each.uuid not in asking])
    names = freed | {permit.name for admission in changes.admissions for permit in admission.permits}
    if not names:
        return Admitted(frozenset(asking))
    counts = PermitCounts(transaction)
    counts.count(names)
    admitted = [admission for admission in changes.admissions if counts.take(admission.permits)]
    uuids = frozenset(admission.waiting.uuid for admission in admitted)
    denied = [admission for admission in changes.admissions if admission.waiting.uuid not in uuids]
    _write(transaction, changes.admissions, uuids)
    refused = {permit for admission in denied for permit in admission.permits}
    counts.waiting |= {permit.name for permit in refused}
    touched = freed | {permit.name for permit in refused if counts.is_free(permit)}
    return Admitted(uuids, tuple(_next_in_line(transaction.connection, counts, touched)))


def _handed_over(connection: Connection, changes: Changes, asking: set[str]) -> bool:
    """Let a step take over the permits of the step before it in the same run; return whether it could.

    As many permits are held as before, and none are released, so no lock is needed: the steps of a workflow do not wait
    for each other. Not possible if an attempt waits for one of them, or if a lowered limit is exceeded.
    """
    over = [each for each in changes.attempts if each.status not in HOLDING and each.uuid not in asking]
    if len(over) != 1 or len(changes.admissions) != 1:
        return False
    (ended,), (admission,) = over, changes.admissions
    if ended.run_uuid != admission.waiting.run_uuid or ended.tags or admission.waiting.tags:
        return False
    names = [permit.name for permit in admission.permits]
    held = dict.fromkeys(names, 0)
    for row in connection.execute(_COUNTS, {"names": names}):
        if not row.is_held:
            return False
        held[row.permit] = row.number
    if any(permit.limit is None or held[permit.name] > permit.limit for permit in admission.permits):
        return False
    place = {"ended": ended.uuid, "started": admission.waiting.uuid, "new_priority": admission.priority}
    # Both are steps of one run without tags, so they need the same permits; an attempt that held none passes none on.
    return connection.execute(_HAND_OVER, {"names": names, **place}).rowcount > 0


def wake_waiting(transaction: Transaction, name: str) -> list[NewTask]:
    """Return the tasks that wake attempts which wait for a permit and could have it now."""
    counts = PermitCounts(transaction)
    counts.count({name})
    return _next_in_line(transaction.connection, counts, {name})


@dataclass(slots=True)
class PermitCounts:
    """How many claims on each permit are held, and the limits of tags."""

    transaction: Transaction
    held: dict[str, int] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    """Permits that an attempt waits for."""
    limits: dict[str, int] = field(default_factory=dict)
    """The limits of the permits of tags."""

    def count(self, names: Iterable[str]) -> None:
        """Lock permits, and count their claims."""
        new = sorted(set(names) - self.held.keys())
        if not new:
            return
        self._lock(new)
        self.held |= dict.fromkeys(new, 0)
        for some in chunks(new):
            for row in self.transaction.connection.execute(_COUNTS, {"names": some}):
                if row.is_held:
                    self.held[row.permit] = row.number
                else:
                    self.waiting.add(row.permit)
        tags = [name.removeprefix(TAG) for name in new if name.startswith(TAG)]
        for some in chunks(tags):
            rows = self.transaction.connection.execute(_LIMITS, {"names": some})
            self.limits |= {TAG + row.tag: row.max_allowed for row in rows}

    def _lock(self, names: Sequence[str]) -> None:
        """Lock permits in order; if more are needed later and not free, start over to avoid a deadlock."""
        # SQLite has one writer, so the transaction itself is the lock.
        if not self.transaction.is_postgresql:
            return
        foreseen = self.transaction.foreseen
        place = {"space": _LOCKS, "keys": _keys(names if self.held else foreseen | set(names))}
        if not self.held:
            self.transaction.connection.execute(_LOCK, place)
        elif not (foreseen.issuperset(names) or self.transaction.connection.scalar(_TRY_LOCK, place)):
            foreseen.update(names)
            raise StartOver

    def take(self, permits: Sequence[Permit]) -> bool:
        """Take one of each permit, if all are free."""
        if not all(self.is_free(permit) for permit in permits):
            return False
        for permit in permits:
            self.held[permit.name] += 1
        return True

    def is_free(self, permit: Permit) -> bool:
        """Tell whether another claim can be held."""
        limit = self.limits.get(permit.name) if permit.limit is None else permit.limit
        return limit is None or self.held[permit.name] < limit


def _free(connection: Connection, attempts: Sequence[Attempt]) -> set[str]:
    """Delete the claims of attempts that no longer run; return the permits."""
    over = [each.uuid for each in attempts if each.status not in HOLDING]
    waiting = {each.uuid for each in attempts if each.status is StepStatus.WAITING_FOR_PERMITS}
    freed: set[str] = set()
    for some in chunks([uuid for uuid in over if uuid not in waiting]):
        freed |= set(connection.scalars(_FREED, {"uuids": some}))
    for some in chunks(sorted(waiting)):
        freed |= set(connection.scalars(_UNHELD, {"uuids": some}))
    return freed


def _write(transaction: Transaction, admissions: Sequence[Admission], admitted: frozenset[str]) -> None:
    rows = [
        {
            "permit": permit.name,
            "attempt_uuid": admission.waiting.uuid,
            "run_uuid": admission.waiting.run_uuid,
            "max_held": permit.limit,
            "is_held": admission.waiting.uuid in admitted,
            "priority": admission.priority,
        }
        for admission in admissions
        for permit in admission.permits
    ]
    if rows:
        transaction.connection.execute(_UPSERT[transaction.is_postgresql], rows)


def _next_in_line(connection: Connection, counts: PermitCounts, touched: set[str]) -> list[NewTask]:
    """Return the tasks of runs whose waiting attempts could have all their permits now, in the order of the queue."""
    woken: dict[str, NewTask] = {}
    for name in sorted(touched & counts.waiting):
        _wake_line(connection, counts, name, woken)
    return list(woken.values())


def _wake_line(connection: Connection, counts: PermitCounts, name: str, woken: dict[str, NewTask]) -> None:
    full: set[str] = set()
    last = {"priority": _FIRST, "seq": 0}
    while line := connection.execute(_LINE, {"permit": name, "full": sorted(full), **last}).all():
        permits = _permits_of(connection, line)
        counts.count({permit.name for those in permits.values() for permit in those})
        for row in line:
            if row.attempt_uuid in woken:
                continue
            if counts.take(permits[row.attempt_uuid]):
                woken[row.attempt_uuid] = NewTask(TaskKind.RUN, row.run_uuid, priority=row.priority)
                continue
            full |= {permit.name for permit in permits[row.attempt_uuid] if not counts.is_free(permit)}
            if name in full:
                return
        last = {"priority": line[-1].priority, "seq": line[-1].seq}


def _permits_of(connection: Connection, line: Sequence[Any]) -> dict[str, list[Permit]]:
    found: dict[str, list[Permit]] = {row.attempt_uuid: [] for row in line}
    for row in connection.execute(_CLAIMS, {"uuids": list(found)}):
        found[row.attempt_uuid].append(Permit(row.permit, row.max_held))
    return found
