"""The engine's records as rows, and back."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row

from calve.engine import (
    RUN_EVENT,
    STEP_EVENT,
    Attempt,
    Breakpoint,
    Event,
    LogChunk,
    NewTask,
    Pending,
    Run,
    Signal,
    SignalUse,
    Task,
    VersionRecord,
    WorkerRecord,
    WorkflowRecord,
)
from calve.store.codec import NOT_STORED, Codec, Form, dumped, plain
from calve.store.database import Transaction
from calve.store.engine.params import read_params, write_params
from calve.store.tables import (
    attempt,
    breakpoint_,
    event,
    log_chunk,
    run,
    signal,
    signal_use,
    task,
    trigger,
    version,
    worker,
    workflow,
)
from calve.triggers import Trigger

_KIND_CODES = {RUN_EVENT: "R", STEP_EVENT: "S"}
_KINDS = {code: kind for kind, code in _KIND_CODES.items()}
"""There are very many events: their kinds and statuses are stored as letters."""
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
"""The times of an attempt in the order of their positions in rows: append new ones at the end."""
_MOMENT_SET = frozenset(_MOMENTS)
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _write_times(times: Mapping[str, int]) -> str:
    """Return times as the first of them, and the difference of each to it, in the order of ``_MOMENTS``."""
    if not times or not times.keys() <= _MOMENT_SET:
        return dumped(times)
    first = min(times.values())
    return _encode([first, *(times[name] - first if name in times else None for name in _MOMENTS)])


def times_of(text: str) -> dict[str, int]:
    """Return the times of an attempt from its row."""
    kept = json.loads(text)
    if isinstance(kept, dict):
        return kept
    first, *spans = kept
    return {name: first + span for name, span in zip(_MOMENTS, spans, strict=False) if span is not None}


_MESSAGE = Form(write=plain)
_STATUS = Form(write=lambda status: _STATUS_CODES.get(status, str(status)), read=lambda code: _STATUSES.get(code, code))

RUN = Codec(
    Run,
    run,
    {
        "message": _MESSAGE,
        "parent.run_uuid": Form("parent_run"),
        "parent.step_id": Form("parent_step"),
        "parent.attempt_uuid": Form("parent_attempt"),
    },
    given=["params"],
)
RUN_CHANGES = RUN.update(
    "status",
    "run_status",
    "priority",
    "params",
    "carried",
    "is_queued",
    "is_latest",
    "is_blocking",
    "action",
    "message",
    "timeline",
    "started_at",
    "ended_at",
    "timeout_at",
)
"""The fields that change during a run; ``seq`` detects changes."""
ATTEMPT = Codec(Attempt, attempt, {"times": Form(write=_write_times, read=times_of)}, given=["params"])
ATTEMPT_CHANGES = ATTEMPT.update(
    "status",
    "is_superseded",
    "params",
    "artifacts",
    "edges",
    "retries",
    "times",
    "timeline",
    "dependencies",
    "tags",
    "action",
    "due_at",
    "timeout_at",
    "worker",
    "ended_at",
)
"""The fields that change during an attempt."""
TASK = Codec(Task, task)
NEW_TASK = Codec(NewTask, task)
WORKER = Codec(WorkerRecord, worker)
WORKFLOW = Codec(WorkflowRecord, workflow)
VERSION = Codec(VersionRecord, version)
BREAKPOINT = Codec(Breakpoint, breakpoint_)
EVENT = Codec(
    Event,
    event,
    {
        "kind": Form(write=lambda kind: _KIND_CODES.get(kind, kind), read=lambda code: _KINDS.get(code, code)),
        "before": _STATUS,
        "after": _STATUS,
    },
)
LOG_CHUNK = Codec(LogChunk, log_chunk, {"text": _MESSAGE, "dropped": NOT_STORED})
SIGNAL = Codec(Signal, signal)
SIGNAL_USE = Codec(SignalUse, signal_use)
TRIGGER = Codec(Trigger, trigger)


def pending_text(pending: Pending) -> str:
    """Return a requested action as stored in the rows of runs and attempts."""
    text: str = RUN.written("action", pending)
    return text


def run_row(each: Run, transaction: Transaction) -> dict[str, Any]:
    """Return a new run as a row."""
    return RUN.to_row(each, params=write_params(transaction, each.params, each.uuid))


def run_of(row: Row[Any], connection: Connection) -> Run:
    """Read a row of ``run``."""
    return RUN.from_row(row, params=read_params(connection, row.params, row.uuid))


def attempt_row(each: Attempt, transaction: Transaction) -> dict[str, Any]:
    """Return a new attempt as a row; ``root_uuid`` is empty if its run is the root."""
    root = "" if each.root_uuid == each.run_uuid else each.root_uuid
    return ATTEMPT.to_row(each, params=write_params(transaction, each.params, each.uuid), root_uuid=root)


def attempt_of(row: Row[Any], connection: Connection) -> Attempt:
    """Read a row of ``attempt``."""
    root = row.root_uuid or row.run_uuid
    return ATTEMPT.from_row(row, params=read_params(connection, row.params, row.uuid), root_uuid=root)
