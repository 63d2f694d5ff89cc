"""How late rows arrive: the time of a commit minus that of the events, weighted by rows. Pure. Times are milliseconds.

A partition or a file defines the time of its events as an interval, so a delay is an interval too: the curve has a
lower and an upper line. A negative delay, of an event after its commit, counts as zero.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from calve.capture.inspection.facts import Cells
from calve.capture.inspection.periods import DAY
from calve.capture.model import Operation
from calve.capture.snapshots import RangeSnapshot

MOST_POINTS = 200
_LOOKBACKS = (0, 1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90)


@dataclass(frozen=True, slots=True)
class Point:
    """The share of rows that arrived within a delay."""

    within_ms: int
    share_at_least: float
    share_at_most: float


@dataclass(frozen=True, slots=True)
class Lookback:
    """What a daily job that reads the partitions of the last days again misses, and how much it reads."""

    days: int
    missed_rows: int
    """Rows of a day that was no longer read when they arrived; a lower limit if a period is longer than a day."""
    missed_rows_at_most: int
    missed_share: float
    times_re_read: float
    """How many times the data is read again, after the first time."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the rows of some commits arrived."""

    commits: int
    rows: int
    """The rows whose time is known."""
    unknown_rows: int
    late_rows: int
    """The rows of a day before that of their commit."""
    curve: tuple[Point, ...]
    lookbacks: tuple[Lookback, ...]
    misses_none_days: int | None
    """The shortest lookback that misses no row; None without rows."""
    lookback: Lookback | None
    """The requested lookback; None without rows."""


def lateness(commits: Sequence[RangeSnapshot], facts: Mapping[int, Cells], lookback: int = 0) -> Lateness:
    """Return how late the rows that commits added arrived; compaction adds none.

    Args:
        commits: the commits.
        facts: what they did, by snapshot.
        lookback: the days of the requested lookback, in addition to the usual ones.
    """
    soonest: Counter[int] = Counter()
    latest: Counter[int] = Counter()
    days: Counter[tuple[int, int]] = Counter()
    unknown = 0
    counted = [step for step in commits if step.operation is not Operation.REPLACE]
    for step in counted:
        at = step.timestamp_ms
        for cell in facts.get(step.snapshot_id, ()):
            start, end = cell.partition.start, cell.partition.end
            if start is None or end is None:
                unknown += cell.rows
            elif cell.rows:
                soonest[max(0, at - end)] += cell.rows
                latest[max(0, at - start)] += cell.rows
                days[max(0, at // DAY - (end - 1) // DAY), max(0, at // DAY - start // DAY)] += cell.rows
    return Lateness(
        len(counted),
        days.total(),
        unknown,
        sum(rows for (least, _), rows in days.items() if least),
        _curve(soonest, latest),
        _lookbacks(days),
        max((most for _, most in days), default=None),
        _lookback(lookback, days) if days else None,
    )


def _curve(soonest: Counter[int], latest: Counter[int]) -> tuple[Point, ...]:
    total = soonest.total()
    if not total:
        return ()
    lower, upper = _Sums(latest), _Sums(soonest)
    return tuple(
        Point(delay, round(lower.upto(delay) / total, 6), round(upper.upto(delay) / total, 6))
        for delay in _thinned(sorted({0, *soonest, *latest}))
    )


class _Sums:
    """The rows up to each delay."""

    def __init__(self, rows: Counter[int]) -> None:
        self._delays = sorted(rows)
        self._sums = list(accumulate((rows[delay] for delay in self._delays), initial=0))

    def upto(self, delay: int) -> int:
        """Return how many rows arrived within a delay."""
        return self._sums[bisect_right(self._delays, delay)]


def _thinned(delays: Sequence[int]) -> Iterable[int]:
    """Return as many of the delays as a curve has points, including the first and the last."""
    if len(delays) <= MOST_POINTS:
        return delays
    last = len(delays) - 1
    return (delays[number * last // (MOST_POINTS - 1)] for number in range(MOST_POINTS))


def _lookbacks(days: Counter[tuple[int, int]]) -> tuple[Lookback, ...]:
    if not days:
        return ()
    enough = max(most for _, most in days)
    wanted = sorted({*(one for one in _LOOKBACKS if one <= max(enough, 7)), enough})
    return tuple(_lookback(number, days) for number in wanted)


def _lookback(number: int, days: Counter[tuple[int, int]]) -> Lookback:
    total = days.total()
    missed = sum(rows for (least, _), rows in days.items() if least > number)
    at_most = sum(rows for (_, most), rows in days.items() if most > number)
    # a row of which ``least`` days have passed is read at once, and again on each day until the lookback ends
    again = sum(rows * max(0, number - least) for (least, _), rows in days.items())
    return Lookback(number, missed, at_most, round(missed / total, 6), round(again / total, 2))
