"""What is kept for a while only (the port is ``calve.retention.RetentionState``)."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, case, delete, func, or_, select, tuple_

from calve.access import pruned
from calve.engine.statuses import RunStatus
from calve.retention import Key, Kind, Old, Page
from calve.store.access_tables import access_session, access_token, audit
from calve.store.auditing import AUDIT_LOCK, append, entry_of
from calve.store.engine_tables import attempt, event, log_chunk, log_file, run
from calve.store.following import SqlPositions
from calve.store.observing_tables import alert_message, follower
from calve.store.retained_alerts import old_alerts
from calve.store.retained_instances import forget_instances, old_instances
from calve.store.retained_signals import forget_signals, old_signals
from calve.store.transacting import Transaction


class SqlRetention(SqlPositions):
    """Finds what has been kept for long, by keys and indexes only, and forgets it."""

    def old(self, kind: Kind, before: int, after: Key, limit: int, followers: Sequence[str]) -> Page:
        """Return what is older than a time, at most so much, from the place after ``after``."""
        with self._transactions.read() as connection:
            if kind is Kind.EVENTS:
                return _old_events(connection, before, after, limit, followers)
            return _OLD[kind](connection, before, after, limit)

    def forget(self, kind: Kind, keys: Sequence[Key], now: int) -> int:
        """Forget some of a kind, in one transaction or, of instances, in several; return how many there were."""
        if kind is Kind.INSTANCES:
            return forget_instances(self._transactions, keys)
        return self._transactions.write("forget", lambda transaction: _FORGET[kind](transaction, keys, now))


def _old_lines(connection: Connection, before: int, after: Key, limit: int) -> Page:
    """Return the first lines of the audit log, without a gap: the last one stays, as the next one follows it."""
    query = select(audit.c.seq, audit.c.at).order_by(audit.c.seq).limit(limit)
    rows = connection.execute(_after(query, audit.c.seq, after)).all()
    newest = connection.scalar(select(func.max(audit.c.seq)))
    found = [Old((row.seq,), row.at) for row in takewhile(lambda row: row.at < before and row.seq != newest, rows)]
    return _page(found, len(rows), limit, is_more=len(found) == len(rows))


def _old_events(connection: Connection, before: int, after: Key, limit: int, followers: Sequence[str]) -> Page:
    """Return the first events; needed are those of live instances, those that somebody has not seen, and the last."""
    columns = (event.c.seq, event.c.at, run.c.status)
    root = case((event.c.root_uuid == "", event.c.run_uuid), else_=event.c.root_uuid)
    query = select(*columns).outerjoin(run, run.c.uuid == root).order_by(event.c.seq).limit(limit)
    rows = connection.execute(_after(query, event.c.seq, after)).all()
    newest = connection.scalar(select(func.max(event.c.seq))) or 0
    seen = connection.scalar(select(func.min(follower.c.seq)).where(follower.c.name.in_(followers)))
    last = newest - 1 if seen is None else min(newest - 1, int(seen))
    found = [
        Old((row.seq,), row.at, is_needed=row.seq > last or row.status in _LIVE)
        for row in takewhile(lambda row: row.at < before, rows)
    ]
    return _page(found, len(rows), limit, is_more=len(found) == len(rows))


def _old_logs(connection: Connection, before: int, after: Key, limit: int) -> Page:
    """Return the attempts that have a log, in the order in which they were made, nearly."""
    made = select(log_chunk.c.attempt_uuid).distinct().order_by(log_chunk.c.attempt_uuid).limit(limit)
    some = _after(made, log_chunk.c.attempt_uuid, after).subquery()
    query = select(some.c.attempt_uuid, attempt.c.uuid, attempt.c.ended_at)
    query = query.outerjoin(attempt, attempt.c.uuid == some.c.attempt_uuid).order_by(some.c.attempt_uuid)
    rows = connection.execute(query).all()
    found = [
        Old((row.attempt_uuid,), row.ended_at or 0, is_needed=row.uuid is not None and row.ended_at is None)
        for row in rows
    ]
    is_young = any(row.ended_at is not None for row in rows) and all((row.ended_at or before) >= before for row in rows)
    return _page(found, len(rows), limit, is_more=not is_young)


def _old_log_files(connection: Connection, before: int, after: Key, limit: int) -> Page:
    """Return the files of logs; those of attempts that are gone are as old as can be."""
    query = select(log_file, attempt.c.uuid, attempt.c.ended_at)
    query = query.outerjoin(attempt, attempt.c.uuid == log_file.c.attempt_uuid)
    query = query.order_by(log_file.c.attempt_uuid, log_file.c.start).limit(limit)
    if after:
        query = query.where(tuple_(log_file.c.attempt_uuid, log_file.c.start) > after[:2])
    rows = connection.execute(query).all()
    found = [
        Old((row.attempt_uuid, row.start, row.address), row.ended_at or 0, is_needed=row.uuid and row.ended_at is None)
        for row in rows
    ]
    return Page(tuple(old for old in found if old.at < before), found[-1].key if len(rows) == limit else None)


def _forget_log_files(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
    places = [key[:2] for key in keys]
    if not places:
        return 0
    is_one = tuple_(log_file.c.attempt_uuid, log_file.c.start).in_(places)
    return transaction.connection.execute(delete(log_file).where(is_one)).rowcount


def _old_sessions(connection: Connection, before: int, after: Key, limit: int) -> Page:
    columns = access_session.c
    query = select(columns.digest, columns.expires_at).where(columns.expires_at < before)
    query = _after(query.order_by(columns.digest).limit(limit), columns.digest, after)
    found = [Old((row.digest,), row.expires_at) for row in connection.execute(query)]
    return _page(found, len(found), limit)


def _old_tokens(connection: Connection, before: int, after: Key, limit: int) -> Page:
    columns = access_token.c
    is_over = or_(columns.expires_at < before, columns.revoked_at < before)
    query = select(columns.token_id, columns.expires_at, columns.revoked_at).where(is_over)
    query = _after(query.order_by(columns.token_id).limit(limit), columns.token_id, after)
    found = [
        Old((row.token_id,), min(at for at in (row.expires_at, row.revoked_at) if at is not None))
        for row in connection.execute(query)
    ]
    return _page(found, len(found), limit)


def _after(query: Any, column: ColumnElement[Any], after: Key) -> Any:
    return query.where(column > after[0]) if after else query


def _page(found: Sequence[Old], looked: int, limit: int, *, is_more: bool = True) -> Page:
    return Page(tuple(found), found[-1].key if found and is_more and looked == limit else None)


def _forget_lines(transaction: Transaction, keys: Sequence[Key], now: int) -> int:
    """Forget the lines up to the last of these, and say so in the log: who reads it can tell that nothing is amiss."""
    connection = transaction.connection
    if transaction.is_postgresql:
        connection.execute(select(func.pg_advisory_xact_lock(AUDIT_LOCK)))
    last = connection.execute(select(audit).where(audit.c.seq == max(key[0] for key in keys))).one_or_none()
    if last is None:  # another process was faster
        return 0
    count = connection.execute(delete(audit).where(audit.c.seq <= last.seq)).rowcount
    append(connection, pruned(entry_of(last), now))
    return count


def _forgetting(table: Table, column: str) -> "Forget":
    """Return what forgets rows by a column that the keys end with."""

    def forget(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
        values = [key[-1] for key in keys]
        return transaction.connection.execute(delete(table).where(table.c[column].in_(values))).rowcount

    return forget


Look = Callable[[Connection, int, Key, int], Page]
Forget = Callable[[Transaction, Sequence[Key], int], int]
_LIVE = frozenset(status.value for status in RunStatus if not status.is_terminal)
_OLD: dict[Kind, Look] = {
    Kind.ALERTS: old_alerts,
    Kind.AUDIT: _old_lines,
    Kind.INSTANCES: old_instances,
    Kind.LOGS: _old_logs,
    Kind.LOG_FILES: _old_log_files,
    Kind.SESSIONS: _old_sessions,
    Kind.SIGNALS: old_signals,
    Kind.TOKENS: _old_tokens,
}
_FORGET: dict[Kind, Forget] = {
    Kind.ALERTS: _forgetting(alert_message, "id"),
    Kind.AUDIT: _forget_lines,
    Kind.EVENTS: _forgetting(event, "seq"),
    Kind.LOGS: _forgetting(log_chunk, "attempt_uuid"),
    Kind.LOG_FILES: _forget_log_files,
    Kind.SESSIONS: _forgetting(access_session, "digest"),
    Kind.SIGNALS: forget_signals,
    Kind.TOKENS: _forgetting(access_token, "token_id"),
}
