"""How far Spark has come, told in a step's log as it works."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from calve.engine.ports import PROGRESS
from calve.steps.spark.events import Usage

LATE = 5.0
"""How many seconds lie at most between two lines that differ."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1_000


class Stage(Protocol):
    """A stage, as the Connect client knows it."""

    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int
    done: bool


class Progress:
    """Takes the reports of a session, logs how far it has come, and remembers the operation.

    Nothing is logged in the first second. After that a line comes when a stage has ended or begun, at most once a
    second, and otherwise every few seconds: lines are kept, so that others see them, and that is not for nothing.
    """

    def __init__(
        self,
        log: Callable[[str], None],
        used: Callable[[], Usage | None] = lambda: None,
        *,
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._used, self._every, self._clock = log, used, every, clock
        self._soon = self._late = clock() + every
        self._stages: tuple[int, int] | None = None
        self._last = ""
        self.statement = ""
        """Which statement it is of how many, if there are several."""
        self.operation = ""
        """The newest operation of the session."""

    def __call__(
        self,
        stages: Sequence[Stage] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,  # noqa: FBT001 - the client's signature
        **_: Any,
    ) -> None:
        """Take a report."""
        self.operation = operation_id or self.operation
        if stages and not done:
            over = sum(1 for stage in stages if stage.done)
            self.tell((over, len(stages)), described(stages, inflight_tasks))

    def tell(self, stages: tuple[int, int], told: str = "") -> None:
        """Log how far the stages have come, if it is time: how many are over, how many are known, and what of them."""
        now = self._clock()
        if not stages[1] or now < self._soon or (stages == self._stages and now < self._late):
            return
        self._stages, self._soon, self._late = stages, now + self._every, now + LATE
        parts = [self.statement, told or stage_of(*stages), counted(self._used())]
        line = ", ".join(part for part in parts if part)
        if line != self._last:
            self._last = line
            self._log(f"{PROGRESS}{line}\n")


def described(stages: Sequence[Stage], running: int) -> str:
    """Return how far the stages have come."""
    over = sum(1 for stage in stages if stage.done)
    tasks, ended = sum(stage.num_tasks for stage in stages), sum(stage.num_completed_tasks for stage in stages)
    read = sum(stage.num_bytes_read for stage in stages)
    parts = [f"{stage_of(over, len(stages))}: {ended:,} of {tasks:,} tasks"]
    if running:
        parts.append(f"{running} running")
    if read:
        parts.append(f"{size(read)} read")
    return ", ".join(parts)


def stage_of(over: int, known: int) -> str:
    """Return which stage it is of how many."""
    return f"stage {min(over + 1, known):,} of {known:,}"


def counted(usage: Usage | None) -> str:
    """Return how many rows the stages that are over have read and written, as far as that is known."""
    if usage is None:
        return ""
    read = f"{usage.rows_read:,} rows read" if usage.rows_read else ""
    written = f"{usage.rows_written:,} rows written" if usage.rows_written else ""
    return ", ".join(filter(None, [read, written]))


def size(count: float) -> str:
    """Return a number of bytes for people."""
    amount, unit = float(count), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"
