"""The type that a literal value has, and the types it may be taken for."""

from collections.abc import Callable

from calve.definition.document import Node
from calve.definition.forms.shapes import entries_of
from calve.definition.model.params import ParamType

_ARRAYS: dict[frozenset[ParamType | None], ParamType] = {
    frozenset(): ParamType.STRING_ARRAY,
    frozenset({ParamType.STRING}): ParamType.STRING_ARRAY,
    frozenset({ParamType.LONG}): ParamType.LONG_ARRAY,
    frozenset({ParamType.DOUBLE}): ParamType.DOUBLE_ARRAY,
    # Maestro goes by the first item and cuts the others to whole numbers.
    frozenset({ParamType.LONG, ParamType.DOUBLE}): ParamType.DOUBLE_ARRAY,
    frozenset({ParamType.BOOLEAN}): ParamType.BOOLEAN_ARRAY,
}
_WIDER: dict[ParamType, ParamType] = {
    ParamType.DOUBLE: ParamType.LONG,
    ParamType.DOUBLE_ARRAY: ParamType.LONG_ARRAY,
    ParamType.MAP: ParamType.STRING_MAP,
    ParamType.SECRET: ParamType.STRING,
}
"""What else may be given where a type is asked for."""

_FIELDS = frozenset({"type", "value", "expression", "mode", "internal_mode", "tags", "validator", "meta"})


def implied(node: Node, is_marked: Callable[[str], bool]) -> ParamType | None:
    """Return the type of a literal; a map with a key that ``is_marked`` holds params; None if it has no type."""
    match node.value:
        case list() as items:
            return _ARRAYS.get(frozenset(_scalar(item) for item in items))
        case dict() as entries:
            is_texts = bool(entries) and all(isinstance(item.value, str) for item in entries.values())
            return ParamType.STRING_MAP if is_texts and not any(map(is_marked, entries)) else ParamType.MAP
        case _:
            return _scalar(node)


def _scalar(node: Node) -> ParamType | None:
    match node.value:
        case bool():
            return ParamType.BOOLEAN
        case int():
            return ParamType.LONG
        case float():
            return ParamType.DOUBLE
        case str():
            return ParamType.STRING
        case _:
            return None


def fits(kind: ParamType, given: ParamType, node: Node) -> bool:
    """Tell whether a literal of the type ``given`` may stand for a param of the type ``kind``."""
    match node.value:
        case []:
            return kind.value.endswith("_ARRAY")
        case {} as entries if not entries:
            return kind in {ParamType.MAP, ParamType.STRING_MAP}
        case _:
            return given in {kind, _WIDER.get(kind)}


def is_typed(node: Node) -> bool:
    """Tell whether a value is a param in full, as Maestro's JSON has it: a type, and a value or an expression."""
    entries = entries_of(node)
    kind = entries["type"].value if "type" in entries else None
    has_value = "value" in entries or "expression" in entries
    is_kind = isinstance(kind, str) and kind.upper() in ParamType.__members__
    return has_value and is_kind and entries.keys() <= _FIELDS
