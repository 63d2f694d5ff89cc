"""Streams of what changes on a page: server-sent events that hold its regions, as htmx puts them into it.

A message has the number of the last event that it takes into account, so that a browser that comes back with
``Last-Event-ID`` misses nothing. Regions that look the same as before are left out.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from calve.api import Stream, Watch, WebCaller, in_thread
from calve.errors import CalveError
from calve.operations import ChosenEvents

OFTEN = 0.25
"""Seconds between two messages, at least: what happens meanwhile is in the next one."""
_ALIVE = 10.0
Thread = Callable[..., Awaitable[Any]]
"""Does work in a thread: ``calve.api.in_thread`` or ``in_slow_thread``."""
Regions = Callable[[], dict[str, str]]
"""Gives the HTML of each region by its id."""


def stream(
    call: WebCaller,
    chosen: tuple[str | None, int | None],
    after: int,
    regions: Regions,
    every: float = OFTEN,
    thread: Thread = in_thread,
) -> Stream:
    """Return a stream of the regions of a page.

    Args:
        call: who sees the page.
        chosen: the workflow and the instance whose events matter; None stands for all.
        after: the number of the last event that the page takes into account.
        regions: renders the regions.
        every: how many seconds pass between two messages, at least.
        thread: where they are rendered.
    """
    messages = _messages(call, ChosenEvents(call, *chosen), after, regions, every, thread)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(call, messages, media_type="text/event-stream", headers=headers)


async def _messages(
    call: WebCaller,
    chosen: ChosenEvents,
    after: int,
    regions: Regions,
    every: float,
    thread: Thread,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[str]:
    watch, said, shown = Watch(call), clock(), dict[str, str]()
    yield "retry: 1000\n\n"
    while await watch.goes_on():
        beats = watch.beats
        is_new, after = await in_thread(_caught_up, chosen, after)
        if is_new:
            try:
                made: dict[str, str] = await thread(regions)
            except CalveError:  # what the page shows was deleted, or the caller has lost permission
                return
            yield _message(after, {name: html for name, html in made.items() if shown.get(name) != html})
            said, shown = clock(), made
            await asyncio.sleep(every)
            continue
        if clock() - said > _ALIVE:
            said = clock()
            yield ": alive\n\n"
        await watch.news(beats)


def _caught_up(chosen: ChosenEvents, after: int) -> tuple[bool, int]:
    """Tell whether anything happened after an event, and return the number of the last one."""
    is_new = False
    while True:
        events, last = chosen.page(after)
        is_new = is_new or bool(events)
        if last == after:
            return is_new, after
        after = last


def _message(number: int, regions: Mapping[str, str]) -> str:
    text = "\n".join(_partial(name, html) for name, html in regions.items())
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"id: {number}\n{lines}\n"


def _partial(name: str, html: str) -> str:
    return f'<hx-partial hx-target="#{name}" hx-swap="innerMorph">\n{html}\n</hx-partial>'
