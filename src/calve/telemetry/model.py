"""The values that metrics are computed from. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Gauges:
    """The current state."""

    tasks: Mapping[str, int] = field(default_factory=dict)
    """Tasks in the queue, by kind."""
    due: int = 0
    """Tasks that are due and not claimed."""
    workers: int = 0
    draining: int = 0
    slots: int = 0
    instances: Mapping[str, int] = field(default_factory=dict)
    """Active instances, by status."""
    captures: int = 0
    """Open captures."""
    triggers: Mapping[str, int] = field(default_factory=dict)
    """Triggers of active versions, by kind."""
    failing_triggers: int = 0
    oldest_trigger: int | None = None
    """When the oldest trigger that is due and not evaluated became due."""
    alerts: Mapping[str, int] = field(default_factory=dict)
    """Alerts that wait or were given up, by status."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An instance that began to run."""

    initiator: str
    waited: int
    """Milliseconds since it was created."""
    latency: int | None = None
    """Milliseconds since its trigger should have created it: from its scheduled time, or the commit to its table."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run or an attempt that ended."""

    status: str
    took: int | None = None
    """Milliseconds; None if it never started."""
    workflow_id: str = ""
    """For a run."""
    type: str = ""
    """For an attempt: the type of its step."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened up to an event."""

    upto: int
    begun: tuple[Begun, ...] = ()
    runs: tuple[Ended, ...] = ()
    steps: tuple[Ended, ...] = ()
    is_all: bool = True
    """Whether these are all events so far."""


class TelemetryState(Protocol):
    """Reads the current state, in time that does not depend on how much is stored."""

    def newest(self) -> int:
        """Return the number of the newest event."""
        ...

    def gauges(self, now: int) -> Gauges:
        """Return the current state."""
        ...

    def happened(self, after: int, limit: int = 5_000) -> Happened:
        """Return what happened after an event, at most ``limit`` events."""
        ...
