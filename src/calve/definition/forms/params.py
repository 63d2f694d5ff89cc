"""Params as in YAML (``!name<type>(mode): value``) and as in Maestro's JSON (``{"type": …, "value": …}``)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.values import fits, implied, is_typed, text_of, uppered, without_nulls
from calve.definition.model import ParamMode, ParamType
from calve.definition.problems import Problems, did_you_mean

_SCALARS = ("string", "long", "double", "boolean")
SHORT_TYPES: dict[str, ParamType] = {
    **{word: ParamType[word.upper()] for word in _SCALARS},
    "map": ParamType.STRING_MAP,
    "pmap": ParamType.MAP,
    "secret": ParamType.SECRET,
    **{f"array<{word}>": ParamType[f"{word.upper()}_ARRAY"] for word in _SCALARS},
}
"""The types by the short names that YAML has for them."""
TYPES: dict[str, ParamType] = {kind.value.lower(): kind for kind in ParamType} | SHORT_TYPES
"""The types by all their names, Maestro's own too."""

_KEY = re.compile(r"(!?)([^!<>()]+)(?:<(.*)>\s*)?(?:\(([^()]*)\)\s*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParamKey:
    """The parts of a param's key in YAML: ``["!"] name ["<" type ">"] ["(" mode ")"]``."""

    name: str
    is_expression: bool = False
    type: ParamType | None = None
    mode: ParamMode | None = None


def param_key(key: str, node: Node, problems: Problems) -> ParamKey | None:
    """Return the parts of a param's key; None if it is malformed, which is reported."""
    match = _KEY.fullmatch(key.strip())
    if match is None or not match[2].strip():
        hint = "a key is written name, name<type>, name(mode), or with a ! in front for an expression"
        problems.add(node, "param_key", f"{key!r} is not the key of a param", hint=hint, at_key=True)
        return None
    kind = mode = None
    if match[3] is not None:
        word = "".join(match[3].split()).lower()
        if (kind := TYPES.get(word)) is None:
            problems.add(
                node,
                "param_type_unknown",
                f"{match[3]} in {key} is not a type",
                hint=did_you_mean(word, SHORT_TYPES),
                at_key=True,
            )
            return None
    if match[4] is not None:
        word = match[4].strip().upper()
        if word not in ParamMode.__members__:
            hint = did_you_mean(word, [known.value.lower() for known in ParamMode])
            problems.add(node, "param_mode_unknown", f"{match[4]} in {key} is not a mode", hint=hint, at_key=True)
            return None
        mode = ParamMode[word]
    return ParamKey(match[2].strip(), bool(match[1]), kind, mode)


def yaml_params(entries: Mapping[str, Node], problems: Problems, *, config: str | None = None) -> dict[str, Node]:
    """Return the params that YAML entries define, in full; the one named ``config`` is always a MAP."""
    found: dict[str, Node] = {}
    for key, node in entries.items():
        parsed = param_key(key, node, problems)
        if parsed is None:
            continue
        if parsed.name in found:
            problems.add(node, "said_twice", f"the param {parsed.name} is given twice", at_key=True)
            continue
        written = _param(parsed, node, problems, is_config=parsed.name == config)
        if written is not None:
            found[parsed.name] = written
    return found


def _param(key: ParamKey, node: Node, problems: Problems, *, is_config: bool) -> Node | None:
    if node.value is None:
        hint = f"write {key.name}: '' for an empty text"
        problems.add(node, "param_without_value", f"the param {key.name} has no value", hint=hint, at_key=True)
        return None
    if key.is_expression:
        return _expression(key, node, problems)
    given = implied(node, is_marked)
    if given is None:
        hint = "all items of a list must be texts, or numbers, or true and false"
        problems.add(node, "param_value", f"the value of {key.name} has no type", hint=hint)
        return None
    is_map = is_config and key.type in {None, ParamType.STRING_MAP} and isinstance(node.value, dict)
    kind = ParamType.MAP if is_map else key.type or given
    if not fits(kind, given, node):
        hint = "quote it" if kind in {ParamType.STRING, ParamType.SECRET} and text_of(node) is not None else ""
        problems.add(node, "param_type", f"{key.name} must be a {kind}, but its value is a {given}", hint=hint)
        return None
    if kind is ParamType.MAP:
        if is_typed(node) and key.type is None:
            hint = f"in YAML the type is part of the key: {key.name}<long>: 5"
            problems.warn(node, "param_looks_typed", f"{key.name} is a map with the entry type", hint=hint)
        return _map(node, key.mode, problems)
    return _typed(node, kind, key.mode, "value", node)


def _map(node: Node, mode: ParamMode | None, problems: Problems) -> Node:
    return _typed(node, ParamType.MAP, mode, "value", node.made(yaml_params(entries_of(node), problems)))


def _expression(key: ParamKey, node: Node, problems: Problems) -> Node | None:
    text = text_of(node)
    if text is None:
        problems.add(node, "expression_not_text", f"the expression of {key.name} is not a text")
        return None
    return _typed(node, key.type or ParamType.STRING, key.mode, "expression", node.made(text))


def is_marked(key: str) -> bool:
    """Tell whether a key has an expression mark or a type, so that it can only be the key of a param."""
    match = _KEY.fullmatch(key.strip())
    return match is not None and (bool(match[1]) or "".join((match[3] or "").split()).lower() in TYPES)


def _typed(node: Node, kind: ParamType, mode: ParamMode | None, field: str, value: Node) -> Node:
    written = {"type": kind.value, field: value}
    return node.made(written if mode is None else {**written, "mode": mode.value})


_WORDS = ("type", "mode", "internal_mode", "tags.*.namespace")


def typed_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map in which each must have a type."""
    found = {name: typed_param(name, item, problems) for name, item in entries_of(node).items()}
    return node.made(found) if found else node


def any_params(node: Node, problems: Problems) -> Node:
    """Return the params of a map in which each is written in full or as in YAML."""
    found: dict[str, Node] = {}
    for key, item in entries_of(node).items():
        written = {key: typed_param(key, item, problems)} if is_typed(item) else yaml_params({key: item}, problems)
        for name, param in written.items():
            if name in found:
                problems.add(item, "said_twice", f"the param {name} is given twice", at_key=True)
            found.setdefault(name, param)
    return node.made(found) if found else node


def typed_param(name: str, node: Node, problems: Problems) -> Node:
    """Return one param in full; a missing type is reported and inferred."""
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
    hint = f'write "type": "{kind}" next to its value'
    problems.add(node, "param_without_type", f"the param {name} has no type", hint=hint)
