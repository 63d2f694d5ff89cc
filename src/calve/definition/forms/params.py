"""Params as the YAML forms write them: ``["!"] name ["<" type ">"] ["(" mode ")"]: value``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from calve.definition.document import Node
from calve.definition.forms.inference import fits, implied, is_typed
from calve.definition.forms.shapes import entries_of, text_of
from calve.definition.model.params import ParamMode, ParamType
from calve.definition.problems import Problems, did_you_mean

TYPES: dict[str, ParamType] = {
    **{kind.value.lower(): kind for kind in ParamType},
    "map": ParamType.STRING_MAP,
    "pmap": ParamType.MAP,
    "array<string>": ParamType.STRING_ARRAY,
    "array<long>": ParamType.LONG_ARRAY,
    "array<double>": ParamType.DOUBLE_ARRAY,
    "array<boolean>": ParamType.BOOLEAN_ARRAY,
}
"""The types by the words for them: Maestro's own, and the shorter ones of YAML."""

SHORT_TYPES = (
    "string",
    "long",
    "double",
    "boolean",
    "map",
    "pmap",
    "secret",
    "array<string>",
    "array<long>",
    "array<double>",
    "array<boolean>",
)

_KEY = re.compile(r"(!?)([^!<>()]+)(?:<(.*)>\s*)?(?:\(([^()]*)\)\s*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParamKey:
    """What the key of a param says."""

    name: str
    is_expression: bool = False
    type: ParamType | None = None
    mode: ParamMode | None = None


def param_key(key: str, node: Node, problems: Problems) -> ParamKey | None:
    """Return what a key says of its param; report a key that is none."""
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


def params(entries: Mapping[str, Node], problems: Problems, *, config: str | None = None) -> dict[str, Node]:
    """Return typed params for entries; the one named ``config`` is always a MAP."""
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
        hint = "a list holds texts, or numbers, or true and false, and nothing else"
        problems.add(node, "param_value", f"the value of {key.name} has no type", hint=hint)
        return None
    is_map = is_config and key.type in {None, ParamType.STRING_MAP} and isinstance(node.value, dict)
    kind = ParamType.MAP if is_map else key.type or given
    if not fits(kind, given, node):
        hint = "quote it" if kind in {ParamType.STRING, ParamType.SECRET} and text_of(node) is not None else ""
        problems.add(node, "param_type", f"{key.name} is to be a {kind}, but its value is a {given}", hint=hint)
        return None
    if kind is ParamType.MAP:
        if is_typed(node) and key.type is None:
            hint = f"in YAML the type stands in the key: {key.name}<long>: 5"
            problems.warn(node, "param_looks_typed", f"{key.name} is a map with the entry type", hint=hint)
        return _map(node, key.mode, problems)
    return _typed(node, kind, key.mode, "value", node)


def _map(node: Node, mode: ParamMode | None, problems: Problems) -> Node:
    return _typed(node, ParamType.MAP, mode, "value", node.made(params(entries_of(node), problems)))


def _expression(key: ParamKey, node: Node, problems: Problems) -> Node | None:
    text = text_of(node)
    if text is None:
        problems.add(node, "expression_not_text", f"the expression of {key.name} is not a text")
        return None
    return _typed(node, key.type or ParamType.STRING, key.mode, "expression", node.made(text))


def is_marked(key: str) -> bool:
    """Tell whether a key says more than a name, so that it can only be the key of a param."""
    match = _KEY.fullmatch(key.strip())
    return match is not None and (bool(match[1]) or "".join((match[3] or "").split()).lower() in TYPES)


def _typed(node: Node, kind: ParamType, mode: ParamMode | None, field: str, value: Node) -> Node:
    written = {"type": kind.value, field: value}
    return node.made(written if mode is None else {**written, "mode": mode.value})
