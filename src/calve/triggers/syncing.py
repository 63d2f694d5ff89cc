"""Which triggers the active version of a workflow has. Pure."""

from calve.engine.model import Json
from calve.triggers.model import Kind, Wanted


def wanted(definition: Json) -> list[Wanted]:
    """Return the triggers of a pushed definition."""
    workflow = definition.get("workflow", {})
    return [
        Wanted(f"{kind}:{position}", kind, written)
        for kind in Kind
        for position, written in enumerate(workflow.get(f"{kind}_triggers", ()))
    ]
