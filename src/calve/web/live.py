"""Streams of what changes on a page: server-sent events that hold its regions, as htmx puts them into it.

A message has the number of the last event that it takes into account, so that a browser that comes back with
``Last-Event-ID`` misses nothing. Regions that look the same as before are left out.

Not all that pages show follows from events: workers and schedulers fall silent, triggers become late, signals are not
answered. So the regions are also rendered every ten seconds, and when a browser comes back.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from calve.api import Stream, Watch, WebCaller, in_thread
from calve.errors import CalveError
from calve.operations import ChosenEvents

OFTEN = 0.25
"""Seconds between two messages, at least: what happens meanwhile is in the next one."""
SELDOM = 10.0
"""The same for pages that read more than the state database."""
_NAP = 0.5
"""Seconds after which a stream that rests sees whether the server ends."""
ANYWAY = 10.0
"""Seconds after which they are rendered without an event, too; the message keeps the connection open besides."""
_WORDS = re.compile(r"(<time [^>]*>)[^<]*")
"""Times in words, which ``<since-time>`` keeps current by itself."""
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
    *,
    is_due: bool = False,
) -> Stream:
    """Return a stream of the regions of a page.

    Args:
        call: who sees the page.
        chosen: the workflow and the instance whose events matter; None stands for all.
        after: the number of the last event that the page takes into account.
        regions: renders the regions.
        every: how many seconds pass between two messages, at least.
        thread: where they are rendered.
        is_due: whether what the page shows may be old, or not all of it.
    """
    first = 0.0 if is_due else ANYWAY
    messages = _messages(call, ChosenEvents(call, *chosen), after, regions, every, thread, first)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(call, messages, media_type="text/event-stream", headers=headers)


async def _messages(
    call: WebCaller,
    chosen: ChosenEvents,
    after: int,
    regions: Regions,
    every: float,
    thread: Thread,
    first: float,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[str]:
    watch, due, rested, shown = Watch(call), clock() + first, 0.0, dict[str, str]()
    yield f"id: {after}\nretry: 1000\n\n"
    while await watch.goes_on():
        if (rest := rested - clock()) > 0:
            await asyncio.sleep(min(rest, _NAP))
            continue
        beats = watch.beats
        is_new, after = await in_thread(chosen.news, after)
        if not is_new and clock() < due:
            await watch.news(beats)
            continue
        try:
            made: dict[str, str] = await thread(regions)
        except CalveError:  # what the page shows is no longer there, or no longer for this caller
            return
        looks = {name: _WORDS.sub(r"\1", html) for name, html in made.items()}
        yield _message(after, {name: html for name, html in made.items() if shown.get(name) != looks[name]})
        due, rested, shown = clock() + ANYWAY, clock() + every, looks


def _message(number: int, regions: Mapping[str, str]) -> str:
    text = "\n".join(_partial(name, html) for name, html in regions.items())
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"id: {number}\n{lines}\n"


def _partial(name: str, html: str) -> str:
    return f'<hx-partial hx-target="#{name}" hx-swap="innerMorph">\n{html}\n</hx-partial>'
