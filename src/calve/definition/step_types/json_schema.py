"""The declaration of a step type as JSON Schema."""

from itertools import combinations
from typing import Any

from calve.definition.model import ParamType
from calve.definition.step_types.step_type import Choose, Field, StepType

Schema = dict[str, Any]

REFERENCE: Schema = {"type": "string", "pattern": r"\$"}
"""A text with a reference, which may replace a value of any type."""
MARKED = "[!<(]"
"""Matches keys that mark an expression, a type or a mode."""
IS_PLAIN: Schema = {"propertyNames": {"pattern": "^[^!<(]*$"}}
"""A map without marked keys."""

_ITEMS: dict[ParamType, Schema] = {
    ParamType.STRING_ARRAY: {"type": "string"},
    ParamType.LONG_ARRAY: {"type": "integer"},
    ParamType.DOUBLE_ARRAY: {"type": "number"},
    ParamType.BOOLEAN_ARRAY: {"type": "boolean"},
}
_SCALARS: dict[ParamType, Schema] = {
    ParamType.STRING: {"type": "string"},
    ParamType.SECRET: {"type": "string"},
    ParamType.LONG: {"type": "integer"},
    ParamType.DOUBLE: {"type": "number"},
    ParamType.BOOLEAN: {"type": "boolean"},
}


def value_schema(item: Field) -> Schema:
    """Return the schema of a field in YAML."""
    found: list[Schema] = []
    for kind in item.types:
        written = _of_type(kind, item)
        if written not in found:
            found.append(written)
    if REFERENCE not in found and {"type": "string"} not in found:
        found.append(REFERENCE)
    return _described(found[0] if len(found) == 1 else {"anyOf": found}, item)


def key_schema(item: Field) -> Schema:
    """Return the schema of a key of the step itself, which cannot be a reference."""
    return _described(_of_type(item.types[0], item), item)


def _described(shape: Schema, item: Field) -> Schema:
    return {**shape, "description": item.doc, **({} if item.default is None else {"default": item.default})}


def _of_type(kind: ParamType, item: Field) -> Schema:
    match kind:
        case ParamType.STRING_MAP | ParamType.MAP:
            return _map_schema(item)
        case ParamType.STRING_ARRAY | ParamType.LONG_ARRAY | ParamType.DOUBLE_ARRAY | ParamType.BOOLEAN_ARRAY:
            return {"type": "array", "items": _limited(_ITEMS[kind], item)}
        case _:
            return _limited(_SCALARS[kind], item)


def _limited(shape: Schema, item: Field) -> Schema:
    """Return a shape with the field's choices or bounds."""
    if shape == {"type": "string"}:
        return {"anyOf": [{"enum": list(item.choices)}, REFERENCE]} if item.choices else shape
    bounds = {"minimum": item.minimum, "maximum": item.maximum}
    return {
        **shape,
        **{key: bound for key, bound in bounds.items() if bound is not None and shape["type"] != "boolean"},
    }


def _map_schema(item: Field) -> Schema:
    if item.fields:
        return {**fields_schema(item.fields), **_required(item.fields)}
    if not item.values:
        return {"type": "object"}
    values = value_schema(Field(item.name, item.values, item.doc))
    return {
        "type": "object",
        "additionalProperties": {key: part for key, part in values.items() if key != "description"},
    }


def fields_schema(fields: tuple[Field, ...]) -> Schema:
    """Return the schema of a map of fields; it does not check the values of marked keys."""
    return {
        "type": "object",
        "properties": {item.name: value_schema(item) for item in fields},
        "patternProperties": {MARKED: True},
        "additionalProperties": False,
    }


def config_schema(step_type: StepType) -> Schema:
    """Return the schema of the config map of a step type, without what is required."""
    return {**fields_schema(step_type.fields), "description": step_type.doc}


def needs_schema(step_type: StepType) -> Schema:
    """Return what the config map of a step type requires, unless marked keys may give it."""
    wanted = [_required(step_type.fields), *(_chosen(choose) for choose in step_type.choose)]
    found = [part for part in wanted if part]
    return {"if": IS_PLAIN, "then": {"allOf": found}} if found else {}


def _required(fields: tuple[Field, ...]) -> Schema:
    names = [item.name for item in fields if item.required]
    return {"required": names} if names else {}


def _chosen(choose: Choose) -> Schema:
    each: list[Schema] = [{"required": [name]} for name in choose.names]
    if choose.is_optional:
        return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(choose.names, choose.most + 1)]}}
    return {"oneOf": each} if choose.most == 1 else {"anyOf": each}
