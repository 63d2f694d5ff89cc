"""Progress and usage of Spark, for the log and the artifacts of a step."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from calve.engine import PROGRESS
from calve.steps.spark.event_log import Usage
from calve.steps.spark.sql_script import Done

LATE = 5.0
"""The longest pause between two different lines, in seconds."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1_000


class Stage(Protocol):
    """A stage, as the Connect client reports it."""

    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int
    done: bool


class Progress:
    """Logs the progress that a session reports, and remembers its newest operation.

    Nothing is logged in the first second. After that, a line is logged when a stage starts or ends, at most once a
    second, and otherwise every few seconds: the store keeps every line.
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
        """The number of the statement, if there are several."""
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
        """Handle a progress report."""
        self.operation = operation_id or self.operation
        if stages and not done:
            over = sum(1 for stage in stages if stage.done)
            self.tell((over, len(stages)), described(stages, inflight_tasks))

    def tell(self, stages: tuple[int, int], told: str = "") -> None:
        """Log how many of the known stages have ended, unless the last line was logged just before."""
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
    """Describe the progress of the stages."""
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
    """Return the number of the current stage, and of all."""
    return f"stage {min(over + 1, known):,} of {known:,}"


def counted(usage: Usage | None) -> str:
    """Return how many rows the ended stages have read and written, as far as is known."""
    if usage is None:
        return ""
    read = f"{usage.rows_read:,} rows read" if usage.rows_read else ""
    written = f"{usage.rows_written:,} rows written" if usage.rows_written else ""
    return ", ".join(filter(None, [read, written]))


def size(count: float) -> str:
    """Format a number of bytes."""
    amount, unit = float(count), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


_KEPT_STATEMENTS = 100


def usage_artifact(usage: Usage | None, done: Sequence[Done] = ()) -> dict[str, Any]:
    """Return the artifact ``spark``; numbers that are unknown are left out."""
    totals: dict[str, Any] = {} if usage is None else dict(usage.as_artifact())
    return totals | {"statements": [_statement(one) for one in done[:_KEPT_STATEMENTS]]} if done else totals


def _statement(one: Done) -> dict[str, Any]:
    told = {} if one.usage is None else one.usage.as_artifact()
    counted = {} if one.count is None else {"rows": one.count}
    return {"statement": one.title, "seconds": round(one.seconds, 3), **counted, **told}


def usage_line(usage: Usage | None, done: Sequence[Done] = ()) -> str:
    """Return the last line of a step's log: what it read and wrote."""
    rows = [f"{done[-1].count:,} rows"] if done and done[-1].count is not None else []
    if usage is None:
        return f"-- {', '.join(rows)}\n" if rows else ""
    read = f"{usage.rows_read:,} rows, {size(usage.bytes_read)} read"
    written = f"{usage.rows_written:,} rows, {size(usage.bytes_written)} written"
    return f"-- {'; '.join([*rows, read, written, f'{size(usage.shuffle_bytes)} shuffled'])}\n"
