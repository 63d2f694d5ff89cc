"""What one evaluation has, and what it has left: variables, steps, memory, time."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from calve.expressions.failures import (
    too_long_search,
    too_long_text,
    too_many_visits,
    too_much_memory,
    too_much_time,
    unsupported,
)
from calve.expressions.limits import Clock, Limits
from calve.expressions.values import BLANKS, ResultType, Value

OBJECT_SIZE = 32
_TICKS = 512
_WORK_PER_TICK = 1_024
_SEARCH_STEPS = 1_000_000
_TEXT_SIZE = 100_000_000


class ParamFunctions(Protocol):
    """What ``params.<name>(…)`` can call beyond the parameters themselves."""

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        """Return the value of the function ``name``.

        Raises:
            ExpressionError: there is no such function, or it has no value.
        """
        ...


class Run:
    """One evaluation. ``steps`` and ``room`` count down to their limit."""

    __slots__ = (
        "_deadline",
        "_searching",
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
        self._searching = _SEARCH_STEPS
        self._deadline = time.monotonic() + limits.seconds

    def charge(self, size: int = 0) -> None:
        """Count a new object that holds ``size`` bytes; call it before the object is made."""
        self.room -= size + OBJECT_SIZE
        if self.room <= 0:
            raise too_much_memory(self.limits.memory)

    def check_room(self, size: int) -> None:
        """Refuse what would not fit, before it is made; it is charged for when it is."""
        if self.room <= size:
            raise too_much_memory(self.limits.memory)

    def grow_text(self, units: int) -> None:
        """Count a text that grows in place, which Maestro does not: it must end somewhere all the same."""
        self._text_room -= 2 * units
        if self._text_room <= 0:
            raise too_long_text(max(self.limits.memory, _TEXT_SIZE))

    def visit(self, nodes: int) -> None:
        """Count nodes of the tree."""
        self.steps -= nodes
        if self.steps <= 0:
            raise too_many_visits(self.limits.visit)

    def tick(self, work: int = 0) -> None:
        """Look at the clock now and then: after many calls, or a few that worked on much text."""
        self._ticks -= 1 + work // _WORK_PER_TICK
        if self._ticks <= 0:
            self._ticks = _TICKS
            self.check_time()

    def search(self, steps: int) -> None:
        """Count steps of a search by a regular expression."""
        self._searching -= steps
        if self._searching <= 0:
            raise too_long_search(_SEARCH_STEPS)
        self.tick(steps)

    def check_time(self) -> None:
        """Look at the clock."""
        if time.monotonic() >= self._deadline:
            raise too_much_time(self.limits.seconds)

    def blank(self, type_: ResultType) -> Value:
        """Return a new value of a type that holds nothing yet."""
        make = BLANKS.get(type_)
        if make is None:
            raise unsupported(f"Not support creating an empty object for type {type_}")
        self.charge()
        return make()
