"""Again and again after the same span of time. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """Every so often, counted from the start of 1970 in UTC, so that the firings need no memory."""

    every: timedelta

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime:  # noqa: ARG002 - as cron has it
        """Return the first firing after an instant; the zone does not matter."""
        return _EPOCH + ((instant - _EPOCH) // self.every + 1) * self.every

    def minimum_gap(self) -> timedelta:
        """Return the time between two firings."""
        return self.every
