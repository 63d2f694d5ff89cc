"""Instances by time, tag, initiator, version and params (part of the port ``calve.engine.ports.EngineState``).

Tags, initiators and params are in JSON without an index. So a request searches a limited number of instances in the
order of an index, and returns where to continue: it is fast even if matches are rare.
"""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, literal, not_, or_, select, text, tuple_

from calve.engine import InstanceQuery, Position, Run
from calve.store.database import Transactions, is_below
from calve.store.engine.rows import run_of
from calve.store.tables import IS_INSTANCE, IS_LATEST, run

SCANNED = 10_000
"""How many instances a request searches."""
_TURNS = 10
_MANUAL = "MANUAL"


class SqlInstanceFilters:
    """Filters instances by values that no index has."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def filtered_instances(self, query: InstanceQuery) -> tuple[list[Run], Position | None]:
        """Return the instances that match a query, newest first, and where to continue if it did not see all."""
        found: list[Run] = []
        after = query.after
        with self._transactions.read() as connection:
            for _ in range(_TURNS):
                scanned = _scanned(query, after)
                rows = connection.execute(_candidates(query, scanned)).all()
                found += [one for row in rows if query.is_met_by(one := run_of(row, connection))]
                if len(found) >= query.limit:
                    return found[: query.limit], None
                if len(rows) < query.limit:
                    last = connection.execute(select(scanned).offset(SCANNED - 1)).one_or_none()
                    return found, None if last is None else _place(query, last)
                after = _place(query, rows[-1])
        return found, after


def _key(query: InstanceQuery) -> tuple[ColumnElement[Any], ...]:
    """Return the sort key of instances; those of one workflow are sorted by number."""
    return (run.c.created_at, run.c.uuid) if query.workflow_id is None else (run.c.instance_id,)


def _place(query: InstanceQuery, row: Any) -> Position:
    return (row.created_at, row.uuid) if query.workflow_id is None else (row.instance_id, "")


def _scanned(query: InstanceQuery, after: Position | None) -> Subquery:
    key = _key(query)
    chosen = select(run.c.created_at, run.c.uuid, run.c.instance_id).where(text(IS_LATEST), text(IS_INSTANCE))
    if query.workflow_id is None:
        chosen = chosen.where(is_below(run.c.workflow_id, query.namespaces))
    else:
        chosen = chosen.where(run.c.workflow_id == query.workflow_id)
    if after is not None:
        chosen = chosen.where(tuple_(*key) < after[: len(key)])
    if query.since is not None:
        chosen = chosen.where(run.c.created_at >= query.since)
    if query.until is not None:
        chosen = chosen.where(run.c.created_at < query.until)
    return chosen.order_by(*(one.desc() for one in key)).limit(SCANNED).subquery("scanned")


def _candidates(query: InstanceQuery, scanned: Subquery) -> Select[Any]:
    """Return a query for the scanned instances that may match; the values in their rows decide."""
    listed = select(run).join(scanned, scanned.c.uuid == run.c.uuid).where(*_conditions(query))
    return listed.order_by(*(one.desc() for one in _key(query))).limit(query.limit)


def _conditions(query: InstanceQuery) -> Iterator[ColumnElement[bool]]:
    if query.statuses:
        yield run.c.status.in_([status.value for status in query.statuses])
    if query.version is not None:
        yield run.c.version_id == query.version
    if query.tag is not None:
        yield run.c.tags.contains(json.dumps(query.tag), autoescape=True)
    if query.initiator is not None:
        is_manual = query.initiator.upper() == _MANUAL  # the default, which rows leave out
        named = (query.initiator, query.initiator.upper())
        is_named = (run.c.initiator.contains(json.dumps(one), autoescape=True) for one in named)
        yield or_(*is_named, not_(run.c.initiator.contains('"type"')) if is_manual else literal(value=False))
    yield from map(has_param, query.params.values())


def has_param(value: str) -> ColumnElement[bool]:
    """Return a condition that is true for every run with a param of this value, as a text, and maybe for others."""
    return run.c.params.contains(json.dumps(value)[1:-1], autoescape=True)
