"""How much an expression may take, and where the time comes from."""

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], int]
"""Gives the time as milliseconds since 1970."""

NESTING = 128
"""How deep brackets, blocks and operators may stand in each other: the interpreter's own stack is safe from it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation may take; the limit is reached when the value is."""

    stack: int = 128
    loop: int = 25_001
    array: int = 25_001
    length: int = 10_000
    visit: int = 100_000_000
    memory: int = 100_000_000
    seconds: float = 120


def system_millis() -> int:
    """Return the time of the system."""
    return time.time_ns() // 1_000_000
