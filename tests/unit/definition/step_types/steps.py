"""Steps for tests, in canonical form."""

from typing import Any

from tests.unit.definition.placing import placed

from calve.definition.document import Mark, Node

_NAMES = {str: "STRING", int: "LONG", float: "DOUBLE", bool: "BOOLEAN"}


def param(value: Any) -> dict[str, Any]:
    """Return a literal as a param, its type inferred; a map becomes a MAP."""
    match value:
        case dict() if "expression" in value or {"type", "value"} <= value.keys():
            return value
        case dict():
            return {"type": "MAP", "value": {key: param(item) for key, item in value.items()}}
        case list():
            kind = _NAMES[type(value[0])] if value else "STRING"
            return {"type": f"{kind}_ARRAY", "value": value}
        case _:
            return {"type": _NAMES[type(value)], "value": value}


def step(kind: str | None, step_id: str = "s", **params: Any) -> Node:
    """Return a step with params; its key stands in line 1, whatever is inside in line 2."""
    named = {"params": {name: param(value) for name, value in params.items()}}
    written = {"id": step_id, **({"type": kind} if kind else {}), **named}
    return placed(written)


def with_fields(node: Node, **fields: Any) -> Node:
    """Return a step with more fields."""
    assert isinstance(node.value, dict)
    return Node({**node.value, **placed(fields).value}, Mark(1, 1), node.path)  # type: ignore[dict-item]
