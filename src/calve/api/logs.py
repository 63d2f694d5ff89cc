"""The logs of steps: as text, in parts, and as streams."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

import anyio
from fastapi import Header
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from calve.api.caller import WebCaller
from calve.api.responses import Document, Stream, Watch
from calve.api.routes import Special
from calve.api.threads import in_thread
from calve.engine import MOST, PAGE, Attempt, LogPage, LogReader
from calve.operations import check_log_part, matches_json, reader_of, step_address

_OFTEN = 0.5
_JSON = "application/json"
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


def get_logs(
    call: WebCaller,
    workflow_id: str,
    instance_id: int,
    step_id: str,
    attempt: int | None,
    run: int | None,
    *,
    follow: bool,
    accept: Annotated[str, Header()] = "",
    **part: Any,
) -> Response:
    """Return a log as text, or a part of it; see ``calve.operations.Operations.get_logs``."""
    offset, limit, tail, find = part["offset"], part["limit"], part["tail"], part["find"]
    found, reader = reader_of(call, step_address(workflow_id, instance_id, step_id, run), attempt)
    check_log_part(offset=offset, tail=tail, find=find, follow=follow)
    if find is not None:
        return Document(matches_json(reader, find, offset, limit, ignore_case=part["ignore_case"]))
    if follow:
        start = reader.tail(tail).offset if tail else reader.place(offset or 0)
        return Stream(call, _followed(call, found, start), media_type="text/plain")
    if tail is not None:
        return _page(reader.tail(tail), accept)
    if offset is not None or limit is not None or _JSON in accept:
        return _page(reader.page(offset or 0, limit or PAGE), accept)
    return _whole(reader)


SPECIAL = Special(get_logs, answers=_TEXT)


def _page(page: LogPage, accept: str) -> Response:
    if _JSON in accept:
        return Document(asdict(page))
    about = {"Offset": page.offset, "Next-Offset": page.next_offset, "Size": page.size, "Left-Out": page.left_out}
    return PlainTextResponse(page.text, headers={f"X-Log-{name}": str(value) for name, value in about.items()})


def _whole(reader: LogReader) -> Response:
    """Return the whole log; if it is very long, a part at a time."""
    pages = (page.shown() for page in reader.pages())
    if reader.kept <= 2 * MOST:
        return PlainTextResponse("".join(pages))
    return StreamingResponse(pages, media_type="text/plain")


async def _followed(call: WebCaller, attempt: Attempt, offset: int) -> AsyncIterator[str]:
    """Yield an attempt's log as it is written, until the attempt or the server ends, or the caller loses permission."""
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
