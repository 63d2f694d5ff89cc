"""Limits of an evaluation, and the state of one: its variables, and the steps, memory and time it has left."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from calve.expressions.failures import (
    too_large_search,
    too_long_search,
    too_long_text,
    too_many_visits,
    too_much_memory,
    too_much_time,
    unsupported,
)
from calve.expressions.values import BLANKS, ResultType, Value

Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970."""

NESTING = 128
"""How deep brackets, blocks and operators may be nested, so that Python's own stack does not overflow."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one evaluation; a limit is exceeded as soon as its number is reached."""

    stack: int = 128
    loop: int = 25_001
    array: int = 25_001
    length: int = 10_000
    visit: int = 100_000_000
    memory: int = 100_000_000
    seconds: float = 120


def system_millis() -> int:
    """Return the system time."""
    return time.time_ns() // 1_000_000


FoundT = TypeVar("FoundT")
OBJECT_SIZE = 32
_TICKS = 512
_WORK_PER_TICK = 1_024
_SEARCH_SECONDS = 2.0
"""Processor time for all regular expressions of an evaluation; an ordinary search takes microseconds."""
_SEARCH_SIZE = 2_000_000
"""The maximum length of a searched text: a search needs up to about 100 bytes of memory for each character."""
_TEXT_SIZE = 100_000_000


class ParamFunctions(Protocol):
    """The functions that expressions can call as ``params.<name>(…)``."""

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        """Return the value of the function ``name``.

        Raises:
            ExpressionError: the function does not exist, or failed.
        """
        ...


class Run:
    """One evaluation. ``steps`` and ``room`` count down to their limit."""

    __slots__ = (
        "_deadline",
        "_search_seconds",
        "_text_room",
        "_ticks",
        "clock",
        "functions",
        "limits",
        "literals",
        "names",
        "params",
        "room",
        "slots",
        "stack",
        "steps",
    )

    def __init__(
        self,
        names: tuple[str, ...],
        literals: int,
        params: Mapping[str, Any],
        *,
        limits: Limits,
        functions: ParamFunctions | None,
        clock: Clock,
    ) -> None:
        self.names = names
        self.slots: list[Value | None] = [None] * len(names)
        self.literals: list[Value | None] = [None] * literals
        self.stack: list[Value] = []
        self.params = params
        self.limits = limits
        self.functions = functions
        self.clock = clock
        self.steps = limits.visit
        self.room = limits.memory
        self._text_room = max(limits.memory, _TEXT_SIZE)
        self._ticks = _TICKS
        self._search_seconds = _SEARCH_SECONDS
        self._deadline = time.monotonic() + limits.seconds

    def charge(self, size: int = 0) -> None:
        """Count a new object that holds ``size`` bytes; call it before the object is made."""
        self.room -= size + OBJECT_SIZE
        if self.room <= 0:
            raise too_much_memory(self.limits.memory)

    def check_room(self, size: int) -> None:
        """Raise if ``size`` bytes would not fit; call it before something large is made."""
        if self.room <= size:
            raise too_much_memory(self.limits.memory)

    def grow_text(self, units: int) -> None:
        """Count a text that grows in place. Maestro does not limit that, but memory is finite."""
        self._text_room -= 2 * units
        if self._text_room <= 0:
            raise too_long_text(max(self.limits.memory, _TEXT_SIZE))

    def visit(self, nodes: int) -> None:
        """Count nodes of the tree."""
        self.steps -= nodes
        if self.steps <= 0:
            raise too_many_visits(self.limits.visit)

    def tick(self, work: int = 0) -> None:
        """Check the time limit after many calls, or after fewer calls that processed long texts."""
        self._ticks -= 1 + work // _WORK_PER_TICK
        if self._ticks <= 0:
            self._ticks = _TICKS
            self.check_time()

    def check_search(self, size: int) -> None:
        """Refuse to search through a text that is too long."""
        if size > _SEARCH_SIZE:
            raise too_large_search(_SEARCH_SIZE)

    def search(self, search: Callable[..., FoundT], text: str, start: int) -> FoundT:
        """Return what a regular expression finds in the time that is left for all of them."""
        self.check_time()
        timeout = min(self._search_seconds, self._deadline - time.monotonic())
        began = time.thread_time()
        try:
            found = search(text, start, timeout=max(timeout, 0.001))
        except TimeoutError:
            self.check_time()
            raise too_long_search(_SEARCH_SECONDS) from None
        self._search_seconds -= time.thread_time() - began
        if self._search_seconds <= 0:
            raise too_long_search(_SEARCH_SECONDS)
        return found

    def check_time(self) -> None:
        """Raise if the time limit has passed."""
        if time.monotonic() >= self._deadline:
            raise too_much_time(self.limits.seconds)

    def blank(self, type_: ResultType) -> Value:
        """Return the value of a variable of a type that is declared but not assigned."""
        make = BLANKS.get(type_)
        if make is None:
            raise unsupported(f"Not support creating an empty object for type {type_}")
        self.charge()
        return make()
