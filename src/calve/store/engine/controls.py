"""Breakpoints and the limits of tags (the port is ``calve.engine.ports.Controls``)."""

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, text

from calve.engine import Attempt, Breakpoint, TagPermit
from calve.store.database import Transaction, Transactions
from calve.store.engine.permits import TAG, wake_waiting
from calve.store.engine.queue import enqueue
from calve.store.engine.rows import BREAKPOINT, attempt_of
from calve.store.tables import IS_PAUSED, attempt, breakpoint_, claim, run, tag_permit

_PLACE = ("workflow_id", "step_id", "version_id", "instance_id", "run_id", "attempt_id")


class SqlControls:
    """Stores breakpoints and the limits of tags."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def set_breakpoint(self, point: Breakpoint) -> None:
        """Set a breakpoint."""

        def keep(transaction: Transaction) -> None:
            statement = transaction.insert(breakpoint_).values(BREAKPOINT.to_row(point))
            transaction.connection.execute(statement.on_conflict_do_nothing())

        self._transactions.write("set_breakpoint", keep)

    def delete_breakpoint(self, point: Breakpoint) -> bool:
        """Delete a breakpoint; return whether it existed."""
        statement = delete(breakpoint_).where(_is_at(point))
        return self._transactions.write(
            "delete_breakpoint", lambda transaction: transaction.connection.execute(statement).rowcount > 0
        )

    def breakpoints(self, workflow_id: str | None = None) -> list[Breakpoint]:
        """Return the breakpoints of a workflow, or all."""
        query = select(breakpoint_).order_by(*(breakpoint_.c[name] for name in _PLACE))
        if workflow_id is not None:
            query = query.where(breakpoint_.c.workflow_id == workflow_id)
        with self._transactions.read() as connection:
            return [BREAKPOINT.from_row(row) for row in connection.execute(query)]

    def paused(self, workflow_id: str, step_id: str) -> list[Attempt]:
        """Return the paused attempts of a step, in all instances."""
        halted = select(attempt).where(text(IS_PAUSED), attempt.c.step_id == step_id).subquery()
        is_of = or_(run.c.workflow_id == workflow_id, run.c.owner_workflow == workflow_id)
        query = select(halted).join(run, run.c.uuid == halted.c.run_uuid).where(is_of)
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(run.c.instance_id, run.c.run_id, halted.c.uuid))
            return [attempt_of(row, connection) for row in rows]

    def set_tag_permit(self, tag: str, max_allowed: int, now: int) -> None:
        """Limit how many steps of a tag run concurrently, and wake the waiting ones."""
        values = {"tag": tag, "max_allowed": max_allowed, "modified_at": now}

        def keep(transaction: Transaction) -> None:
            statement = transaction.insert(tag_permit).values(values)
            changed = {"max_allowed": max_allowed, "modified_at": now}
            transaction.connection.execute(
                statement.on_conflict_do_update(index_elements=[tag_permit.c.tag], set_=changed)
            )
            enqueue(transaction, wake_waiting(transaction, TAG + tag))

        self._transactions.write("set_tag_permit", keep)

    def delete_tag_permit(self, tag: str) -> bool:
        """Remove a limit, and wake the steps that wait for it; return whether it existed."""

        def lift(transaction: Transaction) -> bool:
            found = transaction.connection.execute(delete(tag_permit).where(tag_permit.c.tag == tag)).rowcount > 0
            enqueue(transaction, wake_waiting(transaction, TAG + tag))
            return found

        return self._transactions.write("delete_tag_permit", lift)

    def tag_permits(self) -> list[TagPermit]:
        """Return the limits, and how many permits are held."""
        is_held = and_(claim.c.permit == TAG + tag_permit.c.tag, claim.c.is_held.is_(True))
        held = select(func.count()).where(is_held).scalar_subquery().label("held")
        query = select(tag_permit.c.tag, tag_permit.c.max_allowed, held).order_by(tag_permit.c.tag)
        with self._transactions.read() as connection:
            return [TagPermit(row.tag, row.max_allowed, row.held) for row in connection.execute(query)]


def _is_at(point: Breakpoint) -> ColumnElement[bool]:
    return and_(*(breakpoint_.c[name] == getattr(point, name) for name in _PLACE))
