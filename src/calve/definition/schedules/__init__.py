"""When a workflow starts by time: cron, words such as ``@daily``, and intervals. Pure."""

from calve.definition.schedules.cron import Cron
from calve.definition.schedules.intervals import Interval
from calve.definition.schedules.parsing import (
    MINIMUM_GAP,
    PREDEFINED,
    Schedule,
    cron_of,
    interval_of,
    predefined_of,
)
from calve.definition.schedules.zones import zone_of

__all__ = [
    "MINIMUM_GAP",
    "PREDEFINED",
    "Cron",
    "Interval",
    "Schedule",
    "cron_of",
    "interval_of",
    "predefined_of",
    "zone_of",
]
