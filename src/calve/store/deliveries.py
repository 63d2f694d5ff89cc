"""What delivery has in the lake, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, delete, insert, select, update

from calve.delivery import BranchStatus, Delivery, StagedTarget, Staging, StoredBranch
from calve.lake import TableName
from calve.store import tables
from calve.store.database import Database, fits
from calve.store.rows import dotted, table_of

_BRANCH = tables.delivery_branch.c
_TARGET = tables.delivery_target.c


class SqlDeliveryState:
    """Keeps branches and targets (the port is ``calve.delivery.DeliveryState``)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stage(self, branch: str, delivery: Delivery, attempt: str, targets: Sequence[TableName], now: datetime) -> None:
        """Record branches that are about to be made."""
        values = {
            "branch": branch,
            "stream": delivery.stream,
            "capture_id": delivery.capture_id,
            "run": delivery.run,
            "part": delivery.part,
            "attempt": attempt,
            "status": BranchStatus.STAGED.value,
            "staged_at": now,
            "changed_at": now,
        }
        rows = [{**values, "catalog": target.catalog, "table_name": dotted(target)} for target in targets]
        with self._database.write("stage_delivery") as connection:
            connection.execute(insert(tables.delivery_branch), rows)

    def hold(self, staging: Staging, now: datetime) -> None:
        """Keep branches to be published later, instead of those that an earlier attempt of the delivery held."""
        delivery = staging.delivery
        is_earlier = and_(
            _BRANCH.stream == delivery.stream,
            _BRANCH.capture_id == delivery.capture_id,
            _BRANCH.part == delivery.part,
            _BRANCH.status == BranchStatus.HELD.value,
        )
        with self._database.write("hold_delivery") as connection:
            connection.execute(
                update(tables.delivery_branch).where(is_earlier).values(_moved(BranchStatus.DISCARDED, now))
            )
            for target in staging.targets:
                known = {
                    "table_uuid": target.uuid,
                    "base_snapshot_id": target.base_snapshot_id,
                    "branch_snapshot_id": target.branch_snapshot_id,
                }
                connection.execute(
                    update(tables.delivery_branch)
                    .where(_is_branch(staging.branch, target.name))
                    .values(_moved(BranchStatus.HELD, now) | known)
                )

    def held(self, capture_id: str) -> list[StoredBranch]:
        """Return the branches that are held for a capture, oldest first."""
        is_held = and_(_BRANCH.capture_id == capture_id, _BRANCH.status == BranchStatus.HELD.value)
        return self._branches(is_held)

    def branches(self, capture_id: str) -> list[StoredBranch]:
        """Return every branch that was made for a capture, oldest first."""
        return self._branches(_BRANCH.capture_id == capture_id)

    def delivered_uuid(self, stream: str, target: TableName) -> str | None:
        """Return the identity of the table that a stream delivered to last under that name."""
        query = select(_TARGET.table_uuid).where(_is_target(stream, target))
        with self._database.read() as connection:
            return connection.scalar(query)

    def note(self, staging: Staging, target: TableName, uuid: str, now: datetime) -> None:
        """Record that a target has been delivered to: its identity, and that its branch is done with."""
        stream = staging.delivery.stream
        place = {"stream": stream, "catalog": target.catalog, "table_name": dotted(target)}
        known = {"table_uuid": uuid, "delivered_at": now}
        with self._database.write("note_delivery") as connection:
            if not fits(connection, insert(tables.delivery_target).values(**place, **known)):
                connection.execute(update(tables.delivery_target).where(_is_target(stream, target)).values(known))
            connection.execute(
                update(tables.delivery_branch)
                .where(_is_branch(staging.branch, target))
                .values(_moved(BranchStatus.PUBLISHED, now))
            )

    def discard(self, branch: str, now: datetime) -> None:
        """Record that nobody will publish what is left of a staging."""
        is_left = and_(_BRANCH.branch == branch, _BRANCH.status != BranchStatus.PUBLISHED.value)
        with self._database.write("discard_delivery") as connection:
            connection.execute(
                update(tables.delivery_branch).where(is_left).values(_moved(BranchStatus.DISCARDED, now))
            )

    def leftovers(self, before: datetime) -> list[StoredBranch]:
        """Return branches that nobody has touched since a time, oldest first; held ones too."""
        return self._branches(_BRANCH.changed_at < before)

    def forget(self, branch: str, target: TableName) -> None:
        """Remove the record of a branch that is gone for good."""
        with self._database.write("forget_delivery") as connection:
            connection.execute(delete(tables.delivery_branch).where(_is_branch(branch, target)))

    def _branches(self, condition: ColumnElement[bool]) -> list[StoredBranch]:
        order = (_BRANCH.staged_at, _BRANCH.branch, _BRANCH.catalog, _BRANCH.table_name)
        query = select(tables.delivery_branch).where(condition).order_by(*order)
        with self._database.read() as connection:
            return [_branch_of(row) for row in connection.execute(query)]


def _moved(status: BranchStatus, now: datetime) -> dict[str, Any]:
    return {"status": status.value, "changed_at": now}


def _is_branch(branch: str, target: TableName) -> ColumnElement[bool]:
    return and_(_BRANCH.branch == branch, _is_table(tables.delivery_branch, target))


def _is_target(stream: str, target: TableName) -> ColumnElement[bool]:
    return and_(_TARGET.stream == stream, _is_table(tables.delivery_target, target))


def _is_table(columns: Table, target: TableName) -> ColumnElement[bool]:
    return and_(columns.c.catalog == target.catalog, columns.c.table_name == dotted(target))


def _branch_of(row: Row[Any]) -> StoredBranch:
    return StoredBranch(
        staging=row.branch,
        delivery=Delivery(row.stream, row.capture_id, row.run, row.part),
        attempt=row.attempt,
        target=StagedTarget(table_of(row), row.table_uuid or "", row.base_snapshot_id, row.branch_snapshot_id),
        status=BranchStatus(row.status),
        changed_at=row.changed_at,
    )
