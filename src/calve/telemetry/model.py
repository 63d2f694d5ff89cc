"""The values that metrics are made of. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand now."""

    tasks: Mapping[str, int] = field(default_factory=dict)
    """How many tasks are in the queue, by kind."""
    due: int = 0
    """How many tasks are due, and nobody has taken them."""
    workers: int = 0
    draining: int = 0
    slots: int = 0
    instances: Mapping[str, int] = field(default_factory=dict)
    """Instances that are not over, by status."""
    captures: int = 0
    """Captures that are open."""
    triggers: Mapping[str, int] = field(default_factory=dict)
    """Triggers of active versions, by kind."""
    failing_triggers: int = 0
    oldest_trigger: int | None = None
    """Since when the oldest trigger that nobody has looked at is due."""
    alerts: Mapping[str, int] = field(default_factory=dict)
    """Alerts that wait or were given up, by status."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An instance that began to run."""

    initiator: str
    waited: int
    """From when it was made."""
    latency: int | None = None
    """From when its trigger should have made it: its scheduled time, or the commit to its table."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run or an attempt that is over."""

    status: str
    took: int | None = None
    """None if it never began."""
    workflow_id: str = ""
    """Of a run."""
    type: str = ""
    """Of an attempt: the type of its step."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What has happened up to an event."""

    upto: int
    begun: tuple[Begun, ...] = ()
    runs: tuple[Ended, ...] = ()
    steps: tuple[Ended, ...] = ()
    is_all: bool = True
    """Whether there is nothing after it yet."""
