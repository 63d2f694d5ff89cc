"""The routes, by what they are about."""

from calve.api.routes import (
    breakpoints,
    captures,
    controls,
    events,
    health,
    instances,
    logs,
    metrics,
    outputs,
    permits,
    properties,
    signals,
    starts,
    steps,
    templates,
    triggers,
    workflows,
)

ROUTERS = tuple(
    part.routes.router
    for part in (
        breakpoints,
        workflows,
        properties,
        starts,
        controls,
        logs,
        steps,
        instances,
        signals,
        triggers,
        permits,
        templates,
        outputs,
        captures,
        events,
        health,
        metrics,
    )
)
"""In the order in which they are tried: those whose paths are more exact come first."""

__all__ = ["ROUTERS"]
