"""Answers that go on until their caller may hear no more, hangs up, or the server ends."""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from calve.api.callers import Caller
from calve.api.problems import accepted, error_answer
from calve.api.streams import RECHECK
from calve.errors import StreamsExhausted, TooManyStreams


class Stream(StreamingResponse):
    """An answer that goes on, and is counted as long as it does."""

    def __init__(self, call: Caller, content: AsyncIterator[str], **more: Any) -> None:
        super().__init__(content, **more)
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse to where there are too many already."""
        try:
            with self._call.services.streams.opened(self._call.name):
                await super().__call__(scope, receive, send)
        except (TooManyStreams, StreamsExhausted) as error:
            await error_answer(accepted(scope), error)(scope, receive, send)


class Watch:
    """Tells whether a stream goes on: not if the server ends, nor if the caller is no longer who he was."""

    def __init__(self, call: Caller, clock: Callable[[], float] = time.monotonic) -> None:
        self._call = call
        self._clock = clock
        self._asked = clock()

    async def goes_on(self) -> bool:
        """Tell whether it does; who the caller is, is asked now and then."""
        if self._call.is_ending:
            return False
        if self._clock() - self._asked < RECHECK:
            return True
        self._asked = self._clock()
        return await self._call.holds()

    async def news(self, since: int) -> None:
        """Wait for something new after so many beats, for a moment."""
        services = self._call.services
        await services.streams.pulse.news(services.engine, services.ending, since)

    @property
    def beats(self) -> int:
        """How often there was something new so far."""
        return self._call.services.streams.pulse.beats
