"""The clocks that everything else is handed."""

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock that everything else is handed


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
