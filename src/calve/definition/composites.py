"""Steps that run other steps: the iterations of a foreach, and the workflows that subworkflow steps start."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from calve.definition.graph import shortest_path
from calve.definition.model import SubworkflowStep, Workflow
from calve.errors import ParamError

ITERATIONS = 25_000
"""The most iterations of a loop."""

LoopLists = Mapping[str, Sequence[Any]]


def count_iterations(lists: LoopLists) -> int:
    """Return the number of iterations of a foreach: every combination of its lists.

    Raises:
        ParamError: there are no lists, a value is not a list, or there are too many iterations.
    """
    for name, values in lists.items():
        if not isinstance(values, list | tuple):
            raise ParamError(f"Loop param [{name}] is not a list", param=name)
    if not lists:
        raise ParamError("A foreach needs at least one list in loop_params")
    total = prod(len(values) for values in lists.values())
    if total > ITERATIONS:
        raise ParamError(f"A foreach of [{total}] iterations is over the limit of [{ITERATIONS}]")
    return total


def iteration_values(lists: LoopLists, index: int) -> dict[str, Any]:
    """Return the values of one iteration, counted from 0; the first list varies fastest."""
    values = {}
    for name, items in lists.items():
        index, position = divmod(index, len(items))
        values[name] = items[position]
    return values


FindWorkflow = Callable[[str, str], Workflow | None]
"""Finds a workflow in a version (a number, active, latest or default); None if there is none."""


@dataclass(frozen=True, slots=True)
class Subworkflow:
    """The workflow that a subworkflow step starts; an id or version known only at run time is None."""

    workflow_id: str | None
    version: str | None
    is_awaited: bool


def subworkflow_of(step: SubworkflowStep) -> Subworkflow:
    """Return the workflow that a step starts."""
    workflow_id, version = _literal(step, "subworkflow_id"), _literal(step, "subworkflow_version")
    if "subworkflow_version" not in step.params:
        version = "active"
    return Subworkflow(workflow_id, version, step.sync is not False)


def _literal(step: SubworkflowStep, name: str) -> str | None:
    param = step.params.get(name)
    value = None if param is None or param.expression is not None else param.value
    return str(value) if isinstance(value, str | int) and "$" not in str(value) else None


def subworkflows(workflow: Workflow) -> Iterator[Subworkflow]:
    """Yield the workflows that the steps of a workflow start, including those inside loops."""
    return (subworkflow_of(step) for step in workflow.all_steps() if isinstance(step, SubworkflowStep))


def endless_cycle(workflow: Workflow, find: FindWorkflow, is_exclusive: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the ids on a path on which a workflow would wait for itself, from that workflow back to itself.

    Each workflow on the path waits for the end of the next one. It never ends if one of them is exclusive, so that
    no two of its instances run at once: its inner instance waits for the outer one.

    Args:
        workflow: where to look for paths back to it.
        find: finds other workflows.
        is_exclusive: whether only one instance of a workflow runs at a time.

    Returns:
        Empty, if there is no such path.
    """
    graph = _graph(workflow, find)
    for exclusive in graph:
        there = _path(graph, workflow.id, exclusive) if is_exclusive(exclusive) else ()
        back = _path(graph, exclusive, workflow.id) if there else ()
        if back:
            return (*back, *there[1:]) if exclusive != workflow.id else back
    return ()


def _graph(workflow: Workflow, find: FindWorkflow) -> dict[str, tuple[str, ...]]:
    """Return the workflows that each workflow waits for, for all that can be reached from one."""
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


def _path(graph: dict[str, tuple[str, ...]], start: str, end: str) -> tuple[str, ...]:
    """Return the shortest path of at least one edge from one workflow to another; empty if there is none."""
    found = shortest_path(graph[start], graph.__getitem__, end)
    return (start, *found) if found else ()
