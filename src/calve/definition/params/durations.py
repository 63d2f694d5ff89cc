"""Durations and numbers that may be written as text: ``"2 hours"``, ``"3600"``, ``"${param}"``."""

import re
from collections.abc import Mapping
from typing import Any

from calve.definition.params.interpolation import interpolate
from calve.errors import ParamError
from calve.expressions.java.longs import parse_long

DAY = 86_400_000
TIMEOUT_LIMIT_DAYS = 120
DEFAULT_TIMEOUT_DAYS = 10

_MILLISECONDS = {"d": DAY, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1_000, "ms": 1, "millisecond": 1}
_PART = re.compile(r"(?<![0-9])([0-9]+) ?(d|h|min|s|ms|millisecond|m(?![a-z]))")
"""Maestro's units, and a bare ``m``, which Maestro takes for nothing."""


def parse_duration(value: int | str, values: Mapping[str, Any], *, limit_days: int = TIMEOUT_LIMIT_DAYS) -> int:
    """Return how many milliseconds a timeout is; a bare number counts seconds.

    Raises:
        ParamError: it is not positive, or longer than the limit.
    """
    written, number = written_number(value, values)
    milliseconds = duration(written) if number is None else number * 1_000
    if not 0 < milliseconds <= limit_days * DAY:
        raise ParamError(
            f"timeout [{milliseconds} ms]/[{as_written(value)}] cannot be non-positive or more than system limit: "
            f"{limit_days} days",
            timeout=value,
        )
    return milliseconds


def duration(text: str) -> int:
    """Return the milliseconds of all that looks like a duration in ``text``; other words are passed over."""
    return sum((parse_long(number) or 0) * _MILLISECONDS[unit] for number, unit in _PART.findall(text.lower()))


def written_number(value: int | str, values: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return a value as text, with references replaced, and the number that it is, or None.

    Raises:
        ParamError: it refers to nothing, or to a secret.
    """
    if isinstance(value, int):
        return str(value), value
    text = interpolate(value, values)
    if not isinstance(text, str):
        raise ParamError(f"[{value}] holds a secret, and is needed as a number")
    return text, parse_long(text)


def as_written(value: int | str) -> str:
    """Return a value as messages show it: text in quotes."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def human_duration(seconds: int) -> str:
    """Return a duration for people: ``29h 5m 10s``."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{sign}{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number]
    return " ".join(parts) or "0s"
