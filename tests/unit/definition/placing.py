"""Documents for tests: plain values, placed."""

from typing import Any

from calve.definition.document import Mark, Node
from calve.definition.problems import Problem, Problems


def placed(value: Any, path: str = "") -> Node:
    """Return a plain value as a document in which every value has its own path and line 1."""
    mark = Mark(1, 1)
    match value:
        case dict():
            entries = {key: placed(item, f"{path}.{key}" if path else key) for key, item in value.items()}
            return Node(entries, mark, path, mark)
        case list():
            return Node([placed(item, f"{path}[{index}]") for index, item in enumerate(value)], mark, path, mark)
        case _:
            return Node(value, mark, path, mark)


def definition(*steps: dict[str, Any], **workflow: Any) -> dict[str, Any]:
    """Return a canonical document with these steps."""
    return {"workflow": {"id": "w", "steps": list(steps), **workflow}}


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """Return a step that leads to others without condition."""
    successors = dict.fromkeys(after, "true")
    return {"step": {"id": step_id, "type": "NoOp", "transition": {"successors": successors}, **fields}}


def only(problems: Problems) -> Problem:
    """Return the one problem there is."""
    (problem,) = problems
    return problem
