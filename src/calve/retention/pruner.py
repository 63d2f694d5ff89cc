"""Deletes records older than their retention, in small transactions that do not block others."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from calve.errors import CalveError, Conflict
from calve.failpoints import reach
from calve.retention.policy import Ages, Key, RecordKind, RetentionState, goes

log = logging.getLogger(__name__)

NAME = "retention"
"""The name of the follower that records when a process last pruned."""
EVERY = 600_000
"""The minimum number of milliseconds between two starts of pruning, by any process."""
BATCH = 200
"""The most rows that a transaction deletes: on SQLite, no other process can write meanwhile."""
BATCHES = 20
"""The most transactions of a turn for one kind."""
BREATH = 0.05
"""Seconds between two transactions, in which other processes can write."""
PAUSE, LOOK = 5.0, 60.0
"""Seconds until the next turn, if more is left, and if nothing is."""


@dataclass(slots=True)
class Pruner:
    """Prunes a store; of several processes, only one starts at a time."""

    state: RetentionState
    ages: Ages
    clock: Callable[[], int]
    followers: Sequence[str] = ()
    """The followers that must have read events before they are deleted."""
    _places: dict[RecordKind, Key] = field(default_factory=dict)
    """The position where the next turn continues, for each kind with more records."""

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set; an unreachable database is retried."""
        while not stop.is_set():
            try:
                if self._places or self._is_time():
                    self.turn(stop)
            except Conflict:
                log.debug("another process already did this")
            except CalveError as error:
                log.warning("pruning is waiting: %s", error.message)
            except Exception:
                log.exception("pruning failed; it will be retried")
            stop.wait(PAUSE if self._places else LOOK)

    def turn(self, stop: threading.Event | None = None) -> dict[RecordKind, int]:
        """Delete some of the records that may be deleted; return how many of each kind."""
        stop = stop or threading.Event()
        return {kind: self._prune(kind, stop) for kind in RecordKind if kind in self.ages.used}

    def prune(self) -> dict[RecordKind, int]:
        """Delete all records that may be deleted; return how many of each kind."""
        gone = self.turn()
        while self._places:
            gone = {kind: gone[kind] + count for kind, count in self.turn().items()}
        return gone

    def survey(self) -> dict[RecordKind, int]:
        """Return how many records of each kind may be deleted."""
        now = self.clock()
        return {
            kind: sum(len(keys) for keys, _ in self._pages(kind, (), now))
            for kind in RecordKind
            if kind in self.ages.used
        }

    def _is_time(self) -> bool:
        now = self.clock()
        last = self.state.position(NAME, 0)
        if now - last < EVERY:
            return False
        # A compare-and-set: of several processes that see that it is time, one continues, and the others get a
        # Conflict.
        self.state.move(NAME, last, now)
        return True

    def _prune(self, kind: RecordKind, stop: threading.Event) -> int:
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
            log.info("deleted %d of %s that were older than their retention", count, kind)
        return count

    def _pages(self, kind: RecordKind, after: Key, now: int) -> Iterator[tuple[list[Key], Key | None]]:
        """Yield pages of records to delete, and the position of each."""
        before = self.ages.before(kind, now)
        last: Key | None = after
        while before is not None and last is not None:
            page = self.state.old(kind, before, last, BATCH, self.followers)
            last = page.last
            yield [old.key for old in page.found if goes(kind, old, self.ages, now)], last
