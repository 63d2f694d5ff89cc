"""Which other workflows a definition starts: who pushes it has to be allowed to run them. Pure."""

from collections.abc import Iterable, Iterator

from calve.definition.model.steps import ForeachStep, Step, SubworkflowStep, WhileStep
from calve.engine.subworkflows import written_out

ANY = ""
"""Stands for a workflow that only a run can name: it may be any, of any namespace."""


def started_by(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the ids of the workflows that steps start, and ANY for each one that is not written out."""
    for step in steps:
        match step:
            case SubworkflowStep():
                yield written_out(step) or ANY
            case ForeachStep() | WhileStep():
                yield from started_by(step.steps)
            case _:
                continue
