"""How far consumers were behind over time, and when their history will be gone. Times are milliseconds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median
from typing import Protocol

from calve.capture.inspection.history import TableHistory
from calve.capture.inspection.periods import DAY
from calve.capture.lag import DEFAULT_MAX_AGE_MS, Lag
from calve.capture.model import StoredCheckpoint
from calve.lake import TableName, whole_number

EVERY = 300_000
"""Milliseconds between two samples, which are taken at multiples of it, so that two processes take the same ones."""
PACE = 7 * DAY
"""The period over which the pace of a consumer is measured."""
_RECENT = 50
"""The number of commits from which the usual interval is computed."""


@dataclass(frozen=True, slots=True)
class LagSample:
    """How far one consumer was behind one table at a time."""

    consumer: str
    table: TableName
    at: int
    commits: int | None
    """None, like ``files``, ``rows`` and ``bytes``, if the history has a gap, or the table could not be read."""
    files: int | None
    rows: int | None
    bytes: int | None
    checkpoint_at: int
    """The time of the last committed snapshot."""
    current_at: int | None
    """The time of the table's newest snapshot."""
    expires_at: int | None
    """When the oldest pending commit may expire; None if none was pending."""

    @property
    def is_behind(self) -> bool:
        """Whether something was pending; False if the table could not be read."""
        return bool(self.commits) or self.expires_at is not None


class LagSamples(Protocol):
    """Stores samples."""

    def add(self, samples: Sequence[LagSample]) -> None:
        """Store samples; one that already exists is not changed."""
        ...

    def samples(self, table: TableName, since: int, step: int) -> list[LagSample]:
        """Return the samples of a table from a time on, at multiples of ``step``, and the newest ones.

        Ordered by consumer and time.
        """
        ...

    def newest(self, since: int) -> list[LagSample]:
        """Return the newest sample of every consumer and table, if it is not older than a time."""
        ...


@dataclass(frozen=True, slots=True)
class Behind:
    """A consumer that is behind a table now."""

    sample: LagSample
    usual_interval: int | None
    """The usual time between two commits of the table; None with fewer than two."""
    now: int

    @property
    def expires_in(self) -> int | None:
        """How long the history that it needs is safe; negative: it may be gone."""
        return None if self.sample.expires_at is None else self.sample.expires_at - self.now

    @property
    def is_critical(self) -> bool:
        """Whether history that it needs may be gone within two of the table's usual intervals."""
        return self.expires_in is not None and self.expires_in < max(1, 2 * (self.usual_interval or 0))


def max_age(table: TableHistory) -> int:
    """Return the age at which a snapshot of a table may be expired."""
    return whole_number(table.source.properties, "history.expire.max-snapshot-age-ms", DEFAULT_MAX_AGE_MS)


def sample_of(stored: StoredCheckpoint, lag: Lag, table: TableHistory | None, now: int) -> LagSample:
    """Return the sample of a consumer's lag now."""
    at = now // EVERY * EVERY
    head = None if table is None else table.source.snapshots.get(table.source.head or -1)
    expires_at = None if lag.expires_in_seconds is None else now + int(lag.expires_in_seconds * 1_000)
    return LagSample(
        consumer=stored.consumer,
        table=stored.table,
        at=at,
        commits=lag.pending_commits,
        files=lag.pending_files,
        rows=lag.pending_records,
        bytes=lag.pending_bytes,
        checkpoint_at=stored.checkpoint.timestamp_ms,
        current_at=None if head is None else head["timestamp-ms"],
        expires_at=at if lag.error == "history_expired" else expires_at,
    )


def usual_interval(table: TableHistory) -> int | None:
    """Return the usual time between two commits: the median of the newest ones."""
    times = [step.timestamp_ms for step in table.commits[: _RECENT + 1]]
    gaps = [later - earlier for later, earlier in pairwise(times)]
    return int(median(gaps)) if gaps else None


def forecast(samples: Sequence[LagSample], age: int, now: int) -> int | None:
    """Return in which time a consumer will be too late at the pace of the last days; None: never at that pace.

    The time at which needed history expires advances with the consumer. If it advances more slowly than time itself,
    the two meet.

    Args:
        samples: of one consumer, oldest first.
        age: how old snapshots may become.
        now: the time.
    """
    if not samples or samples[-1].expires_at is None:
        return None
    last = samples[-1]
    recent = [one for one in samples if one.at >= last.at - PACE]
    left = max(0, (last.expires_at or 0) - now)
    pace = _slope([(one.at, one.expires_at if one.expires_at is not None else one.at + age) for one in recent])
    return int(left / (1 - pace)) if pace < 1 else None


def _slope(points: Sequence[tuple[int, int]]) -> float:
    """Return the slope of the line through points by least squares; 0 through a single one."""
    x, y = fmean(one[0] for one in points), fmean(one[1] for one in points)
    spread = sum((one[0] - x) ** 2 for one in points)
    return sum((one[0] - x) * (one[1] - y) for one in points) / spread if spread else 0.0


def by_consumer(samples: Iterable[LagSample]) -> dict[str, list[LagSample]]:
    """Return samples by consumer; they are already in that order."""
    return {consumer: list(some) for consumer, some in groupby(samples, key=lambda one: one.consumer)}
