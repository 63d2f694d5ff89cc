"""Events: as a page, or as a stream of server-sent events that a client can continue."""

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from calve.api.caller import WebCaller
from calve.api.responses import Document, Stream, Watch
from calve.api.routes import Special
from calve.api.threads import in_thread
from calve.engine import Event
from calve.operations import ChosenEvents, Page, event_json, event_number, page_of_events

_ALIVE = 10.0
_STREAM = {
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'id: 17\nevent: STEP_INSTANCE_STATUS_CHANGE\ndata: {"seq":17,"workflow_id":"demo"}\n\n',
        }
    }
}


def get_events(
    call: WebCaller,
    page: Page,
    workflow_id: str | None,
    instance_id: int | None,
    after: int | None,
    kind: list[str] | None,
    step: str | None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """Return events; see ``calve.operations.Operations.get_events``."""
    chosen = ChosenEvents(call, workflow_id, instance_id, kind or (), step)
    start = event_number(last_event_id or page.forward().cursor, after)
    if "text/event-stream" not in accept:
        return Document(page_of_events(chosen, start or 0, page))
    if start is None:
        start = 0 if chosen.root is not None else call.engine.state.last_event()
    return Stream(
        call,
        _streamed(call, chosen, start),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


SPECIAL = Special(get_events, answers=_STREAM)


async def _streamed(
    call: WebCaller, chosen: ChosenEvents, after: int, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[str]:
    said, watch = clock(), Watch(call)
    yield "retry: 1000\n\n"
    while await watch.goes_on():
        beats = watch.beats
        events, last = await in_thread(chosen.page, after)
        if events:
            said = clock()
            yield "".join(_written(event) for event in events)
        elif clock() - said > _ALIVE:
            said = clock()
            yield ": alive\n\n"
        if last == after:
            await watch.news(beats)
        after = last


def _written(event: Event) -> str:
    data = json.dumps(event_json(event), separators=(",", ":"))
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {data}\n\n"
