"""Branches of deliveries and their targets, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, select, update

from calve.capture.inspection import CaptureDelivery, Target
from calve.delivery import BranchStatus, Delivery, StagedTarget, Staging, StoredBranch
from calve.lake import TableName
from calve.store.captures.rows import TABLE, columns_of, is_about, table_of
from calve.store.codec import NOT_STORED, Codec, Form
from calve.store.database import Database, fits
from calve.store.tables import delivery_branch, delivery_target

BRANCH = Codec(
    StoredBranch,
    delivery_branch,
    {
        "staging": Form("branch"),
        "target.name": TABLE,
        "target.uuid": Form("table_uuid"),
        "target.is_delivered": NOT_STORED,
    },
)
_BRANCH = delivery_branch.c
_TARGET = delivery_target.c


class SqlDeliveryState:
    """Stores branches and targets (the port is ``calve.delivery.DeliveryState``)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stage(self, branch: str, delivery: Delivery, attempt: str, targets: Sequence[TableName], now: datetime) -> None:
        """Record branches that are about to be created."""
        staged = (
            StoredBranch(branch, delivery, attempt, StagedTarget(target, "", None, None), BranchStatus.STAGED, now)
            for target in targets
        )
        rows = [BRANCH.to_row(each, staged_at=now) for each in staged]
        with self._database.write("stage_delivery") as connection:
            connection.execute(insert(delivery_branch), rows)

    def hold(self, staging: Staging, now: datetime) -> None:
        """Hold branches to be published later, and discard those that an earlier attempt of the delivery held."""
        delivery = staging.delivery
        is_earlier = and_(
            _BRANCH.stream == delivery.stream,
            _BRANCH.capture_id == delivery.capture_id,
            _BRANCH.part == delivery.part,
            _BRANCH.status == BranchStatus.HELD.value,
        )
        with self._database.write("hold_delivery") as connection:
            connection.execute(update(delivery_branch).where(is_earlier).values(_moved(BranchStatus.DISCARDED, now)))
            for target in staging.targets:
                known = {
                    "table_uuid": target.uuid,
                    "base_snapshot_id": target.base_snapshot_id,
                    "branch_snapshot_id": target.branch_snapshot_id,
                }
                connection.execute(
                    update(delivery_branch)
                    .where(_is_branch(staging.branch, target.name))
                    .values(_moved(BranchStatus.HELD, now) | known)
                )

    def held(self, capture_id: str) -> list[StoredBranch]:
        """Return the branches that are held for a capture, oldest first."""
        is_held = and_(_BRANCH.capture_id == capture_id, _BRANCH.status == BranchStatus.HELD.value)
        return self._branches(is_held)

    def branches(self, capture_id: str) -> list[StoredBranch]:
        """Return all branches created for a capture, oldest first."""
        return self._branches(_BRANCH.capture_id == capture_id)

    def delivered_uuid(self, stream: str, target: TableName) -> str | None:
        """Return the uuid of the table to which a stream last delivered under this name."""
        query = select(_TARGET.table_uuid).where(_is_target(stream, target))
        with self._database.read() as connection:
            return connection.scalar(query)

    def targets(self) -> list[Target]:
        """Return the tables that streams deliver to."""
        query = select(delivery_target).order_by(_TARGET.stream)
        with self._database.read() as connection:
            return [Target(row.stream, table_of(row), row.delivered_at) for row in connection.execute(query)]

    def of_capture(self, capture_id: str) -> list[CaptureDelivery]:
        """Return the deliveries of a capture's rows, oldest first."""
        return [
            CaptureDelivery(one.delivery.stream, one.attempt, one.target.name, one.status.value, one.changed_at)
            for one in self.branches(capture_id)
        ]

    def note(self, staging: Staging, target: TableName, uuid: str, now: datetime) -> None:
        """Record a delivery to a target: the uuid of its table, and that its branch was published."""
        stream = staging.delivery.stream
        place = {"stream": stream, **columns_of(target)}
        known = {"table_uuid": uuid, "delivered_at": now}
        with self._database.write("note_delivery") as connection:
            # Insert first, to see whether a row exists: after a select, two deliveries could both find none.
            if not fits(connection, insert(delivery_target).values(**place, **known)):
                connection.execute(update(delivery_target).where(_is_target(stream, target)).values(known))
            connection.execute(
                update(delivery_branch)
                .where(_is_branch(staging.branch, target))
                .values(_moved(BranchStatus.PUBLISHED, now))
            )

    def discard(self, branch: str, now: datetime) -> None:
        """Record that the unpublished branches of a staging are discarded."""
        is_left = and_(_BRANCH.branch == branch, _BRANCH.status != BranchStatus.PUBLISHED.value)
        with self._database.write("discard_delivery") as connection:
            connection.execute(update(delivery_branch).where(is_left).values(_moved(BranchStatus.DISCARDED, now)))

    def leftovers(self, before: datetime) -> list[StoredBranch]:
        """Return branches that have not changed since a time, including held ones, oldest first."""
        return self._branches(_BRANCH.changed_at < before)

    def forget(self, branch: str, target: TableName) -> None:
        """Delete the record of a branch that no longer exists."""
        with self._database.write("forget_delivery") as connection:
            connection.execute(delete(delivery_branch).where(_is_branch(branch, target)))

    def _branches(self, condition: ColumnElement[bool]) -> list[StoredBranch]:
        order = (_BRANCH.staged_at, _BRANCH.branch, _BRANCH.catalog, _BRANCH.table_name)
        query = select(delivery_branch).where(condition).order_by(*order)
        with self._database.read() as connection:
            return [BRANCH.from_row(row) for row in connection.execute(query)]


def _moved(status: BranchStatus, now: datetime) -> dict[str, Any]:
    return {"status": status.value, "changed_at": now}


def _is_branch(branch: str, target: TableName) -> ColumnElement[bool]:
    return and_(_BRANCH.branch == branch, is_about(delivery_branch, target))


def _is_target(stream: str, target: TableName) -> ColumnElement[bool]:
    return and_(_TARGET.stream == stream, is_about(delivery_target, target))
