"""Which workflows a workflow starts, as far as its definition says it, and where they lead back to it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from calve.definition.model.steps import SubworkflowStep
from calve.definition.model.workflow import Workflow

FindWorkflow = Callable[[str, str], Workflow | None]
"""Gives a workflow in a version (a number, active, latest or default); None if there is none."""


@dataclass(frozen=True, slots=True)
class Subworkflow:
    """What a subworkflow step starts; an id or a version that only a run can tell is None."""

    workflow_id: str | None
    version: str | None
    is_awaited: bool


def subworkflow_of(step: SubworkflowStep) -> Subworkflow:
    """Return what a step starts."""
    workflow_id, version = _literal(step, "subworkflow_id"), _literal(step, "subworkflow_version")
    if "subworkflow_version" not in step.params:
        version = "active"
    return Subworkflow(workflow_id, version, step.sync is not False)


def _literal(step: SubworkflowStep, name: str) -> str | None:
    param = step.params.get(name)
    value = None if param is None or param.expression is not None else param.value
    return str(value) if isinstance(value, str | int) and "$" not in str(value) else None


def subworkflows(workflow: Workflow) -> Iterator[Subworkflow]:
    """Yield what the steps of a workflow start, those inside its loops too."""
    return (subworkflow_of(step) for step in workflow.all_steps() if isinstance(step, SubworkflowStep))


def endless_cycle(workflow: Workflow, find: FindWorkflow, is_exclusive: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the ids on a way on which a workflow would wait for itself: from the one that does, back to it.

    Each workflow on the way waits for the end of the next one. That never comes if one of them is exclusive, so that
    no two of its instances run at once: its inner instance waits for the outer one.

    Args:
        workflow: where to look for ways that lead back to it.
        find: gives other workflows.
        is_exclusive: whether only one instance of a workflow runs at a time.

    Returns:
        Nothing, if there is no such way.
    """
    graph = _graph(workflow, find)
    for exclusive in graph:
        there = _way(graph, workflow.id, exclusive) if is_exclusive(exclusive) else ()
        back = _way(graph, exclusive, workflow.id) if there else ()
        if back:
            return (*back, *there[1:]) if exclusive != workflow.id else back
    return ()


def _graph(workflow: Workflow, find: FindWorkflow) -> dict[str, tuple[str, ...]]:
    """Return the workflows that each workflow waits for, over all that can be reached from one."""
    graph: dict[str, tuple[str, ...]] = {}
    pending: list[tuple[str, Workflow | None]] = [(workflow.id, workflow)]
    while pending:
        name, found = pending.pop(0)
        if name in graph:
            continue
        awaited = [each for each in (subworkflows(found) if found else ()) if each.is_awaited]
        graph[name] = tuple(each.workflow_id for each in awaited if each.workflow_id is not None)
        pending += [
            (each.workflow_id, find(each.workflow_id, each.version or "active"))
            for each in awaited
            if each.workflow_id is not None and each.workflow_id not in graph
        ]
    return graph


def _way(graph: dict[str, tuple[str, ...]], start: str, end: str) -> tuple[str, ...]:
    """Return the shortest way of at least one step from one workflow to another; nothing if there is none."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for after in graph[way[-1]]:
            if after == end:
                return (*way, after)
            if after not in seen:
                seen.add(after)
                ways.append((*way, after))
    return ()
