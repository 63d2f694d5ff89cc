"""Params as Maestro's JSON writes them: ``{"type": …, "value": …}``."""

from calve.definition.document import Node
from calve.definition.forms.inference import implied, is_typed
from calve.definition.forms.params import is_marked, params
from calve.definition.forms.shapes import entries_of, uppered, without_nulls
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems

_WORDS = ("type", "mode", "internal_mode", "tags.*.namespace")


def typed_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map, each of which must say its type."""
    found = {name: typed_param(name, item, problems) for name, item in entries_of(node).items()}
    return node.made(found) if found else node


def any_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map, each written in full or as the YAML forms write it."""
    found: dict[str, Node] = {}
    for key, item in entries_of(node).items():
        written = {key: typed_param(key, item, problems)} if is_typed(item) else params({key: item}, problems)
        for name, param in written.items():
            if name in found:
                problems.add(item, "said_twice", f"the param {name} is given twice", at_key=True)
            found.setdefault(name, param)
    return node.made(found) if found else node


def typed_param(name: str, node: Node, problems: Problems) -> Node:
    """Return one param in full; where its type is missing, report it and go on with the one it would have."""
    if node.value is None:
        problems.add(node, "param_without_value", f"the param {name} has no value", at_key=True)
        return node.made({"type": ParamType.STRING.value})
    if not isinstance(node.value, dict):
        kind = implied(node, is_marked) or ParamType.STRING
        _report(name, node, kind, problems)
        return node.made({"type": kind.value, "value": node})
    param = uppered(without_nulls(node), *_WORDS)
    entries = entries_of(param)
    value = entries.get("value")
    if "type" not in entries:
        kind = (implied(value, is_marked) if value else None) or ParamType.STRING
        _report(name, node, kind, problems)
        entries = {**entries, "type": node.made(kind.value)}
    if value is not None and entries["type"].value == ParamType.MAP:
        entries = {**entries, "value": typed_params(value, problems)}
    return node.made(entries)


def _report(name: str, node: Node, kind: ParamType, problems: Problems) -> None:
    hint = f'write "type": "{kind}" beside its value'
    problems.add(node, "param_without_type", f"the param {name} does not say its type", hint=hint)
