"""Old instances, with everything in them: earlier runs, iterations, subworkflows, attempts, events and logs."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, delete, select, text, tuple_

from calve.retention import Key, OldRecord, RecordPage
from calve.store.database import Transaction, Transactions
from calve.store.tables import (
    IS_INSTANCE,
    IS_LATEST,
    IS_LIVE,
    attempt,
    claim,
    event,
    log_chunk,
    run,
    signal_use,
    signal_wait,
    task,
    workflow,
)

RUNS = 500
"""Maximum number of runs that one transaction deletes: a loop may have very many."""
_PLACE = tuple_(run.c.created_at, run.c.uuid)
_OLD = (
    select(
        run.c.created_at,
        run.c.uuid,
        run.c.root_uuid,
        run.c.parent_run,
        run.c.ended_at,
        run.c.is_blocking,
        run.c.instance_id,
        workflow.c.last_instance,
    )
    .join(workflow, workflow.c.workflow_id == run.c.workflow_id)
    .where(text(IS_LATEST), text(IS_INSTANCE))
    .order_by(run.c.created_at, run.c.uuid)
)


def old_instances(connection: Connection, before: int, after: Key, limit: int) -> RecordPage:
    """Return instances; the newest of each workflow, those that block others, and unfinished ones are marked as needed.

    Subworkflow instances are deleted with the instance that started them.
    """
    query = _OLD.where(run.c.created_at < before).limit(limit)
    rows = connection.execute(query.where(after < _PLACE) if after else query).all()
    roots = select(run.c.root_uuid).where(run.c.root_uuid.in_([row.root_uuid for row in rows]), text(IS_LIVE))
    live = set(connection.scalars(roots.distinct()))
    found = tuple(
        OldRecord(
            (row.created_at, row.uuid),
            row.ended_at or row.created_at,
            is_needed=row.instance_id == row.last_instance or row.is_blocking or row.root_uuid in live,
        )
        for row in rows
        if row.parent_run is None
    )
    return RecordPage(found, (rows[-1].created_at, rows[-1].uuid) if len(rows) == limit else None)


def forget_instances(transactions: Transactions, keys: Sequence[Key]) -> int:
    """Delete instances, each in as many transactions as needed; return how many there were."""
    count = 0
    for _, uuid in keys:
        while (left := transactions.write("forget", partial(_forget, uuid=uuid))) > 0:
            pass
        count += left == 0
    return count


def _forget(transaction: Transaction, uuid: str | int) -> int:
    """Delete some runs of an instance, innermost first; return how many, 0 if it is deleted, -1 if it must stay.

    A start or a restart locks the row of its workflow: while it is locked here, no ended instance starts again. A
    subworkflow can be restarted by itself, so the rows of all workflows of the tree are locked, in the usual order.
    """
    connection = transaction.connection
    known = connection.execute(select(run.c.root_uuid).where(run.c.uuid == uuid)).one_or_none()
    if known is None:
        return 0
    tree = run.c.root_uuid == known.root_uuid
    names = select(run.c.workflow_id).where(tree, text(IS_INSTANCE))
    connection.execute(
        select(workflow.c.workflow_id)
        .where(workflow.c.workflow_id.in_(names))
        .order_by(workflow.c.workflow_id)
        .with_for_update()
    )
    if connection.execute(select(run.c.uuid).where(tree, text(IS_LIVE)).limit(1)).one_or_none() is not None:
        return -1
    # Delete the newest run of the instance last, because the instance is found by it.
    order = (run.c.depth.desc(), run.c.uuid == uuid, run.c.uuid)
    runs = list(connection.scalars(select(run.c.uuid).where(tree).order_by(*order).limit(RUNS)))
    _forget_runs(connection, runs)
    return len(runs)


def _forget_runs(connection: Connection, runs: Sequence[str]) -> None:
    mine = run.c.uuid.in_(runs)
    attempts = select(attempt.c.uuid).where(attempt.c.run_uuid.in_(runs))
    for table in (log_chunk, claim, signal_wait):
        connection.execute(delete(table).where(table.c.attempt_uuid.in_(attempts)))
    instances = select(run.c.workflow_id, run.c.instance_id).where(mine)
    of_instance = tuple_(signal_use.c.workflow_id, signal_use.c.instance_id).in_(instances)  # has an index
    connection.execute(delete(signal_use).where(of_instance, signal_use.c.run_uuid.in_(runs)))
    for table in (task, event, attempt):
        connection.execute(delete(table).where(table.c.run_uuid.in_(runs)))
    connection.execute(delete(run).where(mine))
