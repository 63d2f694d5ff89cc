"""What starts workflows by itself: time, signals, changes of tables."""

from calve.triggers.model import Fire, Kind, Looked, Trigger, TriggerKind, Wanted
from calve.triggers.ports import TriggerState
from calve.triggers.scheduler import Scheduler, Turn

__all__ = ["Fire", "Kind", "Looked", "Scheduler", "Trigger", "TriggerKind", "TriggerState", "Turn", "Wanted"]
