"""Workflows and their versions (the port is ``calve.engine.ports.Definitions``)."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, exists, insert, or_, select, update

from calve.definition import JobTemplate
from calve.engine import Json, QueueView, RunStatus, VersionRecord, WorkflowRecord, check_change
from calve.errors import RequestInvalid, WorkflowMissing
from calve.store.codec import dumped, loaded
from calve.store.database import Transaction, Transactions, is_below
from calve.store.engine.rows import VERSION, WORKFLOW
from calve.store.engine.run_queue import RunQueue, is_blocked, read_queue, strategy_of
from calve.store.tables import (
    attempt,
    breakpoint_,
    claim,
    event,
    job_template,
    log_chunk,
    run,
    signal_subscription,
    signal_use,
    task,
    trigger,
    version,
    workflow,
)

_RESET = frozenset({"run_strategy", "step_concurrency", "alerting"})
"""Properties that a push resets to their defaults if it does not contain them."""
UNSYNCED = -1
"""A value of ``triggers_version`` that equals no version, so that the triggers are synchronized again."""
_EXISTING = select(workflow).where(workflow.c.workflow_id == bindparam("workflow_id"), workflow.c.deleted_at.is_(None))
_LIVE = [status.value for status in RunStatus if not status.is_terminal]


class SqlDefinitions:
    """Stores workflows and their versions."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def push(
        self, workflow_id: str, definition: Json, properties: Json, *, is_active: bool, author: str, now: int
    ) -> VersionRecord:
        """Store a definition as the next version, and its properties as the latest snapshot.

        Raises:
            RequestInvalid: the run strategy cannot be changed now.
        """

        def keep(transaction: Transaction) -> VersionRecord:
            before = _locked(transaction, workflow_id, now)
            merged = _merged(loaded(before.properties), properties)
            strategy = _strategy_text(merged)
            _check_strategy(transaction.connection, before, strategy)
            record = VersionRecord(workflow_id, before.latest_version + 1, definition, author, now)
            transaction.connection.execute(insert(version).values(VERSION.to_row(record)))
            values: dict[str, Any] = {
                "latest_version": record.version_id,
                "properties": dumped(merged),
                "strategy": strategy,
                "modified_at": now,
                "deleted_at": None,
            }
            if is_active:
                values |= {"active_version": record.version_id, "activated_at": now}
                transaction.is_waking = True  # so that its triggers are created
            if before.deleted_at is not None:
                values["created_at"] = now
            _change(transaction.connection, workflow_id, values)
            return record

        return self._transactions.write("push", keep)

    def workflow(self, workflow_id: str) -> WorkflowRecord | None:
        """Return a workflow, or None if it does not exist or was deleted."""
        with self._transactions.read() as connection:
            row = _existing(connection, workflow_id)
        return None if row is None else WORKFLOW.from_row(row)

    def workflows(
        self, *, after: str = "", limit: int = 100, contains: str = "", namespaces: Sequence[str] = ("",)
    ) -> list[WorkflowRecord]:
        """Return workflows by id, starting after ``after``, limited to those below ``namespaces``."""
        query = select(workflow).where(workflow.c.deleted_at.is_(None), workflow.c.workflow_id > after)
        query = query.where(is_below(workflow.c.workflow_id, namespaces))
        if contains:
            query = query.where(workflow.c.workflow_id.icontains(contains, autoescape=True))
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(workflow.c.workflow_id).limit(limit))
            return [WORKFLOW.from_row(row) for row in rows]

    def change_properties(self, workflow_id: str, change: Callable[[Json], Json], now: int) -> WorkflowRecord:
        """Replace the properties of a workflow by the result of ``change``, under the lock of its row.

        Raises:
            WorkflowMissing: the workflow does not exist.
            RequestInvalid: the run strategy cannot be changed now.
        """

        def replace(transaction: Transaction) -> WorkflowRecord:
            connection = transaction.connection
            lock = select(workflow).where(workflow.c.workflow_id == workflow_id).with_for_update()
            before = connection.execute(lock).one_or_none()
            if before is None or before.deleted_at is not None:
                raise _missing(workflow_id, None)
            properties = change(loaded(before.properties))
            strategy = _strategy_text(properties)
            _check_strategy(connection, before, strategy)
            values = {"properties": dumped(properties), "strategy": strategy, "modified_at": now}
            _change(connection, workflow_id, values)
            return WORKFLOW.from_row(
                connection.execute(select(workflow).where(workflow.c.workflow_id == workflow_id)).one()
            )

        return self._transactions.write("change_properties", replace)

    def version(self, workflow_id: str, selector: str | int) -> VersionRecord | None:
        """Return a version: active, latest, default (active, else latest), or a number."""
        with self._transactions.read() as connection:
            row = _existing(connection, workflow_id)
            number = None if row is None else _number(row, str(selector))
            if number is None:
                return None
            is_it = (version.c.workflow_id == workflow_id) & (version.c.version_id == number)
            found = connection.execute(select(version).where(is_it)).one_or_none()
        return None if found is None else VERSION.from_row(found)

    def versions(self, workflow_id: str) -> list[VersionRecord]:
        """Return every version, newest first."""
        query = select(version).where(version.c.workflow_id == workflow_id).order_by(version.c.version_id.desc())
        with self._transactions.read() as connection:
            return [VERSION.from_row(row) for row in connection.execute(query)]

    def activate(self, workflow_id: str, version_id: int | None, now: int) -> None:
        """Activate a version; None deactivates the workflow.

        Raises:
            WorkflowMissing: the workflow or the version does not exist.
        """

        def change(transaction: Transaction) -> None:
            connection = transaction.connection
            is_known = _existing(connection, workflow_id) is not None
            if not is_known or (version_id is not None and not _has_version(connection, workflow_id, version_id)):
                raise _missing(workflow_id, version_id)
            values = {"active_version": version_id, "activated_at": now, "modified_at": now}
            if version_id is None:  # a later activation starts its triggers again
                connection.execute(delete(trigger).where(trigger.c.workflow_id == workflow_id))
                values["triggers_version"] = UNSYNCED
            _change(connection, workflow_id, values)
            transaction.is_waking = True

        self._transactions.write("activate", change)

    def delete_workflow(self, workflow_id: str, now: int) -> None:
        """Delete a workflow with its versions, instances, attempts, logs and events; numbers are not reused.

        Raises:
            RequestInvalid: one of its instances has not ended.
            WorkflowMissing: the workflow does not exist.
        """

        def forget(transaction: Transaction) -> None:
            connection = transaction.connection
            lock = select(workflow).where(workflow.c.workflow_id == workflow_id).with_for_update()
            row = connection.execute(lock).one_or_none()
            if row is None or row.deleted_at is not None:
                raise _missing(workflow_id, None)
            _check_over(connection, workflow_id)
            _delete_runs(connection, workflow_id)
            connection.execute(delete(version).where(version.c.workflow_id == workflow_id))
            connection.execute(delete(breakpoint_).where(breakpoint_.c.workflow_id == workflow_id))
            for table in (trigger, signal_subscription, signal_use):
                connection.execute(delete(table).where(table.c.workflow_id == workflow_id))
            gone = {"active_version": None, "properties": "{}", "strategy": None}
            gone |= {"activated_at": None, "triggers_version": None}
            _change(connection, workflow_id, gone | {"deleted_at": now, "modified_at": now})

        self._transactions.write("delete_workflow", forget)


def _existing(connection: Connection, workflow_id: str) -> Row[Any] | None:
    return connection.execute(_EXISTING, {"workflow_id": workflow_id}).one_or_none()


def _has_version(connection: Connection, workflow_id: str, version_id: int) -> bool:
    is_it = (version.c.workflow_id == workflow_id) & (version.c.version_id == version_id)
    return connection.execute(select(version.c.version_id).where(is_it)).one_or_none() is not None


def _locked(transaction: Transaction, workflow_id: str, now: int) -> Row[Any]:
    """Create the row of a workflow if it does not exist, and lock it."""
    row = {
        "workflow_id": workflow_id,
        "latest_version": 0,
        "properties": "{}",
        "last_instance": 0,
        "created_at": now,
        "modified_at": now,
    }
    insert_ = transaction.insert(workflow).values(row)
    # An insert that may do nothing, then a lock: two first pushes of a workflow must not both create version 1.
    transaction.connection.execute(insert_.on_conflict_do_nothing())
    query = select(workflow).where(workflow.c.workflow_id == workflow_id).with_for_update()
    return transaction.connection.execute(query).one()


def _merged(before: Json, pushed: Json) -> dict[str, Any]:
    kept = {name: value for name, value in before.items() if name not in _RESET}
    return kept | {name: value for name, value in pushed.items() if value is not None}


def _strategy_text(properties: Json) -> str | None:
    strategy = properties.get("run_strategy")
    return None if strategy is None else json.dumps(strategy, sort_keys=True)


def _check_strategy(connection: Connection, before: Row[Any], after: str | None) -> None:
    old, new = strategy_of(before.strategy), strategy_of(after)
    if old.rule is new.rule:
        return
    queue = RunQueue(before.workflow_id, new, before.last_instance)
    read_queue(connection, queue)
    blocked = is_blocked(connection, before.workflow_id)
    check_change(old, new, QueueView(queue.view.queued, queue.view.active, blocked))


def _change(connection: Connection, workflow_id: str, values: dict[str, Any]) -> None:
    connection.execute(update(workflow).where(workflow.c.workflow_id == workflow_id).values(values))


def _number(row: Row[Any], selector: str) -> int | None:
    match selector.lower():
        case "active":
            found = row.active_version
        case "latest":
            found = row.latest_version
        case "default":
            found = row.active_version or row.latest_version
        case number:
            found = int(number) if number.isascii() and number.isdigit() else None
    return None if found is None else int(found)


def _missing(workflow_id: str, version_id: int | None) -> WorkflowMissing:
    what = f"workflow {workflow_id}" if version_id is None else f"version {version_id} of workflow {workflow_id}"
    return WorkflowMissing(f"There is no {what}.", workflow=workflow_id)


def _mine(workflow_id: str) -> Any:
    """Match the runs of a workflow: its instances, their iterations, and all runs that they are the root of."""
    roots = select(run.c.uuid).where(run.c.workflow_id == workflow_id)
    return or_(run.c.workflow_id == workflow_id, run.c.owner_workflow == workflow_id, run.c.root_uuid.in_(roots))


def _check_over(connection: Connection, workflow_id: str) -> None:
    query = select(run.c.workflow_id, run.c.instance_id).where(_mine(workflow_id), run.c.status.in_(_LIVE)).limit(1)
    row = connection.execute(query).one_or_none()
    if row is not None:
        raise RequestInvalid(
            f"{workflow_id} cannot be deleted: {row.workflow_id}/{row.instance_id} is not over.",
            remedy="Stop it first, or wait until it ends.",
            workflow=workflow_id,
        )


def _delete_runs(connection: Connection, workflow_id: str) -> None:
    runs = select(run.c.uuid).where(_mine(workflow_id))
    attempts = select(attempt.c.uuid).where(attempt.c.run_uuid.in_(runs))
    connection.execute(delete(log_chunk).where(log_chunk.c.attempt_uuid.in_(attempts)))
    connection.execute(delete(claim).where(claim.c.attempt_uuid.in_(attempts)))
    for table in (task, event, attempt):
        connection.execute(delete(table).where(table.c.run_uuid.in_(runs)))
    connection.execute(delete(run).where(_mine(workflow_id)))


_IS_AT_WORK = exists().where(
    run.c.owner_workflow == version.c.workflow_id,
    run.c.version_id == version.c.version_id,
    run.c.status.in_([status.value for status in RunStatus if not status.is_terminal]),
)


class SqlTemplates:
    """Stores job templates by type and version."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def keep_template(self, template: JobTemplate, now: int) -> None:
        """Store a template, replacing the one of the same type and version."""
        about = template.definition
        changed = {"document": json.dumps(template.as_json()), "modified_at": now}
        values = {"job_type": about.job_type, "version": about.version, **changed}

        def keep(transaction: Transaction) -> None:
            statement = transaction.insert(job_template).values(values)
            key = [job_template.c.job_type, job_template.c.version]
            transaction.connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))

        self._transactions.write("keep_template", keep)

    def remove_templates(self, job_type: str, wanted: str | None) -> int:
        """Delete one version of a template, or all; return how many were deleted."""
        statement = delete(job_template).where(job_template.c.job_type == job_type)
        if wanted is not None:
            statement = statement.where(job_template.c.version == wanted)
        return self._transactions.write(
            "remove_templates", lambda transaction: transaction.connection.execute(statement).rowcount
        )

    def templates(self, job_type: str | None = None) -> list[JobTemplate]:
        """Return the templates of a type, or all, by type and version."""
        query = select(job_template.c.document)
        if job_type is not None:
            query = query.where(job_template.c.job_type == job_type)
        with self._transactions.read() as connection:
            found = [JobTemplate.model_validate(json.loads(text)) for text in connection.scalars(query)]
        return sorted(found, key=lambda template: (template.definition.job_type, template.definition.version))

    def versions_naming(self, word: str) -> list[VersionRecord]:
        """Return the versions, active or of unfinished instances, whose definitions contain a word as a whole text."""
        query = select(version).join(workflow, version.c.workflow_id == workflow.c.workflow_id)
        query = query.where(or_(version.c.version_id == workflow.c.active_version, _IS_AT_WORK))
        query = query.where(version.c.definition.contains(json.dumps(word), autoescape=True))
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(version.c.workflow_id, version.c.version_id))
            return [VERSION.from_row(row) for row in rows]
