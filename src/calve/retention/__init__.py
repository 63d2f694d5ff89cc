"""How long what nobody needs any more is kept, and what takes it away."""

from calve.retention.model import Ages, Key, Kind, Old, Page, goes
from calve.retention.ports import RetentionState
from calve.retention.pruner import Pruner

__all__ = ["Ages", "Key", "Kind", "Old", "Page", "Pruner", "RetentionState", "goes"]
