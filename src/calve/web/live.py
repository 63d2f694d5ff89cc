"""Streams that keep pages up to date: server-sent events with the regions of a page, which htmx swaps in.

The id of a message is the number of the last event that it takes into account, so that a browser that reconnects with
``Last-Event-ID`` misses nothing. Regions that have not changed are left out.

Some changes come without an event: workers and schedulers fall silent, triggers become late, signals stay unanswered.
Therefore the regions are also rendered every ten seconds, and when a browser reconnects.
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
"""Minimum number of seconds between two messages; changes in between are part of the next message."""
SELDOM = 10.0
"""The same, for pages that read more than the state database."""
_NAP = 0.5
"""Maximum number of seconds that a stream sleeps between two checks for the shutdown of the server."""
ANYWAY = 10.0
"""Seconds after which regions are rendered even without an event; the message also keeps the connection open."""
_WORDS = re.compile(r"(<time [^>]*>)[^<]*")
"""The text of ``<time>``, such as "2 min ago". The browser updates it, so a difference in it alone is not sent."""
Thread = Callable[..., Awaitable[Any]]
"""Runs a function in a thread: ``calve.api.in_thread`` or ``in_slow_thread``."""
Regions = Callable[[], dict[str, str]]
"""Renders the regions of a page: HTML by id."""


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
        call: the caller who sees the page.
        chosen: the workflow and the instance whose events update the page; None stands for all.
        after: the number of the last event that the page takes into account.
        regions: renders the regions.
        every: the minimum number of seconds between two messages.
        thread: runs ``regions``.
        is_due: whether to render the regions at once, because the page may be outdated or incomplete.
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
        except CalveError:  # the page's subject was deleted, or the caller may no longer see it
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
