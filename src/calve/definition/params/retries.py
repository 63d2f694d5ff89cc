"""Timeouts and retry policies in numbers; durations may be texts: ``"2 hours"``, ``"3600"``, ``"${param}"``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calve.definition.model import FixedBackoff, RetryPolicy
from calve.definition.params.interpolation import interpolate
from calve.errors import ParamError
from calve.expressions.java import parse_long

DAY = 86_400_000
TIMEOUT_LIMIT_DAYS = 120
DEFAULT_TIMEOUT_DAYS = 10

_MILLISECONDS = {"d": DAY, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1_000, "ms": 1, "millisecond": 1}
_PART = re.compile(r"(?<![0-9])([0-9]+) ?(d|h|min|s|ms|millisecond|m(?![a-z]))")
"""Maestro's units, and a bare ``m`` for minutes, which Maestro ignores."""


def parse_duration(value: int | str, values: Mapping[str, Any], *, limit_days: int = TIMEOUT_LIMIT_DAYS) -> int:
    """Return a timeout in milliseconds; a plain number is in seconds.

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
    """Return the sum of all durations in ``text`` in milliseconds; other words are ignored."""
    return sum((parse_long(number) or 0) * _MILLISECONDS[unit] for number, unit in _PART.findall(text.lower()))


def written_number(value: int | str, values: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return a value as text, with references replaced, and as a number; None if it is not a number.

    Raises:
        ParamError: it refers to an unknown param, or to a secret.
    """
    if isinstance(value, int):
        return str(value), value
    text = interpolate(value, values)
    if not isinstance(text, str):
        raise ParamError(f"[{value}] must be a number, but holds a secret")
    return text, parse_long(text)


def as_written(value: int | str) -> str:
    """Return a value for a message: text in quotes."""
    return f'"{value}"' if isinstance(value, str) else str(value)


RETRY_LIMIT = 99
BACKOFF_LIMIT_SECONDS = 86_400
EXPONENT_LIMIT = 2**31 - 1


class RetryReason(StrEnum):
    """Why a step is retried; each reason has its own count."""

    ERROR = "error"
    PLATFORM = "platform"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Retries:
    """The retries for one reason: how many, and the delay before each, in seconds."""

    limit: int
    backoff: int = 60
    exponent: int = 2
    ceiling: int = 3_600
    is_delay_given: bool = False
    """Whether the definition says how long to wait."""

    def delay(self, retries: int) -> int:
        """Return the seconds to wait after that many retries."""
        # With an exponent of 2 or more, 17 powers exceed any ceiling; below 2, powers change nothing.
        powers = min(retries, BACKOFF_LIMIT_SECONDS.bit_length())
        delay: int = self.backoff * self.exponent**powers
        return min(delay, self.ceiling)


DEFAULT_RETRIES = {
    RetryReason.ERROR: Retries(limit=2, ceiling=600),
    RetryReason.PLATFORM: Retries(limit=10),
    RetryReason.TIMEOUT: Retries(limit=0),
}
"""The defaults of a retry policy."""


@dataclass(frozen=True, slots=True)
class ParsedRetryPolicy:
    """A retry policy in numbers, with defaults for what was not given."""

    error: Retries = DEFAULT_RETRIES[RetryReason.ERROR]
    platform: Retries = DEFAULT_RETRIES[RetryReason.PLATFORM]
    timeout: Retries = DEFAULT_RETRIES[RetryReason.TIMEOUT]

    def of(self, reason: RetryReason) -> Retries:
        """Return the retries for that reason."""
        found: Retries = getattr(self, reason)
        return found

    def can_retry(self, reason: RetryReason, retries: int) -> bool:
        """Tell whether a step with that many retries may be retried again."""
        return retries < self.of(reason).limit

    def delay(self, reason: RetryReason, retries: int) -> int:
        """Return the seconds to wait before the next attempt."""
        return self.of(reason).delay(retries)


def parse_retry_policy(policy: RetryPolicy | None, values: Mapping[str, Any]) -> ParsedRetryPolicy:
    """Return a retry policy in numbers; ``values`` are those of the workflow's params.

    Raises:
        ParamError: a value is not a number, or out of bounds.
    """
    if policy is None:
        return ParsedRetryPolicy()
    numbers = _Numbers(values)
    return ParsedRetryPolicy(**{reason.value: _retries(policy, reason, numbers) for reason in RetryReason})


def _retries(policy: RetryPolicy, reason: RetryReason, numbers: "_Numbers") -> Retries:
    default = DEFAULT_RETRIES[reason]
    limit = numbers.count(policy, f"{reason}_retry_limit", default.limit, RETRY_LIMIT)
    backoff = policy.backoff
    if backoff is None:
        return Retries(limit, default.backoff, default.exponent, default.ceiling)
    field = f"{reason}_retry_backoff_in_secs"
    seconds, is_given = numbers.seconds(backoff, field, default.backoff), getattr(backoff, field) is not None
    if isinstance(backoff, FixedBackoff):
        return Retries(limit, seconds, exponent=1, ceiling=BACKOFF_LIMIT_SECONDS, is_delay_given=is_given)
    exponent = numbers.count(backoff, f"{reason}_retry_exponent", default.exponent, EXPONENT_LIMIT, "backoff.")
    ceiling = numbers.seconds(backoff, f"{reason}_retry_limit_in_secs", default.ceiling)
    return Retries(limit, seconds, exponent, ceiling, is_delay_given=is_given)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Reads the numbers of a policy by the names of its fields."""

    values: Mapping[str, Any]

    def count(self, model: Any, field: str, default: int, most: int, prefix: str = "") -> int:
        value = getattr(model, field)
        if value is None:
            return default
        text, number = written_number(value, self.values)
        if number is None:
            raise ParamError(f"{prefix}{field} value [{as_written(value)}] is parsed to [{text}] but not a number")
        return _bounded(f"{prefix}{field}", value, number, 0, most)

    def seconds(self, model: Any, field: str, default: int) -> int:
        value = getattr(model, field)
        if value is None:
            return default
        text, number = written_number(value, self.values)
        seconds = duration(text) // 1_000 if number is None else number
        return _bounded(f"backoff.{field}", value, seconds, 1, BACKOFF_LIMIT_SECONDS)


def _bounded(path: str, value: int | str, number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise ParamError(
            f"{path} value [{as_written(value)}] is parsed to [{number}] but cannot be less than [{least}] "
            f"or more than [{most}]"
        )
    return number
