"""OpenLineage events of the steps that read and write tables."""

from calve.lineage.follower import Lineage
from calve.lineage.ports import LineageState, Sender
from calve.lineage.sending import senders_of

__all__ = ["Lineage", "LineageState", "Sender", "senders_of"]
