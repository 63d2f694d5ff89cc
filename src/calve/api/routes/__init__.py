"""The routes, by what they are about."""

from calve.api.routes import (
    about,
    breakpoints,
    captures,
    controls,
    events,
    health,
    instances,
    logs,
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
        about,
    )
)
"""In the order in which they are tried: those whose paths are more exact come first."""

__all__ = ["ROUTERS"]
