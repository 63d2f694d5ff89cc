"""Triggers that go by changes of tables: seen by polling catalogs, decided by checkpoints."""

from calve.triggers.tables.kind import TableChanges, latency_of, latest_latency
from calve.triggers.tables.watcher import Watcher

__all__ = ["TableChanges", "Watcher", "latency_of", "latest_latency"]
