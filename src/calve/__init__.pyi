from . import dsl as dsl
from .connection import (
    Change as Change,
    Connection as Connection,
    Graph as Graph,
    Instance as Instance,
    Records as Records,
    connect as connect,
)
from .merging import merge as merge

__version__: str
