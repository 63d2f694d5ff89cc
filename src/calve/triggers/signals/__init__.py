"""Signals: announced by anybody, joined by triggers, and traced from who sent them to what they started."""

from calve.triggers.signals.documents import announced_json, lineage_json, signal_json
from calve.triggers.signals.kind import SignalTriggers
from calve.triggers.signals.ports import SignalState
from calve.triggers.signals.signals import InstanceLineage, SignalLineage, Signals
from calve.triggers.signals.valid_through import ValidThrough, moment_of, set_valid_through

__all__ = [
    "InstanceLineage",
    "SignalLineage",
    "SignalState",
    "SignalTriggers",
    "Signals",
    "ValidThrough",
    "announced_json",
    "lineage_json",
    "moment_of",
    "set_valid_through",
    "signal_json",
]
