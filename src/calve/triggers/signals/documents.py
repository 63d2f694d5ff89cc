"""Signals in Maestro's format, and their lineage. Pure."""

from collections.abc import Iterable
from typing import Any

from calve.engine import Announced, Party, Signal
from calve.engine.views import SignalInstance
from calve.triggers.signals.signals import InstanceLineage, SignalLineage

Document = dict[str, Any]


def signal_json(signal: Signal) -> Document:
    """Return a signal as JSON."""
    return SignalInstance(
        name=signal.name,
        seq_id=signal.seq,
        instance_id=signal.instance_id,
        params=dict(signal.params),
        payload=dict(signal.payload),
        request_time=signal.announced_at,
        create_time=signal.announced_at,
    ).as_json()


def announced_json(announced: Announced) -> Document:
    """Return the response to an announcement: the signal, and whether it is new."""
    return {**signal_json(announced.signal), "status": announced.status.value}


def lineage_json(lineage: SignalLineage | InstanceLineage) -> Document:
    """Return the sender and effects of a signal, or the signals of an instance."""
    if isinstance(lineage, SignalLineage):
        return {
            "signal": signal_json(lineage.signal),
            "sent_by": None if lineage.sent_by is None else _party(lineage.sent_by),
            "started": [_party(party) for party in lineage.started],
            "released": [_party(party) for party in lineage.released],
        }
    return {
        "workflow_id": lineage.workflow_id,
        "workflow_instance_id": lineage.instance_id,
        "started_by": _pairs(lineage.started_by),
        "released_by": _pairs(lineage.released_by),
        "sent": _pairs(lineage.sent),
    }


def _party(party: Party) -> Document:
    return {name: value for name, value in party.as_source().items() if value is not None}


def _pairs(pairs: Iterable[tuple[Party, Signal]]) -> list[Document]:
    return [{**_party(party), "signal": signal_json(signal)} for party, signal in pairs]
