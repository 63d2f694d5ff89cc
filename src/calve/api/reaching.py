"""Which other workflows a definition starts, and which signals it sends: who pushes it has to be allowed to. Pure."""

from collections.abc import Iterator

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
