"""Trees of runs: the leaf steps below a run, the iterations of a loop, the attempts around a run."""

from typing import Any

from sqlalchemy import (
    CTE,
    BindParameter,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    text,
)

from calve.engine import FLAGS, Ancestor, IterationRecord, Leaf, Leaves, RunStatus, Scope, StepStatus
from calve.store.engine.params import read_params
from calve.store.tables import IS_COUNTED, attempt, run

_LIVE = [status.value for status in RunStatus if not status.is_terminal]
_NAMED = [status.value for status, flags in FLAGS.items() if flags.is_shown]
_IS_LEAF = (attempt.c.is_leaf.is_(True), attempt.c.is_superseded.is_(False))
_PLACE = (run.c.workflow_id, run.c.instance_id, run.c.run_id, attempt.c.step_id, attempt.c.attempt_id)
_ORDER = (run.c.workflow_id, run.c.instance_id, attempt.c.step_id)
_NUMBER = func.count().label("number")


def _inside(*, is_instance: bool) -> CTE:
    """Return a query for the runs of an instance, or of the iterations of a loop, and all runs inside them.

    Includes earlier runs: they contain what a restart kept, and what it ran again is superseded.
    """
    latest, child, outer = run.alias("latest"), run.alias("child"), attempt.alias("outer")
    is_same = and_(
        latest.c.workflow_id == run.c.workflow_id,
        latest.c.instance_id == run.c.instance_id,
        latest.c.is_latest.is_(True),
    )
    is_live = case((latest.c.status.in_(_LIVE), 1), else_=0).label("is_live")
    first = select(run.c.uuid, is_live).join(latest, is_same).where(run.c.workflow_id == bindparam("workflow_id"))
    if is_instance:
        first = first.where(run.c.instance_id == bindparam("instance_id"))
    found = first.cte("inside", recursive=True)
    deeper = (
        select(child.c.uuid, found.c.is_live)
        .join(outer, and_(outer.c.run_uuid == found.c.uuid, outer.c.is_leaf.is_(False)))
        .join(child, child.c.parent_attempt == outer.c.uuid)
    )
    return found.union(deeper)


def _of_tree() -> tuple[Select[Any], Select[Any]]:
    """Return a query that counts the leaf steps of a whole tree, by an index alone, and one that names some of them."""
    is_live = literal(0).label("is_live")
    root: BindParameter[str] = bindparam("root_uuid")
    is_its = or_(  # Each side has an index: the first is partial, for rows with a root_uuid that is not empty.
        and_(attempt.c.root_uuid == root, attempt.c.root_uuid != ""),
        and_(attempt.c.run_uuid == root, attempt.c.root_uuid == ""),
    )
    counts = select(is_live, attempt.c.status, _NUMBER).where(is_its, text(IS_COUNTED)).group_by(attempt.c.status)
    named = select(attempt.c.status, *_PLACE, is_live).join(run, run.c.uuid == attempt.c.run_uuid)
    return counts, named.where(is_its, text(IS_COUNTED), attempt.c.status.in_(_NAMED)).order_by(*_ORDER)


def _of_part(*, is_instance: bool) -> tuple[Select[Any], Select[Any]]:
    """Return the same queries for an instance, or for the iterations of a loop."""
    inside = _inside(is_instance=is_instance)
    is_its = and_(attempt.c.run_uuid == inside.c.uuid, *_IS_LEAF)
    # The outer join keeps SQLite from scanning all attempts to look up the run of each.
    leaves = inside.outerjoin(attempt, is_its)
    counts = select(inside.c.is_live, attempt.c.status, func.count(attempt.c.uuid).label("number")).select_from(leaves)
    named = select(attempt.c.status, *_PLACE, inside.c.is_live).select_from(leaves)
    named = named.join(run, run.c.uuid == inside.c.uuid).where(attempt.c.status.in_(_NAMED))
    return counts.group_by(inside.c.is_live, attempt.c.status), named.order_by(*_ORDER)


def _around() -> Select[Any]:
    """Return a query for the attempts that contain a run: each recursion goes one step outwards."""
    parts = ("parent_run", "parent_step", "parent_attempt", "depth")
    first = select(*(run.c[name] for name in parts)).where(run.c.uuid == bindparam("uuid"))
    found, outer, parent = first.cte("around", recursive=True), run.alias("outer"), run.alias("parent")
    found = found.union_all(select(*(outer.c[name] for name in parts)).where(outer.c.uuid == found.c.parent_run))
    return (
        select(parent.c.workflow_id, parent.c.instance_id, parent.c.run_id, found.c.parent_step, attempt.c.attempt_id)
        .select_from(found)
        .join(parent, parent.c.uuid == found.c.parent_run)
        .join(attempt, attempt.c.uuid == found.c.parent_attempt)
        .order_by(found.c.depth)
    )


_TREE, _INSTANCE, _LOOP, _ANCESTORS = _of_tree(), _of_part(is_instance=True), _of_part(is_instance=False), _around()


def read_leaves(connection: Connection, scope: Scope, limit: int) -> Leaves:
    """Count the leaf steps of a scope, and return the first of those that a rollup names."""
    place: dict[str, Any]
    if scope.workflow_id is None:
        (counts, named), place = _TREE, {"root_uuid": scope.root_uuid}
    elif scope.instance_id is None:
        (counts, named), place = _LOOP, {"workflow_id": scope.workflow_id}
    else:
        (counts, named), place = _INSTANCE, {"workflow_id": scope.workflow_id, "instance_id": scope.instance_id}
    over: dict[StepStatus, int] = {}
    live: dict[StepStatus, int] = {}
    for row in connection.execute(counts, place):
        if row.number:
            (live if row.is_live else over)[StepStatus(row.status)] = row.number
    # Finding the named ones scans the tree a second time: unnecessary if everything has succeeded.
    has_named = any(status.value in _NAMED for status in (*over, *live))
    first = connection.execute(named.limit(limit), place) if has_named else ()
    return Leaves(over, live, tuple(_leaf_of(row) for row in first))


def _leaf_of(row: Row[Any]) -> Leaf:
    place = (row.workflow_id, row.instance_id, row.run_id, row.step_id, row.attempt_id)
    return Leaf(StepStatus(row.status), *place, is_live=bool(row.is_live))


def read_iterations(connection: Connection, workflow_id: str, *, with_params: bool) -> list[IterationRecord]:
    """Return the iterations of a loop, by number."""
    columns = [run.c.instance_id, run.c.status, *([run.c.params, run.c.uuid] if with_params else [])]
    query = select(*columns).where(run.c.workflow_id == workflow_id, run.c.is_latest.is_(True))
    return [
        IterationRecord(
            row.instance_id, RunStatus(row.status), read_params(connection, row.params, row.uuid) if with_params else {}
        )
        for row in connection.execute(query.order_by(run.c.instance_id))
    ]


def read_ancestors(connection: Connection, run_uuid: str) -> list[Ancestor]:
    """Return the attempts that contain a run, from that of the root down."""
    return [Ancestor(*row) for row in connection.execute(_ANCESTORS, {"uuid": run_uuid})]
