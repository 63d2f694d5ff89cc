"""How far Spark has come, told in a step's log as it works."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1_000


class Stage(Protocol):
    """A stage, as the Connect client knows it."""

    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int
    done: bool


class Progress:
    """Takes the reports of a session; logs at most one line a second, and remembers the operation."""

    def __init__(self, log: Callable[[str], None], every: float = 1.0) -> None:
        self._log = log
        self._every = every
        self._next = time.monotonic() + every
        self._last = ""
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
        now = time.monotonic()
        if done or not stages or now < self._next:
            return
        line = described(list(stages), inflight_tasks)
        self._next = now + self._every
        if line != self._last:
            self._last = line
            self._log(f"-- {line}\n")


def described(stages: Sequence[Stage], running: int) -> str:
    """Return how far the stages have come."""
    over = sum(1 for stage in stages if stage.done)
    tasks, ended = sum(stage.num_tasks for stage in stages), sum(stage.num_completed_tasks for stage in stages)
    read = sum(stage.num_bytes_read for stage in stages)
    parts = [f"stage {min(over + 1, len(stages))} of {len(stages)}: {ended:,} of {tasks:,} tasks"]
    if running:
        parts.append(f"{running} running")
    if read:
        parts.append(f"{size(read)} read")
    return ", ".join(parts)


def size(count: float) -> str:
    """Return a number of bytes for people."""
    amount, unit = float(count), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"
