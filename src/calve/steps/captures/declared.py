"""Which tables a workflow writes exactly once, as far as its definition tells. Pure."""

from calve.definition.model.steps import TypedStep
from calve.definition.model.workflow import Workflow


def declared_in(workflow: Workflow) -> list[tuple[str, str]]:
    """Return the stream and the name of every target; none, where one of them is known only in a run."""
    found = [
        (f"{workflow.id}/{step.id}", target)
        for step in workflow.all_steps()
        if isinstance(step, TypedStep)
        for target in step.targets
    ]
    return [] if any("$" in target for _, target in found) else found
