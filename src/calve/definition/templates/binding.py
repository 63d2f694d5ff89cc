"""Put values into the steps of a template: each step gets the params that it names."""

import re
from collections.abc import Iterator, Mapping

from calve.definition.document import Node
from calve.definition.model.params import InternalMode, ParamMode, ParamType
from calve.definition.params.interpolation import references
from calve.definition.problems import Problems
from calve.definition.walking import entries, entry, text

_EXPRESSIONS = frozenset({"expression", "condition", "successors"})
_WORD = re.compile(r"[A-Za-z_]\w*")


def bound(name: str, declared: Mapping[str, Node], step: Node, problems: Problems) -> dict[str, Node]:
    """Return the params of a template with the values that a step gives them, and those the step adds."""
    given = entries(entry(step, "params"))
    found: dict[str, Node] = {}
    for key, param in declared.items():
        own = given.get(key)
        mode = text(entry(param, "internal_mode"))
        has_value = bool({"value", "expression"} & entries(param).keys())
        if own is not None and mode == InternalMode.RESERVED:
            message = f"the template {name} sets {key} itself"
            problems.add(own, "reserved_param", message, hint="take it away", at_key=True)
        elif own is None and not has_value:
            if mode != InternalMode.OPTIONAL:
                problems.add(step, "missing_field", f"the template {name} needs {key}")
            continue
        found[key] = _plain(above(param, own) if own is not None else param, mode)
    return found | {key: param for key, param in given.items() if key not in declared}


def above(below: Node, own: Node) -> Node:
    """Return a param put above another: maps are merged key by key, anything else is replaced."""
    first, second = _as_map(below), _as_map(own)
    if first is None or second is None:
        return own
    merged = {key: above(first[key], item) if key in first else item for key, item in second.items()}
    return own.made({**entries(below), **entries(own), "type": ParamType.MAP.value, "value": {**first, **merged}})


def with_params(step: Node, params: Mapping[str, Node]) -> tuple[Node, frozenset[str]]:
    """Return a step with the params that it names put below its own, and their names.

    To have a param of the same name is to name it, unless the step's own is constant.
    """
    own = entries(entry(step, "params"))
    shared = {key for key, item in own.items() if text(entry(item, "mode")) != ParamMode.CONSTANT}
    outside = {key: item for key, item in entries(step).items() if key not in {"params", "steps"}}
    names = {*shared, *_named(step.made(outside)), *_named(step.made(dict(own)))} & params.keys()
    waiting = list(names)
    while waiting:
        more = _named(params[waiting.pop()]) & params.keys() - names
        names |= more
        waiting += more
    below = {key: param for key, param in params.items() if key in names and key not in own}
    # The step's own come last: by then what they refer to has been evaluated, and wins over the workflow's params.
    merged = {key: above(params[key], item) if key in shared & params.keys() else item for key, item in own.items()}
    found = {**below, **merged}
    written = {**entries(step), **({"params": found} if found else {})}
    return step.made(written), frozenset(names)


def _plain(param: Node, mode: str | None) -> Node:
    """Return a param without its internal mode, which is for templates only; what is reserved is constant."""
    parts = {key: item for key, item in entries(param).items() if key != "internal_mode"}
    if (inside := _as_map(param)) is not None and text(parts.get("type")) == ParamType.MAP:
        parts["value"] = param.made({key: _plain(item, None) for key, item in inside.items()})
    return param.made({**parts, **({"mode": ParamMode.CONSTANT.value} if mode == InternalMode.RESERVED else {})})


def _as_map(param: Node) -> dict[str, Node] | None:
    """Return the params inside a map; None for what is no map, or not a literal."""
    value = entry(param, "value")
    match text(entry(param, "type")):
        case ParamType.MAP if value is not None or "expression" not in entries(param):
            return dict(entries(value))
        case ParamType.STRING_MAP if value is not None:
            return {key: item.made({"type": "STRING", "value": item}) for key, item in entries(value).items()}
        case _:
            return None


def _named(node: Node) -> set[str]:
    """Return every name that the texts inside a value refer to."""
    return set(_names(node, is_expression=False))


def _names(node: Node, *, is_expression: bool) -> Iterator[str]:
    match node.value:
        case str() as words if is_expression:
            yield from _WORD.findall(words)
        case str() as words:
            yield from references(words)
        case list() as items:
            for item in items:
                yield from _names(item, is_expression=False)
        case dict() as parts:
            for key, item in parts.items():
                yield from _names(item, is_expression=is_expression or key in _EXPRESSIONS)
        case _:
            pass
