"""How far triggers have come, written with what they start."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from calve.engine.model import TriggerMark
from calve.errors import Conflict
from calve.store.engine_rows import dumped, plain
from calve.store.engine_tables import trigger, workflow

_ACTIVE = select(workflow.c.active_version).where(workflow.c.workflow_id == trigger.c.workflow_id).scalar_subquery()
_MARK = (
    update(trigger)
    .where(
        trigger.c.workflow_id == bindparam("the_workflow"),
        trigger.c.trigger_id == bindparam("the_trigger"),
        trigger.c.seq == bindparam("the_seq"),
        trigger.c.version_id == _ACTIVE,
    )
    .values(
        seq=trigger.c.seq + 1,
        state=bindparam("new_state"),
        due_at=bindparam("new_due_at"),
        is_begun=bindparam("new_is_begun"),
        fired_at=func.coalesce(bindparam("new_fired_at"), trigger.c.fired_at),
        error=bindparam("new_error"),
        failures=bindparam("new_failures"),
    )
)


def mark(connection: Connection, marks: Sequence[TriggerMark]) -> None:
    """Write how far triggers have come.

    Raises:
        Conflict: one of them is no longer as it was read, or its version is no longer the active one.
    """
    ordered = sorted(marks, key=lambda each: (each.workflow_id, each.trigger_id))
    if ordered and connection.execute(_MARK, [_row(each) for each in ordered]).rowcount != len(ordered):
        raise Conflict("A trigger has been moved by somebody else.", workflows=[each.workflow_id for each in ordered])


def _row(each: TriggerMark) -> dict[str, Any]:
    return {
        "the_workflow": each.workflow_id,
        "the_trigger": each.trigger_id,
        "the_seq": each.seq,
        "new_state": dumped(each.state),
        "new_due_at": each.due_at,
        "new_is_begun": each.is_begun,
        "new_fired_at": each.fired_at,
        "new_error": None if each.error is None else plain(each.error),
        "new_failures": each.failures,
    }
