"""The engine's values as rows, and back."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row

from calve.definition.params import InitiatorType
from calve.engine.actions import Action
from calve.engine.model import (
    RUN_EVENT,
    STEP_EVENT,
    Attempt,
    Event,
    Initiator,
    Parent,
    Pending,
    Restart,
    Run,
    RunPolicy,
    Task,
    TaskKind,
    VersionRecord,
    WorkerRecord,
    WorkflowRecord,
)
from calve.engine.statuses import RunStatus, StepStatus
from calve.store.param_sets import read_params

Values = dict[str, Any]

_encode = json.JSONEncoder(separators=(",", ":")).encode
_NOTHING = "{}"
_NONE_OF_IT = "[]"
_SHORT_KINDS = {RUN_EVENT: "R", STEP_EVENT: "S"}
_KINDS = {short: kind for kind, short in _SHORT_KINDS.items()}
"""There are very many events; older rows have their kinds and statuses in full."""
_STATUS_CODES = {
    "CREATED": "A",
    "IN_PROGRESS": "B",
    "PAUSED": "C",
    "SUCCEEDED": "D",
    "FAILED": "E",
    "STOPPED": "F",
    "TIMED_OUT": "G",
    "NOT_CREATED": "H",
    "INITIALIZED": "I",
    "WAITING_FOR_SIGNALS": "J",
    "EVALUATING_PARAMS": "K",
    "WAITING_FOR_PERMITS": "L",
    "STARTING": "M",
    "RUNNING": "N",
    "FINISHING": "O",
    "DISABLED": "P",
    "UNSATISFIED": "Q",
    "SKIPPED": "R",
    "COMPLETED_WITH_ERROR": "S",
    "USER_FAILED": "T",
    "PLATFORM_FAILED": "U",
    "TIMEOUT_FAILED": "V",
    "FATALLY_FAILED": "W",
    "INTERNALLY_FAILED": "X",
}
_STATUSES = {code: status for status, code in _STATUS_CODES.items()}
_MOMENTS = (
    "create",
    "initialize",
    "pause",
    "wait_signal",
    "evaluate_param",
    "wait_permit",
    "start",
    "execute",
    "finish",
    "end",
)
"""Of an attempt, as rows number them: a new one comes last."""
_MOMENT_SET = frozenset(_MOMENTS)


def dumped(value: Mapping[str, Any]) -> str:
    """Return an object as JSON text; what PostgreSQL cannot hold, such as a NUL, is escaped in it."""
    return _encode(value) if value else _NOTHING


def loaded(text: str) -> dict[str, Any]:
    """Read what ``dumped`` wrote."""
    return {} if text == _NOTHING else json.loads(text)


def dumped_list(values: tuple[Any, ...]) -> str:
    """Return a list as JSON text."""
    return _encode(values) if values else _NONE_OF_IT


def loaded_list(text: str) -> tuple[Any, ...]:
    """Read what ``dumped_list`` wrote."""
    return () if text == _NONE_OF_IT else tuple(json.loads(text))


def plain(text: str) -> str:
    """Return a text that every database can hold: programs print anything."""
    if text.isprintable():
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def pending_text(pending: Pending | None) -> str | None:
    """Return an action that is asked for, as JSON text."""
    if pending is None:
        return None
    return _encode(
        {
            "action": pending.action,
            "by": pending.by,
            "at": pending.at,
            "reason": pending.reason,
            "is_upstream": pending.is_upstream,
            "params": pending.params,
        }
    )


def _pending_of(text: str | None) -> Pending | None:
    if text is None:
        return None
    raw = json.loads(text)
    return Pending(**{**raw, "action": Action(raw["action"])})


def run_changes(run: Run, params: str) -> Values:
    """Return the columns of a run that change while it lives; its params come as they are kept."""
    return {
        "uuid": run.uuid,
        "status": run.status.value,
        "run_status": run.run_status.value,
        "priority": run.priority,
        "params": params,
        "carried": dumped(run.carried),
        "is_queued": run.is_queued,
        "is_latest": run.is_latest,
        "is_blocking": run.is_blocking,
        "action": pending_text(run.action),
        "message": plain(run.message),
        "timeline": dumped_list(run.timeline),
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "timeout_at": run.timeout_at,
        "seq": run.seq,
    }


def run_row(run: Run, params: str) -> Values:
    """Return a whole run as a row."""
    parent = run.parent
    return run_changes(run, params) | {
        "workflow_id": run.workflow_id,
        "instance_id": run.instance_id,
        "run_id": run.run_id,
        "version_id": run.version_id,
        "owner_workflow": run.owner_workflow,
        "root_uuid": run.root_uuid,
        "initiator": _initiator_text(run.initiator),
        "policy": run.policy.value,
        "parent_run": parent and parent.run_uuid,
        "parent_step": parent and parent.step_id,
        "parent_attempt": parent and parent.attempt_uuid,
        "inline_step": run.inline_step,
        "depth": run.depth,
        "properties": dumped(run.properties),
        "run_params": dumped(run.run_params),
        "restart": _restart_text(run.restart),
        "request_id": run.request_id,
        "tags": dumped_list(run.tags),
        "created_at": run.created_at,
    }


def _initiator_text(initiator: Initiator) -> str:
    return _encode(
        {
            "type": initiator.type,
            **({} if initiator.user is None else {"user": initiator.user}),
            **({} if initiator.timezone is None else {"timezone": initiator.timezone}),
            **({"trigger": initiator.trigger} if initiator.trigger else {}),
            **({} if initiator.within is None else {"within": initiator.within}),
        }
    )


def _initiator_of(text: str) -> Initiator:
    raw = json.loads(text)
    within = raw.pop("within", None)
    return Initiator(**{**raw, "type": InitiatorType(raw["type"])}, within=None if within is None else tuple(within))


def _restart_text(restart: Restart) -> str:
    if restart == Restart():
        return _NOTHING
    return _encode(
        {
            "step_path": restart.step_path,
            "iterations": restart.iterations,
            "step_params": restart.step_params,
            "skip": restart.skip,
            "replaced": restart.replaced,
            "is_latest": restart.is_latest,
            "keep": restart.keep,
        }
    )


def _restart_of(text: str) -> Restart:
    raw = loaded(text)
    if not raw:
        return Restart()
    paths = (tuple(raw["step_path"]), tuple(raw["iterations"]))
    latest = (raw.get("is_latest", False), tuple(raw.get("keep", ())))  # earlier versions knew neither
    return Restart(*paths, raw["step_params"], tuple(raw["skip"]), raw["replaced"], *latest)


def run_of(row: Row[Any], connection: Connection) -> Run:
    """Read a row of ``run``."""
    return Run(
        uuid=row.uuid,
        workflow_id=row.workflow_id,
        instance_id=row.instance_id,
        run_id=row.run_id,
        version_id=row.version_id,
        owner_workflow=row.owner_workflow,
        root_uuid=row.root_uuid,
        status=RunStatus(row.status),
        run_status=RunStatus(row.run_status),
        initiator=_initiator_of(row.initiator),
        policy=RunPolicy(row.policy),
        parent=None if row.parent_run is None else Parent(row.parent_run, row.parent_step, row.parent_attempt),
        inline_step=row.inline_step,
        depth=row.depth,
        priority=row.priority,
        properties=loaded(row.properties),
        run_params=loaded(row.run_params),
        params=read_params(connection, row.params, row.uuid),
        restart=_restart_of(row.restart),
        carried=loaded(row.carried),
        request_id=row.request_id,
        tags=loaded_list(row.tags),
        is_queued=bool(row.is_queued),
        is_latest=bool(row.is_latest),
        is_blocking=bool(row.is_blocking),
        action=_pending_of(row.action),
        message=row.message,
        timeline=loaded_list(row.timeline),
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        timeout_at=row.timeout_at,
        seq=row.seq,
    )


def _times_text(times: Mapping[str, int]) -> str:
    """Return times as the first of them and, in the order of moments, how much later each came."""
    if not times or not times.keys() <= _MOMENT_SET:
        return dumped(times)
    first = min(times.values())
    return _encode([first, *(times[name] - first if name in times else None for name in _MOMENTS)])


def times_of(text: str) -> dict[str, int]:
    """Return the times of an attempt that a row keeps."""
    kept = json.loads(text)
    if isinstance(kept, dict):
        return kept
    first, *spans = kept
    return {name: first + span for name, span in zip(_MOMENTS, spans, strict=False) if span is not None}


def attempt_changes(attempt: Attempt, params: str) -> Values:
    """Return the columns of an attempt that change while it lives; its params come as they are kept."""
    return {
        "uuid": attempt.uuid,
        "status": attempt.status.value,
        "is_superseded": attempt.is_superseded,
        "params": params,
        "artifacts": dumped(attempt.artifacts),
        "edges": dumped(attempt.edges),
        "retries": dumped(attempt.retries),
        "times": _times_text(attempt.times),
        "timeline": dumped_list(attempt.timeline),
        "dependencies": dumped_list(attempt.dependencies),
        "tags": dumped_list(attempt.tags),
        "action": pending_text(attempt.action),
        "due_at": attempt.due_at,
        "timeout_at": attempt.timeout_at,
        "worker": attempt.worker,
        "ended_at": attempt.ended_at,
    }


def attempt_row(attempt: Attempt, params: str) -> Values:
    """Return a whole attempt as a row."""
    return attempt_changes(attempt, params) | {
        "run_uuid": attempt.run_uuid,
        "root_uuid": "" if attempt.root_uuid == attempt.run_uuid else attempt.root_uuid,
        "step_id": attempt.step_id,
        "step_instance_id": attempt.step_instance_id,
        "attempt_id": attempt.attempt_id,
        "type": attempt.type,
        "is_leaf": attempt.is_leaf,
    }


def attempt_of(row: Row[Any], connection: Connection) -> Attempt:
    """Read a row of ``attempt``."""
    return Attempt(
        uuid=row.uuid,
        run_uuid=row.run_uuid,
        root_uuid=row.root_uuid or row.run_uuid,
        step_id=row.step_id,
        step_instance_id=row.step_instance_id,
        attempt_id=row.attempt_id,
        type=row.type,
        status=StepStatus(row.status),
        is_leaf=bool(row.is_leaf),
        is_superseded=bool(row.is_superseded),
        params=read_params(connection, row.params, row.uuid),
        artifacts=loaded(row.artifacts),
        edges=loaded(row.edges),
        retries=loaded(row.retries),
        times=times_of(row.times),
        timeline=loaded_list(row.timeline),
        dependencies=loaded_list(row.dependencies),
        tags=loaded_list(row.tags),
        action=_pending_of(row.action),
        due_at=row.due_at,
        timeout_at=row.timeout_at,
        worker=row.worker,
        ended_at=row.ended_at,
    )


def task_of(row: Row[Any]) -> Task:
    """Read a row of ``task`` that has an owner."""
    return Task(
        kind=TaskKind(row.kind),
        key=row.key,
        run_uuid=row.run_uuid,
        attempt_uuid=row.attempt_uuid,
        owner=row.owner,
        generation=row.generation,
        wakes=row.wakes,
        tries=row.tries,
    )


def worker_of(row: Row[Any]) -> WorkerRecord:
    """Read a row of ``worker``."""
    return WorkerRecord(
        uuid=row.uuid,
        host=row.host,
        pid=row.pid,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        slots=row.slots,
        is_draining=bool(row.is_draining),
    )


def workflow_of(row: Row[Any]) -> WorkflowRecord:
    """Read a row of ``workflow``."""
    return WorkflowRecord(
        workflow_id=row.workflow_id,
        active_version=row.active_version,
        latest_version=row.latest_version,
        properties=loaded(row.properties),
        created_at=row.created_at,
        modified_at=row.modified_at,
        activated_at=row.activated_at,
    )


def version_of(row: Row[Any]) -> VersionRecord:
    """Read a row of ``version``."""
    return VersionRecord(
        workflow_id=row.workflow_id,
        version_id=row.version_id,
        definition=loaded(row.definition),
        author=row.author,
        created_at=row.created_at,
    )


def event_row(event: Event, root_uuid: str) -> Values:
    """Return an event as a row; only an event of an inner run names its root."""
    return {
        "kind": _SHORT_KINDS.get(event.kind, event.kind),
        "run_uuid": event.run_uuid,
        "root_uuid": "" if root_uuid == event.run_uuid else root_uuid,
        "workflow_id": event.workflow_id,
        "instance_id": event.instance_id,
        "run_id": event.run_id,
        "at": event.at,
        "step_id": event.step_id,
        "attempt_id": event.attempt_id,
        "before": event.before and _STATUS_CODES.get(str(event.before), str(event.before)),
        "after": event.after and _STATUS_CODES.get(str(event.after), str(event.after)),
        "detail": dumped(event.detail),
    }


def event_of(row: Row[Any]) -> Event:
    """Read a row of ``event``."""
    return Event(
        kind=_KINDS.get(row.kind, row.kind),
        run_uuid=row.run_uuid,
        workflow_id=row.workflow_id,
        instance_id=row.instance_id,
        run_id=row.run_id,
        at=row.at,
        step_id=row.step_id,
        attempt_id=row.attempt_id,
        before=row.before and _STATUSES.get(row.before, row.before),
        after=row.after and _STATUSES.get(row.after, row.after),
        detail=loaded(row.detail),
        seq=row.seq,
    )
