"""Many streams, one look for news."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from calve.api import streams
from calve.api.streams import Pulse, Streams
from calve.engine import Event
from calve.errors import StoreUnavailable, StreamsExhausted, TooManyStreams

if TYPE_CHECKING:
    from calve.engine import Engine


@dataclass
class EventSource:
    """Events that a test lets happen; the engine, and its state."""

    newest: int = 0
    looks: int = 0
    is_away: bool = False
    asked: list[int] = field(default_factory=list)

    @property
    def state(self) -> "EventSource":
        """Be the state too."""
        return self

    def last_event(self) -> int:
        """Return the number of the newest event."""
        self.looks += 1
        if self.is_away:
            raise StoreUnavailable
        return self.newest

    def events(self, *, after: int, limit: int) -> list[Event]:
        """Return the newest event, if it is asked for."""
        self.asked.append(after)
        return [Event("k", "r", "w", 1, 1, 0, seq=self.newest)][:limit]


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "OFTEN", 0.01)


def pulsed(happenings: EventSource, ending: threading.Event | None = None) -> Any:
    """Return a pulse, and what waits for its news."""
    pulse = Pulse()

    async def news(since: int) -> None:
        await pulse.news(cast("Engine", happenings), ending or threading.Event(), since)

    return pulse, news


def test_one_looks_for_all_and_all_are_reported() -> None:
    """Who comes when there was something new already does not wait."""
    happenings = EventSource()
    pulse, news = pulsed(happenings)

    async def play() -> None:
        await news(0)  # nobody has looked for a while: there may be something
        assert pulse.beats == 1
        happenings.newest = 7
        await asyncio.gather(*(news(1) for _ in range(50)))
        assert pulse.beats == 2
        await news(1)
        assert happenings.looks < 50

    asyncio.run(play())
    assert happenings.asked == [0]


def test_where_nothing_happens_a_stream_looks_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while; a database that is away is no news."""
    monkeypatch.setattr(streams, "PATIENCE", 0.1)
    happenings = EventSource(is_away=True)
    pulse, news = pulsed(happenings)

    async def play() -> None:
        await news(0)
        await news(1)
        assert pulse.beats == 1

    asyncio.run(play())
    assert happenings.looks > 0


def test_when_the_server_ends_nobody_waits() -> None:
    """All are told at once, and another loop begins anew."""
    ending = threading.Event()
    pulse, news = pulsed(EventSource(), ending)

    async def play() -> None:
        await news(pulse.beats)
        ending.set()
        await news(pulse.beats)

    asyncio.run(play())
    ending.clear()
    asyncio.run(play())
    assert pulse.beats >= 4


def test_so_many_streams_are_let_in() -> None:
    """Of one caller, and of all; who has left counts no more."""
    opened = Streams(2, 1).opened
    with opened("ann"):
        with pytest.raises(TooManyStreams), opened("ann"):
            pass
        with opened("bob"), pytest.raises(StreamsExhausted), opened("cyd"):
            pass
        with opened("cyd"):
            pass
    with opened("ann"):
        pass
