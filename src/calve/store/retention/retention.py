"""Records that are older than their retention (the port is ``calve.retention.RetentionState``)."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, case, delete, func, or_, select, text, tuple_

from calve.access import pruned
from calve.alerts import DEFINITIONS, Alert, may_come_again
from calve.engine import RunStatus
from calve.retention import Key, OldRecord, RecordKind, RecordPage
from calve.store.access import AUDIT_LOCK, ENTRY, append
from calve.store.database import Transaction
from calve.store.engine import SqlPositions
from calve.store.retention.instances import forget_instances, old_instances
from calve.store.retention.signals import forget_signals, old_signals
from calve.store.tables import (
    IS_LIVE,
    IS_WAITING,
    access_session,
    access_token,
    alert_message,
    attempt,
    audit,
    event,
    follower,
    lag_sample,
    log_chunk,
    log_file,
    run,
)

_columns = alert_message.c
_PLACE = tuple_(_columns.made_at, _columns.id)
_SAMPLE = tuple(lag_sample.c[name] for name in ("at", "consumer", "catalog", "table_name"))
_NUMBER = tuple_(run.c.workflow_id, run.c.instance_id, run.c.run_id)


class SqlRetention(SqlPositions):
    """Finds old records by keys and indexes only, and deletes them."""

    def old(self, kind: RecordKind, before: int, after: Key, limit: int, followers: Sequence[str]) -> RecordPage:
        """Return at most ``limit`` records older than a time, from the one after ``after``."""
        with self._transactions.read() as connection:
            if kind is RecordKind.EVENTS:
                return _old_events(connection, before, after, limit, followers)
            return _OLD[kind](connection, before, after, limit)

    def forget(self, kind: RecordKind, keys: Sequence[Key], now: int) -> int:
        """Delete records of a kind, in one transaction (instances in several); return how many there were."""
        if kind is RecordKind.INSTANCES:
            return forget_instances(self._transactions, keys)
        return self._transactions.write("forget", lambda transaction: _FORGET[kind](transaction, keys, now))


def _old_lines(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return the first lines of the audit log without a gap, but not the newest: the next line is chained to it."""
    query = select(audit.c.seq, audit.c.at).order_by(audit.c.seq).limit(limit)
    rows = connection.execute(_after(query, audit.c.seq, after)).all()
    newest = connection.scalar(select(func.max(audit.c.seq)))
    found = [
        OldRecord((row.seq,), row.at) for row in takewhile(lambda row: row.at < before and row.seq != newest, rows)
    ]
    return _page(found, len(rows), limit, is_more=len(found) == len(rows))


def _old_events(connection: Connection, before: int, after: Key, limit: int, followers: Sequence[str]) -> RecordPage:
    """Return the first events; those of unfinished instances, those unread by a follower, and the newest are needed."""
    columns = (event.c.seq, event.c.at, run.c.status)
    root = case((event.c.root_uuid == "", event.c.run_uuid), else_=event.c.root_uuid)
    query = select(*columns).outerjoin(run, run.c.uuid == root).order_by(event.c.seq).limit(limit)
    rows = connection.execute(_after(query, event.c.seq, after)).all()
    newest = connection.scalar(select(func.max(event.c.seq))) or 0
    seen = connection.scalar(select(func.min(follower.c.seq)).where(follower.c.name.in_(followers)))
    last = newest - 1 if seen is None else min(newest - 1, int(seen))
    found = [
        OldRecord((row.seq,), row.at, is_needed=row.seq > last or row.status in _LIVE)
        for row in takewhile(lambda row: row.at < before, rows)
    ]
    return _page(found, len(rows), limit, is_more=len(found) == len(rows))


def _old_logs(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return the attempts that have a log, approximately in the order in which they were created."""
    made = select(log_chunk.c.attempt_uuid).distinct().order_by(log_chunk.c.attempt_uuid).limit(limit)
    some = _after(made, log_chunk.c.attempt_uuid, after).subquery()
    query = select(some.c.attempt_uuid, attempt.c.uuid, attempt.c.ended_at)
    query = query.outerjoin(attempt, attempt.c.uuid == some.c.attempt_uuid).order_by(some.c.attempt_uuid)
    rows = connection.execute(query).all()
    found = [
        OldRecord((row.attempt_uuid,), row.ended_at or 0, is_needed=row.uuid is not None and row.ended_at is None)
        for row in rows
    ]
    is_young = any(row.ended_at is not None for row in rows) and all((row.ended_at or before) >= before for row in rows)
    return _page(found, len(rows), limit, is_more=not is_young)


def _old_log_files(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return the files of logs; those of deleted attempts count as the oldest."""
    query = select(log_file, attempt.c.uuid, attempt.c.ended_at)
    query = query.outerjoin(attempt, attempt.c.uuid == log_file.c.attempt_uuid)
    query = query.order_by(log_file.c.attempt_uuid, log_file.c.start).limit(limit)
    if after:
        query = query.where(tuple_(log_file.c.attempt_uuid, log_file.c.start) > after[:2])
    rows = connection.execute(query).all()
    found = [
        OldRecord(
            (row.attempt_uuid, row.start, row.address), row.ended_at or 0, is_needed=row.uuid and row.ended_at is None
        )
        for row in rows
    ]
    return RecordPage(tuple(old for old in found if old.at < before), found[-1].key if len(rows) == limit else None)


def _forget_log_files(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
    places = [key[:2] for key in keys]
    if not places:
        return 0
    is_one = tuple_(log_file.c.attempt_uuid, log_file.c.start).in_(places)
    return transaction.connection.execute(delete(log_file).where(is_one)).rowcount


def _old_lag(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    query = select(*_SAMPLE).where(lag_sample.c.at < before).order_by(*_SAMPLE).limit(limit)
    rows = connection.execute(query.where(tuple_(*_SAMPLE) > after) if after else query).all()
    return _page([OldRecord(tuple(row), row.at) for row in rows], len(rows), limit)


def _forget_lag(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
    return transaction.connection.execute(delete(lag_sample).where(tuple_(*_SAMPLE).in_(keys))).rowcount


def _old_sessions(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    columns = access_session.c
    query = select(columns.digest, columns.expires_at).where(columns.expires_at < before)
    query = _after(query.order_by(columns.digest).limit(limit), columns.digest, after)
    found = [OldRecord((row.digest,), row.expires_at) for row in connection.execute(query)]
    return _page(found, len(found), limit)


def _old_tokens(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    columns = access_token.c
    is_over = or_(columns.expires_at < before, columns.revoked_at < before)
    query = select(columns.token_id, columns.expires_at, columns.revoked_at).where(is_over)
    query = _after(query.order_by(columns.token_id).limit(limit), columns.token_id, after)
    found = [
        OldRecord((row.token_id,), min(at for at in (row.expires_at, row.revoked_at) if at is not None))
        for row in connection.execute(query)
    ]
    return _page(found, len(found), limit)


def _after(query: Any, column: ColumnElement[Any], after: Key) -> Any:
    return query.where(column > after[0]) if after else query


def _page(found: Sequence[OldRecord], looked: int, limit: int, *, is_more: bool = True) -> RecordPage:
    return RecordPage(tuple(found), found[-1].key if found and is_more and looked == limit else None)


def _forget_lines(transaction: Transaction, keys: Sequence[Key], now: int) -> int:
    """Delete the lines up to the last of these, and record that in the log, to distinguish it from tampering."""
    connection = transaction.connection
    if transaction.is_postgresql:
        connection.execute(select(func.pg_advisory_xact_lock(AUDIT_LOCK)))
    last = connection.execute(select(audit).where(audit.c.seq == max(key[0] for key in keys))).one_or_none()
    if last is None:  # another process did this first
        return 0
    count = connection.execute(delete(audit).where(audit.c.seq <= last.seq)).rowcount
    append(connection, pruned(ENTRY.from_row(last), now))
    return count


def _forgetting(table: Table, column: str) -> "Forget":
    """Return a function that deletes rows by the last column of their keys."""

    def forget(transaction: Transaction, keys: Sequence[Key], _now: int) -> int:
        values = [key[-1] for key in keys]
        return transaction.connection.execute(delete(table).where(table.c[column].in_(values))).rowcount

    return forget


def old_alerts(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return messages that were sent or have failed; those whose alert may be raised again are needed."""
    query = select(_columns.id, _columns.made_at, _columns.alert).where(_columns.made_at < before)
    query = query.where(text(f"NOT ({IS_WAITING})")).order_by(_columns.made_at, _columns.id).limit(limit)
    rows = connection.execute(query.where(after < _PLACE) if after else query).all()
    alerts = [Alert.from_json(json.loads(row.alert)) for row in rows]
    live = _live_runs(connection, alerts)
    definitions = connection.scalar(select(follower.c.seq).where(follower.c.name == DEFINITIONS))
    found = tuple(
        OldRecord(
            (row.made_at, row.id),
            row.made_at,
            is_needed=may_come_again(alert, is_live=_number(alert) in live, definitions=definitions),
        )
        for row, alert in zip(rows, alerts, strict=True)
    )
    return RecordPage(found, found[-1].key if len(found) == limit else None)


def _live_runs(connection: Connection, alerts: Iterable[Alert]) -> set[tuple[Any, ...]]:
    numbers = sorted({_number(alert) for alert in alerts if alert.instance_id is not None})
    columns = (run.c.workflow_id, run.c.instance_id, run.c.run_id)
    query = select(*columns).where(_NUMBER.in_(numbers), text(IS_LIVE))
    return {tuple(row) for row in connection.execute(query)} if numbers else set()


def _number(alert: Alert) -> tuple[Any, ...]:
    return alert.workflow_id, alert.instance_id, alert.run_id


Look = Callable[[Connection, int, Key, int], RecordPage]
Forget = Callable[[Transaction, Sequence[Key], int], int]
_LIVE = frozenset(status.value for status in RunStatus if not status.is_terminal)
_OLD: dict[RecordKind, Look] = {
    RecordKind.ALERTS: old_alerts,
    RecordKind.AUDIT: _old_lines,
    RecordKind.INSTANCES: old_instances,
    RecordKind.LAG: _old_lag,
    RecordKind.LOGS: _old_logs,
    RecordKind.LOG_FILES: _old_log_files,
    RecordKind.SESSIONS: _old_sessions,
    RecordKind.SIGNALS: old_signals,
    RecordKind.TOKENS: _old_tokens,
}
_FORGET: dict[RecordKind, Forget] = {
    RecordKind.ALERTS: _forgetting(alert_message, "id"),
    RecordKind.AUDIT: _forget_lines,
    RecordKind.EVENTS: _forgetting(event, "seq"),
    RecordKind.LAG: _forget_lag,
    RecordKind.LOGS: _forgetting(log_chunk, "attempt_uuid"),
    RecordKind.LOG_FILES: _forget_log_files,
    RecordKind.SESSIONS: _forgetting(access_session, "digest"),
    RecordKind.SIGNALS: forget_signals,
    RecordKind.TOKENS: _forgetting(access_token, "token_id"),
}
