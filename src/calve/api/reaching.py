"""Which other workflows a definition starts, and which signals it sends and waits for. Pure.

Who pushes it has to be allowed to.
"""

from collections.abc import Iterator

from calve.definition.model.triggers import VALID_THROUGH
from calve.definition.model.workflow import Workflow
from calve.definition.subworkflows import subworkflows

ANY = ""
"""Stands for a workflow or a signal that only a run can name: it may be any, of any namespace."""


def started_by(workflow: Workflow) -> Iterator[str]:
    """Yield the ids of the workflows that steps start, and ANY for each one that is not written out."""
    return (each.workflow_id or ANY for each in subworkflows(workflow))


def sent_by(workflow: Workflow) -> Iterator[str]:
    """Yield the names of the signals that steps send, and ANY for each one that is not written out."""
    outputs = (output for step in workflow.all_steps() for output in step.signal_outputs)
    return (ANY if "$" in output.name else output.name for output in outputs)


def awaited_by(workflow: Workflow) -> Iterator[str]:
    """Yield the names of the signals that steps and triggers wait for, and ANY for each one that is not written out.

    How far a table is complete is not among them: the engine asks whether the workflow may read the table.
    """
    by_steps = (awaited.name for step in workflow.all_steps() for awaited in step.signal_dependencies)
    by_triggers = (name for trigger in workflow.signal_triggers for name in trigger.definitions)
    for name in (*(ANY if "$" in name else name for name in by_steps), *by_triggers):
        if not name.startswith(VALID_THROUGH):
            yield name
