"""Processes that do the same work side by side: one that dies is started again, and all end together."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_LOG = logging.getLogger(__name__)
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""For how many seconds the place of a process stays empty that has died once, twice …; the last goes on."""
STEADY = 60.0
"""A process that has lived for so many seconds did not die of what killed those before it."""
END_SECONDS = 7.0
"""How long processes may take to end before they are killed."""


class Member(Protocol):
    """A process, as ``multiprocessing`` has it."""

    @property
    def pid(self) -> int | None:
        """Its number."""

    @property
    def exitcode(self) -> int | None:
        """How it ended; None as long as it lives."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""


@dataclass(slots=True)
class Place:
    """What is known of one of the processes."""

    member: Member
    began: float
    deaths: int = 0
    """How many have died here shortly after they were started, one after the other."""
    due: float | None = None
    """When the next one is started, if this one is dead."""


class Crew:
    """Some processes, and whoever takes the place of those that die."""

    def __init__(self, number: int, start: Callable[[], Member], clock: Callable[[], float] = time.monotonic) -> None:
        self._start, self._clock = start, clock
        self._places: list[Place] = []
        try:
            for _ in range(number):
                self._places.append(Place(start(), clock()))
        except BaseException:
            self.kill()
            raise

    @property
    def members(self) -> list[Member]:
        """The processes, dead or alive."""
        return [place.member for place in self._places]

    def look(self) -> None:
        """Start processes for those that have died, each after a pause that grows from death to death."""
        now = self._clock()
        for place in self._places:
            if place.due is not None:
                if now >= place.due:
                    place.member, place.began, place.due = self._start(), now, None
            elif place.member.exitcode is not None:
                place.deaths = 1 if now - place.began >= STEADY else place.deaths + 1
                pause = PAUSES[min(place.deaths, len(PAUSES)) - 1]
                place.due = now + pause
                died = "Process %s of the server has ended (%s); another one is started in %g s."
                _LOG.warning(died, place.member.pid, place.member.exitcode, pause)

    def end(self) -> None:
        """Ask all of them to end, and wait for it; kill those that do not."""
        until = self._clock() + END_SECONDS
        for member in self.members:
            member.terminate()
        for member in self.members:
            member.join(max(0.0, until - self._clock()))
        self.kill()

    def kill(self) -> None:
        """End those that still live, at once."""
        for member in self.members:
            member.kill()
