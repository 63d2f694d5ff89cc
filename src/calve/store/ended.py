"""Triggers by tables wait while their workflow is at work: the end of an instance lets them be looked at again."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, case, exists, select, text, update

from calve.engine.model import Run
from calve.store.engine_tables import IS_INSTANCE, IS_LIVE, run, trigger
from calve.store.transacting import Transaction

_CALL = (
    update(trigger)
    .where(trigger.c.workflow_id == bindparam("the_workflow"), trigger.c.kind == "incremental")
    .values(
        due_at=case((trigger.c.due_at <= bindparam("now"), trigger.c.due_at), else_=bindparam("now")),
        seq=trigger.c.seq + 1,
    )
)
"""Whoever looks at one just now has found the instance at work still: as ``seq`` grows, that look comes to nothing."""
_IS_LIVE = select(
    exists(run.c.uuid).where(run.c.workflow_id == bindparam("workflow_id"), text(IS_INSTANCE), text(IS_LIVE))
)


def is_unfinished(connection: Connection, workflow_id: str) -> bool:
    """Tell whether an instance of a workflow is not over; one that waits for its turn is not."""
    return bool(connection.scalar(_IS_LIVE, {"workflow_id": workflow_id}))


def call_table_triggers(transaction: Transaction, runs: Sequence[Run]) -> None:
    """Let the triggers by tables of workflows whose instances end be looked at, in the same transaction."""
    ended = {
        each.workflow_id: {"the_workflow": each.workflow_id, "now": each.ended_at or each.created_at}
        for each in runs
        if each.status.is_terminal and not each.is_inline
    }
    for workflow_id in sorted(ended):
        transaction.is_waking |= transaction.connection.execute(_CALL, ended[workflow_id]).rowcount > 0
