"""The state of the engine, in SQL."""

from calve.store.engine.attention import SqlAttention
from calve.store.engine.controls import SqlControls
from calve.store.engine.definitions import SqlDefinitions, SqlTemplates
from calve.store.engine.filters import SqlInstanceFilters
from calve.store.engine.grids import SqlGrids
from calve.store.engine.instances import SqlInstances
from calve.store.engine.live_steps import SqlLiveWork
from calve.store.engine.logs import SqlLogs
from calve.store.engine.overviews import SqlOverviews
from calve.store.engine.queue import SqlQueue
from calve.store.engine.signals import SqlSignals
from calve.store.engine.workload import SqlWorkload


class SqlEngineState(
    SqlDefinitions,
    SqlInstances,
    SqlLogs,
    SqlLiveWork,
    SqlQueue,
    SqlControls,
    SqlSignals,
    SqlTemplates,
    SqlOverviews,
    SqlInstanceFilters,
    SqlGrids,
    SqlWorkload,
    SqlAttention,
):
    """Stores the state of the engine (the port is ``calve.engine.ports.EngineState``)."""
