"""Messages of alerts that are over, and which of them have to be known still."""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select, text, tuple_

from calve.alerts.alerts import DEFINITIONS
from calve.alerts.deciding import may_come_again
from calve.alerts.model import Alert
from calve.retention import Key, Old, Page
from calve.store.engine_tables import IS_LIVE, run
from calve.store.observing_tables import IS_WAITING, alert_message, follower

_columns = alert_message.c
_PLACE = tuple_(_columns.made_at, _columns.id)
_NUMBER = tuple_(run.c.workflow_id, run.c.instance_id, run.c.run_id)


def old_alerts(connection: Connection, before: int, after: Key, limit: int) -> Page:
    """Return messages that were sent, or given up; those that would be found again are needed."""
    query = select(_columns.id, _columns.made_at, _columns.alert).where(_columns.made_at < before)
    query = query.where(text(f"NOT ({IS_WAITING})")).order_by(_columns.made_at, _columns.id).limit(limit)
    rows = connection.execute(query.where(after < _PLACE) if after else query).all()
    alerts = [Alert.from_json(json.loads(row.alert)) for row in rows]
    live = _live(connection, alerts)
    definitions = connection.scalar(select(follower.c.seq).where(follower.c.name == DEFINITIONS))
    found = tuple(
        Old(
            (row.made_at, row.id),
            row.made_at,
            is_needed=may_come_again(alert, is_live=_number(alert) in live, definitions=definitions),
        )
        for row, alert in zip(rows, alerts, strict=True)
    )
    return Page(found, found[-1].key if len(found) == limit else None)


def _live(connection: Connection, alerts: Iterable[Alert]) -> set[tuple[Any, ...]]:
    numbers = sorted({_number(alert) for alert in alerts if alert.instance_id is not None})
    columns = (run.c.workflow_id, run.c.instance_id, run.c.run_id)
    query = select(*columns).where(_NUMBER.in_(numbers), text(IS_LIVE))
    return {tuple(row) for row in connection.execute(query)} if numbers else set()


def _number(alert: Alert) -> tuple[Any, ...]:
    return alert.workflow_id, alert.instance_id, alert.run_id
