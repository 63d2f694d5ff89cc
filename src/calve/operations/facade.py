"""All operations together."""

from calve.engine.views import API
from calve.operations.access import Access
from calve.operations.captures import Captures
from calve.operations.declaration import Operation, Topic, operations_of
from calve.operations.grids import Grids
from calve.operations.instances import Controls, Instances, Starts
from calve.operations.lineage import Lineage
from calve.operations.logs import Events, Logs
from calve.operations.maintenance import Maintenance
from calve.operations.overviews import Overviews
from calve.operations.permits import Permits
from calve.operations.signals import Signals
from calve.operations.steps import Breakpoints, Outputs, Steps
from calve.operations.tables import Tables
from calve.operations.templates import Templates
from calve.operations.triggers import Triggers
from calve.operations.workflows import Properties, Workflows

PREFIX = API
"""The prefix of the paths of all operations."""


class Operations(
    Breakpoints,
    Grids,
    Workflows,
    Properties,
    Starts,
    Controls,
    Logs,
    Steps,
    Instances,
    Signals,
    Triggers,
    Permits,
    Templates,
    Outputs,
    Captures,
    Tables,
    Lineage,
    Events,
    Access,
    Maintenance,
    Overviews,
):
    """All operations: in this process on behalf of a caller, or, as ``Client``, by a server."""

    __slots__ = ()


TOPICS: tuple[type[Topic], ...] = tuple(kind for kind in Operations.__bases__ if issubclass(kind, Topic))
"""In the order in which paths are matched: topics with more specific paths come first."""


def declared() -> list[tuple[str, Operation]]:
    """Return all operations, each with its tag."""
    return [(topic.tag, one) for topic in TOPICS for one in operations_of(topic)]
