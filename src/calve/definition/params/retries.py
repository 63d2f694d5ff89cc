"""How often a step is tried again, and how long it waits before that."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calve.definition.model.retries import FixedBackoff, RetryPolicy
from calve.definition.params.durations import as_written, duration, written_number
from calve.errors import ParamError

RETRY_LIMIT = 99
BACKOFF_LIMIT_SECONDS = 86_400
EXPONENT_LIMIT = 2**31 - 1


class RetryReason(StrEnum):
    """Why a step is tried again; each reason has its own count."""

    ERROR = "error"
    PLATFORM = "platform"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Retries:
    """The retries for one reason: how many, and the seconds before each."""

    limit: int
    backoff: int = 60
    exponent: int = 2
    ceiling: int = 3_600

    def delay(self, retries: int) -> int:
        """Return the seconds to wait after that many retries."""
        # From 2 on, seventeen powers are past any ceiling; below, one is the last that changes anything.
        powers = min(retries, BACKOFF_LIMIT_SECONDS.bit_length())
        delay: int = self.backoff * self.exponent**powers
        return min(delay, self.ceiling)


DEFAULT_RETRIES = {
    RetryReason.ERROR: Retries(limit=2, ceiling=600),
    RetryReason.PLATFORM: Retries(limit=10),
    RetryReason.TIMEOUT: Retries(limit=0),
}
"""What counts where a policy says nothing."""


@dataclass(frozen=True, slots=True)
class ParsedRetryPolicy:
    """A retry policy in numbers, with a default for what was not given."""

    error: Retries = DEFAULT_RETRIES[RetryReason.ERROR]
    platform: Retries = DEFAULT_RETRIES[RetryReason.PLATFORM]
    timeout: Retries = DEFAULT_RETRIES[RetryReason.TIMEOUT]

    def of(self, reason: RetryReason) -> Retries:
        """Return the retries for that reason."""
        by_reason = {
            RetryReason.ERROR: self.error,
            RetryReason.PLATFORM: self.platform,
            RetryReason.TIMEOUT: self.timeout,
        }
        return by_reason[reason]

    def can_retry(self, reason: RetryReason, retries: int) -> bool:
        """Tell whether a step that was tried again that often may be tried once more."""
        return retries < self.of(reason).limit

    def delay(self, reason: RetryReason, retries: int) -> int:
        """Return the seconds to wait before the next attempt."""
        return self.of(reason).delay(retries)


def parse_retry_policy(policy: RetryPolicy | None, values: Mapping[str, Any]) -> ParsedRetryPolicy:
    """Return a retry policy in numbers; ``values`` are those of the workflow's params.

    Raises:
        ParamError: something in it is no number, or out of bounds.
    """
    if policy is None:
        return ParsedRetryPolicy()
    parsed = {reason: _retries(policy, reason, _Numbers(values)) for reason in RetryReason}
    return ParsedRetryPolicy(parsed[RetryReason.ERROR], parsed[RetryReason.PLATFORM], parsed[RetryReason.TIMEOUT])


def _retries(policy: RetryPolicy, reason: RetryReason, numbers: "_Numbers") -> Retries:
    default = DEFAULT_RETRIES[reason]
    limit = numbers.count(policy, f"{reason}_retry_limit", default.limit, RETRY_LIMIT)
    backoff = policy.backoff
    if backoff is None:
        return Retries(limit, default.backoff, default.exponent, default.ceiling)
    seconds = numbers.seconds(backoff, f"{reason}_retry_backoff_in_secs", default.backoff)
    if isinstance(backoff, FixedBackoff):
        return Retries(limit, seconds, exponent=1, ceiling=BACKOFF_LIMIT_SECONDS)
    exponent = numbers.count(backoff, f"{reason}_retry_exponent", default.exponent, EXPONENT_LIMIT, "backoff.")
    ceiling = numbers.seconds(backoff, f"{reason}_retry_limit_in_secs", default.ceiling)
    return Retries(limit, seconds, exponent, ceiling)


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
