"""Takes away what has been kept for long enough: a little at a time, so that nobody waits for it."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from calve.errors import CalveError, Conflict
from calve.failpoints import reach
from calve.retention.model import Ages, Key, Kind, goes
from calve.retention.ports import RetentionState

log = logging.getLogger(__name__)

NAME = "retention"
"""Under which the store knows when somebody pruned last."""
EVERY = 600_000
"""Milliseconds between two times that somebody begins to prune, whoever it is."""
BATCH = 200
"""How many rows one transaction takes away at most: SQLite lets nobody else write meanwhile."""
BATCHES = 20
"""How many of them one turn takes of a kind."""
BREATH = 0.05
"""Seconds between two transactions, in which others get their turn."""
PAUSE, LOOK = 5.0, 60.0
"""Seconds until the next turn: if more is left, and if nothing is."""


@dataclass(slots=True)
class Pruner:
    """Prunes a store; of several on one, one at a time begins."""

    state: RetentionState
    ages: Ages
    clock: Callable[[], int]
    followers: Sequence[str] = ()
    """Who still has to see events before they go."""
    _places: dict[Kind, Key] = field(default_factory=dict)
    """Where the next turn goes on, of kinds of which more is left."""

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop; a database that is away is borne."""
        while not stop.is_set():
            try:
                if self._places or self._is_time():
                    self.turn(stop)
            except Conflict:
                log.debug("another process was faster")
            except CalveError as error:
                log.warning("pruning waits: %s", error.message)
            except Exception:
                log.exception("pruning stumbled; it goes on")
            stop.wait(PAUSE if self._places else LOOK)

    def turn(self, stop: threading.Event | None = None) -> dict[Kind, int]:
        """Take away some of what may go; return how much of each kind."""
        stop = stop or threading.Event()
        return {kind: self._prune(kind, stop) for kind in Kind if kind in self.ages.used}

    def prune(self) -> dict[Kind, int]:
        """Take away all that may go; return how much of each kind."""
        gone = self.turn()
        while self._places:
            gone = {kind: gone[kind] + count for kind, count in self.turn().items()}
        return gone

    def survey(self) -> dict[Kind, int]:
        """Return how much of each kind may go."""
        now = self.clock()
        return {
            kind: sum(len(keys) for keys, _ in self._pages(kind, (), now)) for kind in Kind if kind in self.ages.used
        }

    def _is_time(self) -> bool:
        now = self.clock()
        last = self.state.position(NAME, 0)
        if now - last < EVERY:
            return False
        self.state.move(NAME, last, now)
        return True

    def _prune(self, kind: Kind, stop: threading.Event) -> int:
        now, count = self.clock(), 0
        pages = self._pages(kind, self._places.pop(kind, ()), now)
        for number, (keys, last) in enumerate(pages, start=1):
            if keys:
                count += self.state.forget(kind, keys, now)
                reach("retention.forgotten")
            if last is not None and (number == BATCHES or stop.wait(BREATH if keys else 0)):
                self._places[kind] = last
                break
        if count:
            log.info("%d of %s were kept for long enough", count, kind)
        return count

    def _pages(self, kind: Kind, after: Key, now: int) -> Iterator[tuple[list[Key], Key | None]]:
        """Yield what may go, some at a time, and from where to go on."""
        before = self.ages.before(kind, now)
        last: Key | None = after
        while before is not None and last is not None:
            page = self.state.old(kind, before, last, BATCH, self.followers)
            last = page.last
            yield [old.key for old in page.found if goes(kind, old, self.ages, now)], last
