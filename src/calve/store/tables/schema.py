"""The whole schema: this module imports every module of tables, so that ``metadata`` contains all of them."""

from calve.store.tables import access, alerts, captures, engine, signals
from calve.store.tables.columns import add_indexes, metadata

__all__ = ["access", "alerts", "captures", "engine", "metadata", "signals"]

add_indexes()
