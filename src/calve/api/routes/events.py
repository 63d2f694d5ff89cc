"""Events as a stream that can be gone on with (server-sent events)."""

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from calve.access import ROOT, Permission, allows
from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call, Caller
from calve.api.documents import event_json
from calve.api.paging import Page, Paged, look_through, page_json
from calve.api.policy import READ_SOMEWHERE
from calve.api.routing import Routes
from calve.api.streaming import Stream, Watch
from calve.api.threads import in_thread
from calve.engine import Address
from calve.engine.addresses import find_run
from calve.engine.model import Event
from calve.errors import RequestInvalid

routes = Routes("events", is_slow=True)  # much may have to be looked through
_ALIVE = 10.0
_PAGE = 500
_STREAM = {
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'id: 17\nevent: STEP_INSTANCE_STATUS_CHANGE\ndata: {"seq":17,"workflow_id":"demo"}\n\n',
        }
    }
}
_Seq = Annotated[int | None, Query(ge=0, lt=2**63, description="The number of the last event that is known.")]


@routes.get("/events", "get_events", READ_SOMEWHERE, shapes.Page, answers=_STREAM)
def get_events(
    call: Call,
    page: Paged,
    workflow_id: Annotated[str | None, Query(max_length=128)] = None,
    instance_id: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
    after: _Seq = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """Return what has happened, in order, each event with its number; as ``text/event-stream``, also what happens.

    ``Last-Event-ID`` (or ``after``) goes on where a stream was cut off. Without it a page, and the stream of an
    instance with all that belongs to it, begins with the first event; any other stream with what happens from now on.
    """
    chosen = Chosen(call, workflow_id, instance_id)
    start = _start(last_event_id or page.forward().cursor, after)
    if "text/event-stream" not in accept:
        return Document(_page(chosen, start or 0, page))
    if start is None:
        start = 0 if chosen.root is not None else call.engine.state.last_event()
    return Stream(
        call,
        _streamed(call, chosen, start),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _page(chosen: "Chosen", after: int, page: Page) -> dict[str, Any]:
    def look(cursor: str | None) -> tuple[list[Event], str | None]:
        place = int(cursor or 0)
        events, last = chosen.page(place)
        return events, None if last == place else str(last)

    found, onward = look_through(page, str(after), look)
    return page_json(found, page, event_json, lambda event: str(event.seq), onward)


def _start(last_event_id: str | None, after: int | None) -> int | None:
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) <= 18):
        raise RequestInvalid("Last-Event-ID, or a cursor, is the number of an event.")
    return int(last_event_id)


class Chosen:
    """The events that somebody wants and may see."""

    def __init__(self, call: Caller, workflow_id: str | None, instance_id: int | None) -> None:
        self._call = call
        self._workflow_id = workflow_id
        self._owners: dict[str, str] = {}
        self._sees_all = allows(call.principal, Permission.READ, ROOT)
        self.root: str | None = None
        if workflow_id is not None:
            call.require(Permission.READ, workflow_id)
        if instance_id is not None:
            if workflow_id is None:
                raise RequestInvalid("Which workflow's instance?", remedy="Give workflow_id too.")
            self.root = find_run(call.engine.state, Address(workflow_id, instance_id)).root_uuid

    def page(self, after: int) -> tuple[list[Event], int]:
        """Return the next events, and the number of the last one that was looked at."""
        state = self._call.engine.state
        found = state.events(after=after, root_uuid=self.root, limit=_PAGE)
        return [event for event in found if self._is_for(event)], found[-1].seq if found else after

    def _is_for(self, event: Event) -> bool:
        if self._workflow_id is None and self._sees_all:
            return True
        if self.root is not None and event.workflow_id == self._workflow_id:
            return True
        owner = self._owner(event)
        is_wanted = self.root is not None or self._workflow_id in {None, owner}
        return is_wanted and self._call.may(Permission.READ, owner)

    def _owner(self, event: Event) -> str:
        """Return the workflow that an event is about; iterations have names that say nothing."""
        if event.run_uuid not in self._owners:
            if len(self._owners) > 10_000:
                self._owners.clear()
            snapshot = self._call.engine.state.load(event.run_uuid)
            self._owners[event.run_uuid] = snapshot.run.owner_workflow if snapshot else event.workflow_id
        return self._owners[event.run_uuid]


async def _streamed(
    call: Caller, chosen: Chosen, after: int, clock: Callable[[], float] = time.monotonic
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
