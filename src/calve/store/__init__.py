"""Durable state in one SQL database: SQLite where it is embedded, PostgreSQL where many share it."""

from calve.store.captures import SqlCaptureState
from calve.store.deliveries import SqlDeliveryState
from calve.store.engine_state import SqlEngineState
from calve.store.store import Store, open_store
from calve.store.triggers import SqlTriggerState

__all__ = ["SqlCaptureState", "SqlDeliveryState", "SqlEngineState", "SqlTriggerState", "Store", "open_store"]
