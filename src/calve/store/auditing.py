"""The audit log in SQL: lines are added one after the other, each in the transaction of what it tells of."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from calve.access import Act, Entry, chained
from calve.store.access_tables import audit
from calve.store.database import Database

AUDIT_LOCK = 0x6175646974
"""The advisory lock of PostgreSQL under which the log grows: "audit" in ASCII."""
_PAGE = 1_000


def append(connection: Connection, act: Act) -> Entry:
    """Add a line; until the transaction ends, nobody else can. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(AUDIT_LOCK)))
    last = connection.execute(select(audit).order_by(audit.c.seq.desc()).limit(1)).one_or_none()
    entry = chained(None if last is None else entry_of(last), act)
    detail = json.dumps(act.detail, sort_keys=True)
    values = asdict(act) | {
        "detail": detail,
        "seq": entry.seq,
        "previous": entry.previous,
        "digest": entry.digest,
    }
    connection.execute(insert(audit).values(values))
    return entry


class SqlAudit:
    """Reads the audit log, and adds to it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, act: Act) -> Entry:
        """Write a line of the audit log."""
        with self._database.write("append_audit") as connection:
            return append(connection, act)

    def entries(self, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Yield the lines of the audit log after one, in order."""
        while limit is None or limit > 0:
            most = _PAGE if limit is None else min(limit, _PAGE)
            query = select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(most)
            with self._database.read() as connection:
                page = connection.execute(query).all()
            if not page:
                return
            yield from map(entry_of, page)
            after = page[-1].seq
            limit = None if limit is None else limit - len(page)

    def newest(self, limit: int) -> list[Entry]:
        """Return the last lines of the audit log, the newest first."""
        with self._database.read() as connection:
            return [
                entry_of(row) for row in connection.execute(select(audit).order_by(audit.c.seq.desc()).limit(limit))
            ]


def entry_of(row: Row[Any]) -> Entry:
    """Return the line that a row holds."""
    act = Act(row.at, row.who, row.action, row.target, row.source, row.result, json.loads(row.detail))
    return Entry(row.seq, act, row.previous, row.digest)
