"""When the times of one local day come, in UTC. Pure."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


def first_after(
    instant: datetime, day: date, times: tuple[int, ...], zone: ZoneInfo, *, is_every_hour: bool
) -> datetime | None:
    """Return the first of the day's times that comes after an instant, or none if there is none."""
    midnight = datetime.combine(day, time())
    offset = _steady_offset(midnight, zone)
    if offset is None:
        firings = (
            firing
            for seconds in times
            for firing in _firings(midnight + timedelta(seconds=seconds), zone, is_every_hour=is_every_hour)
        )
        return min((firing for firing in firings if firing > instant), default=None)
    begin = (midnight - offset).replace(tzinfo=UTC)
    place = bisect_right(times, (instant - begin).total_seconds())
    return begin + timedelta(seconds=times[place]) if place < len(times) else None


def _steady_offset(midnight: datetime, zone: ZoneInfo) -> timedelta | None:
    """Return the day's offset from UTC, or none if the clocks change on it."""
    ends = (midnight, midnight + _DAY)
    offsets = {_offset(end, zone, fold=fold) for end in ends for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _firings(local: datetime, zone: ZoneInfo, *, is_every_hour: bool) -> Iterator[datetime]:
    earlier, later = _offset(local, zone, fold=0), _offset(local, zone, fold=1)
    first, second = (local - earlier).replace(tzinfo=UTC), (local - later).replace(tzinfo=UTC)
    if earlier >= later:
        yield first
        if is_every_hour:
            # The same as the first, unless the time comes twice.
            yield second
    elif not is_every_hour:
        yield _end_of_gap(second, first, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment between two instants at which the clocks go forward."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == old else (before, middle)
    return after


def _offset(local: datetime, zone: ZoneInfo, *, fold: int) -> timedelta:
    return local.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()
