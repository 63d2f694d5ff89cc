"""All that the engine keeps, in SQL."""

from calve.store.controls import SqlControls
from calve.store.definitions import SqlDefinitions
from calve.store.instances import SqlInstances
from calve.store.queue import SqlQueue
from calve.store.signals import SqlSignals


class SqlEngineState(SqlDefinitions, SqlInstances, SqlQueue, SqlControls, SqlSignals):
    """Keeps workflows, runs, attempts, tasks, controls and signals (the port is ``calve.engine.ports.EngineState``)."""
