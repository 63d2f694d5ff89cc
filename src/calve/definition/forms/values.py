"""Values of a document: converted to texts and lists, and the types of params that they imply."""

from collections.abc import Callable

from calve.definition.document import Node, entries as entries_of
from calve.definition.model import ParamType, StringParam
from calve.definition.params import SCALARS

ANY = "*"
"""In a path: every item of a list or every value of a map."""

LARGEST_NUMBER = 4096
"""In bits; Python refuses to write numbers that are much larger."""


def text_of(node: Node) -> str | None:
    """Return a scalar as text, as YAML and JSON write it; None for other values."""
    match node.value:
        case bool() as truth:
            return "true" if truth else "false"
        case int() as number if number.bit_length() > LARGEST_NUMBER:
            return None
        case str() | int() | float() as scalar:
            return str(scalar)
        case _:
            return None


def as_text(node: Node) -> Node:
    """Return a number as text, because ids and versions may look like numbers."""
    text = text_of(node)
    return node if text is None or isinstance(node.value, bool) else node.made(text)


def as_list(node: Node) -> Node:
    """Return a list; a single text becomes a list of one."""
    return node.made([node]) if isinstance(node.value, str) else node


def items_of(node: Node) -> list[Node]:
    """Return the items of a list; a single value is its own only item."""
    return node.value if isinstance(node.value, list) else [node]


def without_nulls(node: Node) -> Node:
    """Return a map without null entries, which mean the same as missing ones."""
    if not isinstance(node.value, dict):
        return node
    return node.made({key: item for key, item in node.value.items() if item.value is not None})


def uppered(node: Node, *ways: str) -> Node:
    """Return a tree with the words at some paths in upper case; a path is ``backoff.type`` or ``tags.*``."""
    for way in ways:
        node = _uppered(node, tuple(way.split(".")))
    return node


def _uppered(node: Node, way: tuple[str, ...]) -> Node:
    if not way:
        return node.made(node.value.upper()) if isinstance(node.value, str) else node
    step, rest = way[0], way[1:]
    match node.value:
        case list() as items if step == ANY:
            return node.made([_uppered(item, rest) for item in items])
        case dict() as entries:
            return node.made(
                {key: _uppered(item, rest) if step in {key, ANY} else item for key, item in entries.items()}
            )
        case _:
            return node


_ARRAYS: dict[frozenset[ParamType | None], ParamType] = {
    **{frozenset({scalar}): ParamType[f"{scalar.name}_ARRAY"] for scalar in SCALARS.values()},
    frozenset(): ParamType.STRING_ARRAY,
    # Maestro goes by the first item and cuts the others to whole numbers.
    frozenset({ParamType.LONG, ParamType.DOUBLE}): ParamType.DOUBLE_ARRAY,
}
_WIDER: dict[ParamType, ParamType] = {
    ParamType.DOUBLE: ParamType.LONG,
    ParamType.DOUBLE_ARRAY: ParamType.LONG_ARRAY,
    ParamType.MAP: ParamType.STRING_MAP,
    ParamType.SECRET: ParamType.STRING,
}
"""Another type whose values a type accepts."""

_FIELDS = frozenset(StringParam.model_fields)


def implied(node: Node, is_marked: Callable[[str], bool]) -> ParamType | None:
    """Return the type of a literal, or None; a map is a MAP of params if ``is_marked`` holds for one of its keys."""
    match node.value:
        case list() as items:
            return _ARRAYS.get(frozenset(_scalar(item) for item in items))
        case dict() as entries:
            is_texts = bool(entries) and all(isinstance(item.value, str) for item in entries.values())
            return ParamType.STRING_MAP if is_texts and not any(map(is_marked, entries)) else ParamType.MAP
        case _:
            return _scalar(node)


def _scalar(node: Node) -> ParamType | None:
    return SCALARS.get(type(node.value))


def fits(kind: ParamType, given: ParamType, node: Node) -> bool:
    """Tell whether a literal of the type ``given`` fits a param of the type ``kind``."""
    match node.value:
        case []:
            return kind.value.endswith("_ARRAY")
        case {} as entries if not entries:
            return kind in {ParamType.MAP, ParamType.STRING_MAP}
        case _:
            return given in {kind, _WIDER.get(kind)}


def is_typed(node: Node) -> bool:
    """Tell whether a value is a param in full, as in Maestro's JSON: a type, and a value or an expression."""
    entries = entries_of(node)
    kind = entries["type"].value if "type" in entries else None
    has_value = "value" in entries or "expression" in entries
    is_kind = isinstance(kind, str) and kind.upper() in ParamType.__members__
    return has_value and is_kind and entries.keys() <= _FIELDS
