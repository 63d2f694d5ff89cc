"""All that the engine keeps, in SQL."""

from calve.store.controls import SqlControls
from calve.store.definitions import SqlDefinitions
from calve.store.instances import SqlInstances
from calve.store.live_work import SqlLiveWork
from calve.store.queue import SqlQueue
from calve.store.signals import SqlSignals
from calve.store.templates import SqlTemplates


class SqlEngineState(SqlDefinitions, SqlInstances, SqlLiveWork, SqlQueue, SqlControls, SqlSignals, SqlTemplates):
    """Keeps all that the engine knows (the port is ``calve.engine.ports.EngineState``)."""
