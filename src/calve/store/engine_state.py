"""All that the engine keeps, in SQL."""

from calve.store.controls import SqlControls
from calve.store.definitions import SqlDefinitions
from calve.store.instances import SqlInstances
from calve.store.queue import SqlQueue


class SqlEngineState(SqlDefinitions, SqlInstances, SqlQueue, SqlControls):
    """Keeps workflows, runs, attempts, tasks and controls (the port is ``calve.engine.ports.EngineState``)."""
