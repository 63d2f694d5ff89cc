"""Runs and attempts (the port is ``calve.engine.ports.Instances``); ``commits`` writes their changes."""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    func,
    not_,
    select,
    text,
    tuple_,
    union_all,
)

from calve.engine import (
    Ancestor,
    Attempt,
    Changes,
    Children,
    Committed,
    Event,
    IterationRecord,
    Json,
    Leaves,
    Run,
    RunEnd,
    RunStatus,
    Scope,
    Snapshot,
    StepStatus,
)
from calve.store.codec import loaded
from calve.store.database import Transactions, chunks, is_below
from calve.store.engine.commits import commit
from calve.store.engine.events import read_events
from calve.store.engine.params import read_params
from calve.store.engine.rows import attempt_of, run_of
from calve.store.engine.trees import read_ancestors, read_iterations, read_leaves
from calve.store.tables import (
    HAS_TIMEOUT,
    IS_COUNTED,
    IS_FAILED,
    IS_INNER,
    IS_INSTANCE,
    IS_LATEST,
    IS_LIVE,
    IS_STOPPED,
    IS_UNENDED,
    IS_UNSUCCESSFUL,
    attempt,
    event,
    run,
)

_later = attempt.alias("later")
_IS_NEWEST = not_(
    select(_later.c.uuid)
    .where(
        _later.c.run_uuid == attempt.c.run_uuid,
        _later.c.step_id == attempt.c.step_id,
        _later.c.attempt_id > attempt.c.attempt_id,
    )
    .exists()
)
"""No later attempt of the same step in the same run."""
_RUN = select(run).where(run.c.uuid == bindparam("uuid"))
_NEWEST = select(attempt).where(attempt.c.run_uuid == bindparam("run_uuid"), _IS_NEWEST)
_ATTEMPTS = select(attempt).where(attempt.c.uuid.in_(bindparam("uuids", expanding=True)))
_ATTEMPT = select(attempt).where(attempt.c.uuid == bindparam("uuid"))
_ENDS = (
    select(attempt.c.uuid, run.c.status, run.c.ended_at)
    .join(run, run.c.uuid == attempt.c.run_uuid)
    .where(attempt.c.uuid.in_(bindparam("uuids", expanding=True)))
)
_RUNS = (
    select(run)
    .where(run.c.workflow_id == bindparam("workflow_id"), run.c.instance_id == bindparam("instance_id"))
    .order_by(run.c.run_id.desc())
)
_LATEST_RUN = _RUNS.limit(1)
_ONE_RUN = _RUNS.where(run.c.run_id == bindparam("run_id"))
_REQUESTED = select(run).where(
    run.c.workflow_id == bindparam("workflow_id"), run.c.request_id == bindparam("request_id")
)
_ALL_ATTEMPTS = (
    select(attempt)
    .where(attempt.c.run_uuid == bindparam("run_uuid"))
    .order_by(attempt.c.attempt_id, attempt.c.step_instance_id)
)
_STEP_ATTEMPTS = _ALL_ATTEMPTS.where(attempt.c.step_id == bindparam("step_id"))
_COUNTS = (
    select(run.c.status, func.count().label("number"))
    .where(run.c.workflow_id == bindparam("workflow_id"), run.c.is_latest.is_(True))
    .group_by(run.c.status)
)
_LIVE = [status.value for status in RunStatus if not status.is_terminal]
_late = select(attempt.c.run_uuid, attempt.c.timeout_at).where(text(HAS_TIMEOUT), text(IS_UNENDED)).subquery("late")
_IS_CHILD = run.c.parent_attempt == bindparam("attempt_uuid")
_CHILDREN = (
    select(run.c.status, func.count().label("number"))
    .where(_IS_CHILD, text("parent_attempt IS NOT NULL"), text(IS_LATEST), text(IS_UNSUCCESSFUL))
    .group_by(run.c.status)
)
_own_leaves = select(attempt.c.status).where(
    attempt.c.run_uuid == bindparam("root_uuid"), attempt.c.root_uuid == "", text(IS_COUNTED)
)
_inner_leaves = select(attempt.c.status).where(
    attempt.c.root_uuid == bindparam("root_uuid"), text(IS_INNER), text(IS_COUNTED)
)
_leaves = union_all(_own_leaves, _inner_leaves).subquery()
_ROLLUP = select(_leaves.c.status, func.count().label("number")).group_by(_leaves.c.status)
_OVERDUE_RUNS = (
    select(run.c.uuid)
    .where(text(HAS_TIMEOUT), text(IS_LIVE), run.c.timeout_at <= bindparam("now"))
    .limit(bindparam("number"))
)
_OVERDUE_ATTEMPTS = (
    select(_late.c.run_uuid)
    .join(run, run.c.uuid == _late.c.run_uuid)
    .where(_late.c.timeout_at <= bindparam("now"), run.c.status.in_(_LIVE))
    .limit(bindparam("number"))
)
_IS_OF_LOOP = run.c.workflow_id == bindparam("workflow_id")
_CARRIED = select(run.c.uuid, run.c.instance_id, run.c.carried).where(_IS_OF_LOOP, run.c.is_latest.is_(True))


class SqlInstances:
    """Stores runs and attempts."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def commit(self, changes: Changes) -> Committed:
        """Write everything in one transaction, or nothing.

        Raises:
            Conflict: a run has changed since it was read.
            LeaseLost: a worker no longer owns a task.
            WorkflowMissing: the workflow of a start does not exist.
        """
        return self._transactions.write("engine", lambda transaction: commit(transaction, changes))

    def load(self, run_uuid: str) -> Snapshot | None:
        """Return a run and the newest attempt of each of its steps, including carried-over ones."""
        with self._transactions.read() as connection:
            row = connection.execute(_RUN, {"uuid": run_uuid}).one_or_none()
            if row is None:
                return None
            found = run_of(row, connection)
            own = [attempt_of(each, connection) for each in connection.execute(_NEWEST, {"run_uuid": run_uuid})]
            attempts = own + _carried(connection, found, {each.step_id for each in own})
        return Snapshot(found, tuple(sorted(attempts, key=lambda each: each.step_instance_id)))

    def run(self, workflow_id: str, instance_id: int, run_id: int | None = None) -> Run | None:
        """Return a run of an instance, the latest if none is named."""
        place = {"workflow_id": workflow_id, "instance_id": instance_id}
        if run_id is None:
            return self._first_run(_LATEST_RUN, place)
        return self._first_run(_ONE_RUN, place | {"run_id": run_id})

    def run_by_request(self, workflow_id: str, request_id: str) -> Run | None:
        """Return the run that an earlier call with this request id started, if any."""
        return self._first_run(_REQUESTED, {"workflow_id": workflow_id, "request_id": request_id})

    def runs(self, workflow_id: str, instance_id: int) -> list[Run]:
        """Return every run of an instance, newest first."""
        return self._runs(_RUNS, {"workflow_id": workflow_id, "instance_id": instance_id})

    def instances(
        self,
        *,
        workflow_id: str | None = None,
        statuses: Sequence[RunStatus] = (),
        before: tuple[int, str] | None = None,
        limit: int = 100,
        namespaces: Sequence[str] = ("",),
    ) -> list[Run]:
        """Return the latest runs of instances, without iterations, newest first."""
        query = select(run).where(text(IS_LATEST), text(IS_INSTANCE), is_below(run.c.workflow_id, namespaces))
        if workflow_id is not None:
            query = query.where(run.c.workflow_id == workflow_id)
        condition = _indexed(statuses)
        if condition is not None:
            query = query.where(text(condition))
        # The index of live instances has no times, and SQLite would prefer to scan all instances by the index that
        # has them: an expression that no index contains prevents this.
        created_at = run.c.created_at + 0 if condition == IS_LIVE else run.c.created_at
        if before is not None:
            query = query.where(tuple_(created_at, run.c.uuid) < before)
        return self._runs(query.where(*_is_in(statuses)).order_by(created_at.desc(), run.c.uuid.desc()).limit(limit))

    def numbered(
        self,
        workflow_id: str,
        *,
        statuses: Sequence[RunStatus] = (),
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """Return the latest runs of a workflow's instances, the highest number first."""
        query = select(run).where(run.c.workflow_id == workflow_id, run.c.is_latest.is_(True), *_is_in(statuses))
        if after is not None:
            found = self._runs(query.where(run.c.instance_id > after).order_by(run.c.instance_id).limit(limit))
            return found[::-1]
        if before is not None:
            query = query.where(run.c.instance_id < before)
        return self._runs(query.order_by(run.c.instance_id.desc()).limit(limit))

    def instance_counts(self, workflow_id: str) -> dict[RunStatus, int]:
        """Count the instances of a workflow by the status of their latest run."""
        with self._transactions.read() as connection:
            rows = connection.execute(_COUNTS, {"workflow_id": workflow_id})
            return {RunStatus(row.status): row.number for row in rows}

    def attempt(self, attempt_uuid: str) -> Attempt | None:
        """Return an attempt."""
        with self._transactions.read() as connection:
            row = connection.execute(_ATTEMPT, {"uuid": attempt_uuid}).one_or_none()
            return None if row is None else attempt_of(row, connection)

    def attempts(self, run_uuid: str, step_id: str | None = None) -> list[Attempt]:
        """Return all attempts of a run, or of one of its steps, oldest first."""
        query, place = (_ALL_ATTEMPTS, {}) if step_id is None else (_STEP_ATTEMPTS, {"step_id": step_id})
        with self._transactions.read() as connection:
            return [attempt_of(row, connection) for row in connection.execute(query, {"run_uuid": run_uuid, **place})]

    def newest_attempt(self, workflow_id: str, instance_id: int, step_id: str) -> Attempt | None:
        """Return the newest attempt of a step in all runs of an instance."""
        query = (
            select(attempt)
            .join(run, run.c.uuid == attempt.c.run_uuid)
            .where(run.c.workflow_id == workflow_id, run.c.instance_id == instance_id, attempt.c.step_id == step_id)
            .order_by(run.c.run_id.desc(), attempt.c.attempt_id.desc())
            .limit(1)
        )
        with self._transactions.read() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else attempt_of(row, connection)

    def children(self, attempt_uuid: str) -> Children:
        """Count the child runs of an attempt, in time proportional to the unfinished and failed ones."""
        with self._transactions.read() as connection:
            rows = connection.execute(_CHILDREN, {"attempt_uuid": attempt_uuid})
            found = {RunStatus(row.status): row.number for row in rows}
        return Children(
            active=sum(number for status, number in found.items() if not status.is_terminal),
            failed=found.get(RunStatus.FAILED, 0),
            timed_out=found.get(RunStatus.TIMED_OUT, 0),
            stopped=found.get(RunStatus.STOPPED, 0),
        )

    def child_runs(
        self, attempt_uuid: str, *, statuses: Sequence[RunStatus] = (), after: int = 0, limit: int = 1000
    ) -> list[Run]:
        """Return the latest child runs of an attempt by instance id, starting after ``after``."""
        query = select(run).where(run.c.parent_attempt == attempt_uuid, run.c.is_latest.is_(True), *_is_in(statuses))
        number: ColumnElement[int] = run.c.instance_id
        if statuses and RunStatus.SUCCEEDED not in statuses:
            query = query.where(text("parent_attempt IS NOT NULL"), text(IS_LATEST), text(IS_UNSUCCESSFUL))
            # Few of thousands, with an index of their own. SQLite would prefer to scan all children by the index that
            # has their numbers: an expression that no index contains prevents this.
            number = run.c.instance_id + 0
        return self._runs(query.where(number > after).order_by(number, run.c.workflow_id).limit(limit))

    def child_params(self, workflow_id: str, step_id: str, param: str) -> dict[int, Json]:
        """Return a stored param of a step in all iterations of a loop, by number."""
        own = (
            select(run.c.instance_id, attempt.c.params, attempt.c.uuid)
            .join(attempt, attempt.c.run_uuid == run.c.uuid)
            .where(_IS_OF_LOOP, run.c.is_latest.is_(True), attempt.c.step_id == step_id, _IS_NEWEST)
        )
        place = {"workflow_id": workflow_id}
        with self._transactions.read() as connection:
            params = {row.instance_id: (row.params, row.uuid) for row in connection.execute(own, place)}
            carried = {
                loaded(row.carried)[step_id]: row.instance_id
                for row in connection.execute(_CARRIED, place)
                if row.instance_id not in params and step_id in loaded(row.carried)
            }
            for some in chunks(list(carried)):
                rows = connection.execute(_ATTEMPTS, {"uuids": some})
                params |= {carried[row.uuid]: (row.params, row.uuid) for row in rows}
            found = {number: read_params(connection, *written) for number, written in sorted(params.items())}
        return {instance_id: stored[param] for instance_id, stored in found.items() if param in stored}

    def latest_inline(self, workflow_id: str, *, after: int = 0, limit: int = 1000) -> list[Run]:
        """Return the latest runs of a loop's iterations, by number, starting after ``after``."""
        is_of = (run.c.workflow_id == workflow_id, run.c.instance_id > after, run.c.is_latest.is_(True))
        return self._runs(select(run).where(*is_of).order_by(run.c.instance_id).limit(limit))

    def rollup(self, root_uuid: str) -> dict[StepStatus, int]:
        """Count the leaf steps of a whole tree by the status of their newest attempts."""
        with self._transactions.read() as connection:
            rows = connection.execute(_ROLLUP, {"root_uuid": root_uuid})
            return {StepStatus(row.status): row.number for row in rows}

    def leaves(self, scope: Scope, limit: int = 100) -> Leaves:
        """Count the leaf steps of a scope, and return the first of those that a rollup names."""
        with self._transactions.read() as connection:
            return read_leaves(connection, scope, limit)

    def iterations(self, workflow_id: str, *, with_params: bool = False) -> list[IterationRecord]:
        """Return the iterations of a loop, by number."""
        with self._transactions.read() as connection:
            return read_iterations(connection, workflow_id, with_params=with_params)

    def ancestors(self, run_uuid: str) -> list[Ancestor]:
        """Return the attempts that contain a run, from that of the root down."""
        with self._transactions.read() as connection:
            return read_ancestors(connection, run_uuid)

    def overdue(self, now: int, limit: int = 100) -> list[str]:
        """Return the uuids of unfinished runs that have timed out, or that have an unfinished attempt that has."""
        place = {"now": now, "number": limit}
        with self._transactions.read() as connection:
            found = dict.fromkeys(connection.scalars(_OVERDUE_RUNS, place))
            found |= dict.fromkeys(connection.scalars(_OVERDUE_ATTEMPTS, place))
        return list(found)[:limit]

    def events(
        self, *, after: int = 0, run_uuid: str | None = None, root_uuid: str | None = None, limit: int = 1000
    ) -> list[Event]:
        """Return events in order, starting after ``after``."""
        with self._transactions.read() as connection:
            return read_events(connection, after=after, run_uuid=run_uuid, root_uuid=root_uuid, limit=limit)

    def last_event(self) -> int:
        """Return the number of the newest event; 0 if there is none."""
        with self._transactions.read() as connection:
            return connection.scalar(select(func.max(event.c.seq))) or 0

    def run_ends(self, attempt_uuids: Sequence[str]) -> dict[str, RunEnd]:
        """Return the status and end time of the runs of some attempts, by attempt; unknown attempts are missing."""
        found: dict[str, RunEnd] = {}
        with self._transactions.read() as connection:
            for some in chunks(attempt_uuids):
                for row in connection.execute(_ENDS, {"uuids": some}):
                    found[row.uuid] = RunEnd(RunStatus(row.status), row.ended_at)
        return found

    def _runs(self, query: Select[tuple[object, ...]], place: Mapping[str, object] | None = None) -> list[Run]:
        with self._transactions.read() as connection:
            return [run_of(row, connection) for row in connection.execute(query, place)]

    def _first_run(self, query: Select[tuple[object, ...]], place: Mapping[str, object]) -> Run | None:
        return next(iter(self._runs(query, place)), None)


_INDEXED = (
    (frozenset(_LIVE), IS_LIVE),
    (frozenset({RunStatus.FAILED.value, RunStatus.TIMED_OUT.value}), IS_FAILED),
    (frozenset({RunStatus.STOPPED.value}), IS_STOPPED),
)
"""Statuses that few of very many instances have, with the conditions of their indexes."""


def _indexed(statuses: Sequence[RunStatus]) -> str | None:
    """Return the condition of the index that contains the instances in some statuses; None if there is none."""
    wanted = frozenset(status.value for status in statuses)
    return next((condition for held, condition in _INDEXED if wanted and wanted <= held), None)


def _is_in(statuses: Sequence[RunStatus]) -> list[ColumnElement[bool]]:
    return [run.c.status.in_([status.value for status in statuses])] if statuses else []


def _carried(connection: Connection, found: Run, known: set[str]) -> list[Attempt]:
    uuids = [uuid for step_id, uuid in found.carried.items() if step_id not in known]
    if not uuids:
        return []
    return [attempt_of(row, connection) for row in connection.execute(_ATTEMPTS, {"uuids": uuids})]
