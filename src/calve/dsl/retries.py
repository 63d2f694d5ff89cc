"""Retries: how often a failed step is tried again, and after how long."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from calve.dsl.location import Described, here

Number: TypeAlias = int | str
"""A number, or a text for one: ``"2 hours"``, ``"${param}"``."""

Growth: TypeAlias = tuple[Number, Number, Number]
"""The first wait in seconds, what it is multiplied by each time, and the longest wait in seconds."""

_KINDS = {"errors": "error", "platform": "platform", "timeouts": "timeout"}


@dataclass(frozen=True, slots=True)
class Retry(Described):
    """How often a step is tried again."""


@dataclass(frozen=True, slots=True)
class Backoff(Described):
    """How long to wait before a step is tried again."""


def retry(
    *,
    errors: Number | None = None,
    platform: Number | None = None,
    timeouts: Number | None = None,
    backoff: Backoff | None = None,
) -> Retry:
    """Return how often a step is tried again after each kind of failure.

    Args:
        errors: How often after an error of the job itself. Default: twice.
        platform: How often after an error of the platform that runs it. Default: ten times.
        timeouts: How often after a timeout. Default: never.
        backoff: How long to wait between attempts: ``exponential(…)`` or ``fixed(…)``.
    """
    limits = _by_kind("{}_retry_limit", {"errors": errors, "platform": platform, "timeouts": timeouts})
    return Retry({**limits, **({"backoff": backoff} if backoff else {})}, here())


def fixed(
    seconds: Number | None = None,
    *,
    errors: Number | None = None,
    platform: Number | None = None,
    timeouts: Number | None = None,
) -> Backoff:
    """Return a wait that has the same length each time.

    Args:
        seconds: How long, after any kind of failure.
        errors: How long after an error of the job itself.
        platform: How long after an error of the platform that runs it.
        timeouts: How long after a timeout.
    """
    waits = {"errors": errors, "platform": platform, "timeouts": timeouts}
    chosen = {kind: seconds if wait is None else wait for kind, wait in waits.items()}
    return Backoff({"type": "FIXED_BACKOFF", **_by_kind("{}_retry_backoff_in_secs", chosen)}, here())


def exponential(
    seconds: Number | None = None,
    *,
    exponent: Number | None = None,
    limit: Number | None = None,
    errors: Growth | None = None,
    platform: Growth | None = None,
    timeouts: Growth | None = None,
) -> Backoff:
    """Return a wait that grows each time, up to a limit.

    Args:
        seconds: The first wait, after any kind of failure.
        exponent: What it is multiplied by each time.
        limit: The longest wait in seconds.
        errors: All three numbers for errors of the job itself: ``(60, 2, 600)``.
        platform: All three numbers for errors of the platform that runs it.
        timeouts: All three numbers for timeouts.
    """
    growths = {"errors": errors, "platform": platform, "timeouts": timeouts}
    chosen = {kind: growth or (seconds, exponent, limit) for kind, growth in growths.items()}
    names = ("{}_retry_backoff_in_secs", "{}_retry_exponent", "{}_retry_limit_in_secs")
    written: dict[str, Any] = {"type": "EXPONENTIAL_BACKOFF"}
    for index, name in enumerate(names):
        written |= _by_kind(name, {kind: growth[index] for kind, growth in chosen.items()})
    return Backoff(written, here())


def _by_kind(name: str, numbers: dict[str, Number | None]) -> dict[str, Number]:
    return {name.format(_KINDS[kind]): number for kind, number in numbers.items() if number is not None}
