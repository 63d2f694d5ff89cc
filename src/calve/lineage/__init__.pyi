from .edges import (
    MOST_EDGES as MOST_EDGES,
    Direction as Direction,
    Edge as Edge,
    EdgeState as EdgeState,
    Visibility as Visibility,
    graph as graph,
)
from .emitter import EDGES as EDGES, NAME as NAME, Lineage as Lineage, senders_of as senders_of
from .ports import LineageState as LineageState, Sender as Sender
