"""The event stream of a server, and waiting for the end of an instance."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx

from calve.client.server import TRIES, Server
from calve.errors import CalveError, ServerError
from calve.operations import OVER, PREFIX, Document, waited_too_long

_SILENCE = 30.0
"""Seconds without any data after which a stream is reopened."""
_LOOK = 5.0
"""Maximum number of seconds between two reads of an instance by ``wait``, even if no event arrives."""
_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an event stream."""

    id: str = ""
    event: str = ""
    data: str = ""


def messages(lines: Iterator[str]) -> Iterator[Message]:
    """Parse an event stream; a comment, which the server sends to keep the connection alive, is an empty message."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            found.setdefault(name, []).append(value.removeprefix(" "))
            if line.startswith(":"):
                yield Message()
        elif "data" in found:
            last = {name: values[-1] for name, values in found.items()}
            yield Message(last.get("id", ""), last.get("event", ""), "\n".join(found["data"]))
            found = {}
        else:
            found = {}


class EventStream:
    """The events of a server, in order; after a lost connection, it continues with the event after the last one."""

    def __init__(
        self, server: Server, *, after: int, pause: Callable[[float], None], **query: str | int | None
    ) -> None:
        self._server, self._last, self._pause, self._query = server, after, pause, query

    def __iter__(self) -> Iterator[Document]:
        """Yield events without end."""
        failed = 0
        while True:
            try:
                for event in self.read(_SILENCE):
                    failed = 0
                    if event is not None:
                        yield event
            except httpx.ReadTimeout:
                continue
            except httpx.TransportError as error:
                failed += 1
                if failed == TRIES:
                    raise self._server.unreachable(error) from error
            self._pause(_PAUSE * 2**failed)

    def read(self, silence: float) -> Iterator[Document | None]:
        """Yield events, and None for each keep-alive message, until the connection ends."""
        headers = {"Last-Event-ID": str(self._last)}
        with self._server.stream(
            f"{PREFIX}/events", accept="text/event-stream", headers=headers, silence=silence, query=self._query
        ) as answer:
            for message in messages(answer.iter_lines()):
                event = _parsed(message) if message.data else None
                if event is not None:
                    self._last = event["seq"]
                yield event


def wait(
    events: EventStream,
    look: Callable[[], Document],
    *,
    name: str,
    timeout: float | None,
    pause: Callable[[float], None],
) -> Document:
    """Read an instance until it has ended: when an event reports its end, and every few seconds in any case.

    Raises:
        WaitedTooLong: it has not ended in time.
    """
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        seen = look()
        if seen["status"] in OVER:
            return seen
        left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
        if left <= 0:
            raise waited_too_long(name, seen["status"], timeout)
        _doze(events, left, pause)


def _doze(events: EventStream, seconds: float, pause: Callable[[float], None]) -> None:
    """Return when an event reports an end, or after some seconds."""
    end = time.monotonic() + seconds
    try:
        for event in events.read(seconds):
            if (event is not None and _is_end(event)) or time.monotonic() >= end:
                return
    except httpx.ReadTimeout:
        return
    except (httpx.TransportError, CalveError):
        pass  # without events, the next read of the instance notices its end a little later
    pause(min(_PAUSE, seconds))


def _is_end(event: Document) -> bool:
    """Tell whether an event is the end of an instance, rather than of a step."""
    return event.get("step_id") is None and event.get("after") in OVER


def _parsed(message: Message) -> Document:
    try:
        event = json.loads(message.data)
        return {"seq": int(message.id), "type": message.event, **event}
    except (ValueError, TypeError):
        raise ServerError("The server sent an event that cannot be read.", data=message.data[:200]) from None
