"""Which other workflows a definition starts, and which signals it sends: who pushes it has to be allowed to. Pure."""

from collections.abc import Iterable, Iterator

from calve.definition.model.steps import ForeachStep, Step, SubworkflowStep, WhileStep
from calve.engine.subworkflows import written_out

ANY = ""
"""Stands for a workflow or a signal that only a run can name: it may be any, of any namespace."""


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


def sent_by(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the names of the signals that steps send, and ANY for each one that is not written out."""
    for step in steps:
        yield from (ANY if "$" in output.name else output.name for output in step.signal_outputs)
        if isinstance(step, ForeachStep | WhileStep):
            yield from sent_by(step.steps)
