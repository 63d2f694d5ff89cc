"""Params as Maestro's JSON writes them: ``{"type": …, "value": …}``."""

from collections.abc import Callable, Mapping

from calve.definition.document import Node
from calve.definition.forms.inference import implied
from calve.definition.forms.params import is_marked, params
from calve.definition.forms.shapes import entries_of, text_of, uppered, without_nulls
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems

_WORDS = ("type", "mode", "internal_mode", "tags.*.namespace")
_FIELDS = frozenset({"type", "value", "expression", "mode", "internal_mode", "tags", "validator", "meta"})


def typed_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map, each of which must say its type."""
    return _each(node, lambda name, item: typed_param(name, item, problems))


def any_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map, each written in full or as the YAML forms write it."""
    entries = entries_of(node)
    if not entries:
        return node
    short = params({key: item for key, item in entries.items() if not is_typed(item)}, problems)
    full = {key: typed_param(key, item, problems) for key, item in entries.items() if is_typed(item)}
    return node.made({**full, **short})


def is_typed(node: Node) -> bool:
    """Tell whether a value is a param in full: a type, and a value or an expression."""
    entries = entries_of(node)
    kind = text_of(entries["type"]) if "type" in entries else None
    has_value = "value" in entries or "expression" in entries
    return has_value and entries.keys() <= _FIELDS and (kind or "").upper() in ParamType.__members__


def typed_param(name: str, node: Node, problems: Problems) -> Node:
    """Return one param in full; where its type is missing, report it and go on with the one it would have."""
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


def _each(node: Node, written: Callable[[str, Node], Node]) -> Node:
    entries: Mapping[str, Node] = entries_of(node)
    return node.made({key: written(key, item) for key, item in entries.items()}) if entries else node
