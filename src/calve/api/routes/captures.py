"""Captures, checkpoints and lag: the capture side, without any workflow. ``Captures`` itself knows who may do what."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from fastapi.encoders import jsonable_encoder
from starlette.responses import Response

from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call, Caller
from calve.api.capture_bodies import CaptureRequest, CheckpointRequest, PlanRequest
from calve.api.identifiers import Word
from calve.api.paging import Page, Paged, page_json
from calve.api.policy import EDIT_SOMEWHERE, READ_SOMEWHERE, RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.capture import StoredCheckpoint, capture_json, checkpoint_json

routes = Routes("captures", is_slow=True)
Consumer = Annotated[str | None, Query(max_length=512, description="Only this consumer's.")]


@routes.get("/captures", "list_captures", READ_SOMEWHERE, shapes.Page)
def list_captures(call: Call, page: Paged, consumer: Consumer = None) -> Response:
    """List captures, newest first."""
    return _part(call.captures.captures(consumer), page, capture_json, lambda one: one.capture_id)


@routes.post("/captures/plan", "plan_capture", READ_SOMEWHERE)
def plan(call: Call, request: PlanRequest) -> Response:
    """Return what the next capture would contain; writes nothing."""
    return _encoded(call.captures.plan(request.tables, request.consumer, request.wanted()).as_json())


@routes.post("/captures", "capture", RUN_SOMEWHERE)
def capture(call: Call, request: CaptureRequest) -> Response:
    """Capture what changed since the consumer's last commit."""
    report = call.captures.capture(request.tables, request.consumer, request.wanted(), **request.options())
    return _encoded(report.as_json())


@routes.get("/captures/{capture_id}", "get_capture", READ_SOMEWHERE)
def get_capture(call: Call, capture_id: Word) -> Response:
    """Return one capture as it was reported."""
    return _encoded(call.captures.show(capture_id).as_json())


@routes.get("/captures/{capture_id}/files", "list_capture_files", READ_SOMEWHERE)
def list_files(
    call: Call,
    capture_id: Word,
    *,
    check: Annotated[bool, Query(description="Look whether every file is still there.")] = False,
) -> Response:
    """Return the files that a capture references, by table; none once they are cleaned up."""
    return _encoded(call.captures.files(capture_id, check=check))


@routes.post("/captures/{capture_id}/actions/commit", "commit_capture", RUN_SOMEWHERE)
def commit(call: Call, capture_id: Word) -> Response:
    """Move the checkpoints past a capture that has been processed; repeating it changes nothing."""
    return _encoded(call.captures.commit(capture_id).as_json())


@routes.post("/captures/{capture_id}/actions/abandon", "abandon_capture", RUN_SOMEWHERE)
def abandon(call: Call, capture_id: Word) -> Response:
    """Give a capture up: the next one starts from the same checkpoint."""
    return _encoded(call.captures.abandon(capture_id).as_json())


@routes.get("/checkpoints", "list_checkpoints", READ_SOMEWHERE, shapes.Page)
def checkpoints(call: Call, page: Paged, consumer: Consumer = None) -> Response:
    """List where consumers stand."""
    found = call.captures.checkpoints(consumer)
    return _part(found, page, lambda one: _checkpoint_json(call, one), lambda one: f"{one.consumer} {one.table}")


@routes.put("/checkpoints", "set_checkpoint", EDIT_SOMEWHERE)
def set_checkpoint(call: Call, request: CheckpointRequest) -> Response:
    """Move a consumer's checkpoint by hand."""
    stored = call.captures.set_checkpoint(request.table, request.consumer, request.to, request.reason)
    return _encoded(_checkpoint_json(call, stored))


@routes.delete("/checkpoints", "reset_checkpoint", EDIT_SOMEWHERE)
def reset_checkpoint(
    call: Call,
    table: Annotated[str, Query(min_length=1, max_length=512)],
    consumer: Annotated[str, Query(min_length=1, max_length=512)],
    reason: Annotated[str, Query(min_length=1, max_length=1_000)],
) -> Response:
    """Forget a consumer's checkpoint: its next capture is a first one."""
    call.captures.reset_checkpoint(table, consumer, reason)
    return Document({"consumer": consumer, "table": table, "reset": True})


@routes.get("/checkpoints/log", "list_checkpoint_moves", READ_SOMEWHERE, shapes.Page)
def checkpoint_log(call: Call, page: Paged, consumer: Consumer = None) -> Response:
    """List every move of a checkpoint, and why, newest first."""
    moves = call.captures.checkpoint_log(consumer)
    return _part(list(enumerate(moves))[::-1], page, lambda one: one[1], lambda one: str(one[0]))


@routes.get("/lag", "list_lag", READ_SOMEWHERE, shapes.Page)
def lag(call: Call, page: Paged, consumer: Consumer = None) -> Response:
    """List how far consumers are behind their tables, and how long their history is safe."""
    return _part(call.captures.lag(consumer), page, asdict, lambda one: f"{one.consumer} {one.table}")


def _part(found: Iterable[Any], page: Page, as_json: Any, cursor_of: Any) -> Response:
    """Return a page of a list that is there as a whole."""
    page, rest = page.forward(), list(found)
    if page.cursor is not None:
        places = [cursor_of(one) for one in rest]
        rest = rest[places.index(page.cursor) + 1 :] if page.cursor in places else []
    return _encoded(page_json(rest[: page.limit + 1], page, as_json, cursor_of))


def _encoded(document: Any) -> Response:
    return Document(jsonable_encoder(document))


def _checkpoint_json(call: Caller, stored: StoredCheckpoint) -> dict[str, Any]:
    return checkpoint_json(stored, call.captures.named([str(stored.table)])[0])
