"""What steps have written."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated

import anyio
from fastapi import Header, Query
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call, Caller
from calve.api.identifiers import InstanceId, StepPath, WorkflowId, step_address
from calve.api.policy import Policy
from calve.api.routing import Routes
from calve.api.streaming import Stream, Watch
from calve.api.threads import in_thread
from calve.engine.addresses import find_attempt
from calve.engine.log_reader import MOST, PAGE, LogPage, LogReader
from calve.engine.model import Attempt
from calve.errors import RequestInvalid

routes = Routes("logs", is_slow=True)
_OFTEN = 0.5
_FOUND = 100
_MOST_FOUND = 1_000
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@routes.get(
    "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/logs",
    "get_logs",
    Policy(Permission.LOGS),
    shapes.LogPage | shapes.LogMatches,
    answers=_TEXT,
)
def get_logs(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31, description="An earlier attempt.")] = None,
    offset: Annotated[
        int | None, Query(ge=-(2**62), lt=2**62, description="The byte to begin at; below 0, from the end.")
    ] = None,
    limit: Annotated[int | None, Query(ge=1, le=MOST, description="How many bytes, or lines found, at most.")] = None,
    tail: Annotated[int | None, Query(ge=1, le=100_000, description="Only so many of the last lines.")] = None,
    find: Annotated[str | None, Query(min_length=1, max_length=1_000, description="Only lines with this text.")] = None,
    accept: Annotated[str, Header()] = "",
    *,
    ignore_case: Annotated[bool, Query(description="Find small and capital letters alike.")] = False,
    follow: Annotated[bool, Query(description="Go on until the attempt has ended.")] = False,
) -> Response:
    """Return what an attempt of a step has written, the newest if none is named.

    Without ``offset``, ``tail`` or ``find`` it is all that is kept, as text, with a line where some is left out. With
    ``offset`` or ``tail`` it is a part: the headers ``X-Log-Offset``, ``X-Log-Next-Offset``, ``X-Log-Size`` and
    ``X-Log-Left-Out`` say which one, or with ``Accept: application/json`` the keys of an object do. ``find`` gives the
    lines that hold a text, with their offsets and numbers, and ``next_offset`` if there is more to look through.
    """
    address = step_address(workflow_id, instance_id, step_id)
    call.require_inside(Permission.LOGS, address)
    _, found = find_attempt(call.engine.state, address, attempt)
    if (tail is not None) + (find is not None) + (offset is not None and find is None) > 1 or (find and follow):
        raise RequestInvalid("Give one of offset, tail and find; and follow with offset or tail only.")
    reader = call.engine.log_reader(found.uuid)
    if find is not None:
        most = min(limit or _FOUND, _MOST_FOUND)
        return Document(asdict(reader.find(find, ignore_case=ignore_case, offset=max(0, offset or 0), limit=most)))
    if follow:
        start = reader.tail(tail).offset if tail else reader.place(offset or 0)
        return Stream(call, _followed(call, found, start), media_type="text/plain")
    if tail is not None:
        return _page(reader.tail(tail), accept)
    if offset is not None or limit is not None:
        return _page(reader.page(offset or 0, limit or PAGE), accept)
    return _whole(reader)


def _page(page: LogPage, accept: str) -> Response:
    if "application/json" in accept:
        return Document(asdict(page))
    about = {"Offset": page.offset, "Next-Offset": page.next_offset, "Size": page.size, "Left-Out": page.left_out}
    return PlainTextResponse(page.text, headers={f"X-Log-{name}": str(value) for name, value in about.items()})


def _whole(reader: LogReader) -> Response:
    """Return the whole log; if it is very long, a part at a time."""
    pages = (page.shown() for page in reader.pages())
    if reader.kept <= 2 * MOST:
        return PlainTextResponse("".join(pages))
    return StreamingResponse(pages, media_type="text/plain")


async def _followed(call: Caller, attempt: Attempt, offset: int) -> AsyncIterator[str]:
    """Yield an attempt's log as it comes, until the attempt ends, or the server, or the caller's right to hear it."""
    watch = Watch(call)
    while True:
        now = await in_thread(call.engine.state.attempt, attempt.uuid)
        reader = await in_thread(call.engine.log_reader, attempt.uuid)
        while not (page := await in_thread(reader.page, offset)).is_last or page.text:
            offset = page.next_offset
            yield page.shown()
        if now is None or now.status.is_terminal or not await watch.goes_on():
            return
        await anyio.sleep(_OFTEN)
