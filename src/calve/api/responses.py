"""Responses: JSON documents, and streams, which end with the connection or the server."""

import json
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from calve.api.caller import WebCaller
from calve.api.problems import accepted, error_answer
from calve.api.streams import RECHECK
from calve.errors import StreamsExhausted, TooManyStreams


class Document(JSONResponse):
    """A JSON document; numbers that JSON does not have are written as text, as Java does."""

    def render(self, content: Any) -> bytes:
        """Return the text; half of a surrogate pair, which older versions accepted, is escaped as in JSON."""
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(_finite(content), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        case _:
            return value


class Stream(StreamingResponse):
    """A stream, which is counted while it is open."""

    def __init__(self, call: WebCaller, content: AsyncIterator[str], **more: Any) -> None:
        super().__init__(content, **more)
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, or refuse it if there are too many."""
        try:
            with self._call.services.streams.opened(self._call.name):
                await super().__call__(scope, receive, send)
        except (TooManyStreams, StreamsExhausted) as error:
            await error_answer(accepted(scope), error)(scope, receive, send)


class Watch:
    """Tells whether a stream continues: not if the server shuts down, nor if the caller has lost permission."""

    def __init__(self, call: WebCaller, clock: Callable[[], float] = time.monotonic) -> None:
        self._call = call
        self._clock = clock
        self._asked = clock()

    async def goes_on(self) -> bool:
        """Tell whether it continues; the caller's permission is checked periodically."""
        if self._call.is_ending:
            return False
        if self._clock() - self._asked < RECHECK:
            return True
        self._asked = self._clock()
        return await self._call.holds()

    async def news(self, since: int) -> None:
        """Wait until new events are found, but only a moment; ``since`` is the value of ``beats`` before the search."""
        services = self._call.services
        await services.streams.pulse.news(services.engine, services.ending, since)

    @property
    def beats(self) -> int:
        """How often new events have been found so far."""
        return self._call.services.streams.pulse.beats
