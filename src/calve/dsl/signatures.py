"""Names, signatures and docstrings of the functions for step types, made from the declarations. Pure."""

import json
import keyword
import re
from collections.abc import Iterator
from inspect import Parameter, Signature
from textwrap import fill

from calve.definition.model import ParamType
from calve.definition.step_types import LISTS, MAPS, QUANTITY, SCALARS, Field, StepType, listed
from calve.dsl.any_step import LOOPS, PARAMETERS, SHARED

_ONLY_TYPED = frozenset({"retry_policy", "targets"})
"""Shared keywords that steps which run other steps lack."""
_WIDTH = 112
_ANNOTATIONS: dict[tuple[ParamType, ...], str] = {
    QUANTITY: "Quantity",
    LISTS: "Items",
    MAPS: "ValueMap",
    (ParamType.STRING,): "Text",
    (ParamType.SECRET,): "Text",
    (ParamType.LONG,): "Whole",
    (ParamType.DOUBLE,): "Number",
    (ParamType.BOOLEAN,): "Flag",
    (ParamType.MAP,): "ValueMap",
    (ParamType.STRING_MAP,): "TextMap",
    (ParamType.STRING_ARRAY,): "Texts",
    (ParamType.LONG_ARRAY,): "Wholes",
    (ParamType.DOUBLE_ARRAY,): "Sequence[float] | Param",
    (ParamType.BOOLEAN_ARRAY,): "Sequence[bool] | Param",
}
"""The names that ``calve.dsl.values`` has for what a field accepts; the larger groups first."""
_KEYS: dict[ParamType, str] = {ParamType.STRING: "str", ParamType.LONG: "int", ParamType.BOOLEAN: "bool"}
_LOOP_PARAMS: dict[tuple[ParamType, ...], str] = {LISTS: "Mapping[str, Items | range]", SCALARS: "Mapping[str, Scalar]"}


def function_name(step_type: StepType) -> str:
    """Return the name of the function for a step type: that of its config map, if it has one."""
    return _identifier(step_type.config or step_type.name.lower())


def own_keywords(step_type: StepType) -> dict[str, Field]:
    """Return the fields of a step type by keyword."""
    declared = (*step_type.fields, *step_type.params, *step_type.keys)
    return {_identifier(field.keyword or field.name): field for field in declared}


def shared_keywords(step_type: StepType) -> dict[str, str]:
    """Return the shared keywords of a function with the names they have in ``step``.

    Where a type has a field of the same name, ``step_`` goes before the shared one.
    """
    own = own_keywords(step_type)
    shared = (name for name in SHARED if step_type.is_leaf or name not in _ONLY_TYPED)
    return {f"step_{name}" if name in own else name: name for name in shared}


def signature(step_type: StepType) -> Signature:
    """Return the signature of the function for a step type."""
    first = Parameter("step_id", Parameter.POSITIONAL_ONLY, annotation="str")
    own = [_parameter(name, field, step_type) for name, field in own_keywords(step_type).items()]
    shared = [PARAMETERS[name].replace(name=key) for key, name in shared_keywords(step_type).items()]
    returned = "Loop" if step_type.name in LOOPS else "Step"
    return Signature([first, *own, *shared, PARAMETERS["more"]], return_annotation=returned)


def docstring(step_type: StepType) -> str:
    """Return the docstring of the function for a step type."""
    arguments = {"step_id": "The id of the step."}
    arguments |= {name: _meaning(field) for name, field in own_keywords(step_type).items()}
    for key, name in shared_keywords(step_type).items():
        if key != name:
            arguments[key] = f"What ``{name}`` is for other steps; here ``{name}`` is a field of the type."
    arguments["**more"] = "The keywords that all steps share (see ``step``), and params of the step."
    entries = (
        fill(f"{name}: {meaning}", _WIDTH, initial_indent="    ", subsequent_indent="        ")
        for name, meaning in arguments.items()
    )
    doc = f"{step_type.doc[:1].lower()}{step_type.doc[1:]}"
    return "\n".join([f"Describe a step that {doc}", "", "Args:", *entries])


def _identifier(word: str) -> str:
    name = re.sub(r"\W", "_", word)
    return f"{name}_" if keyword.iskeyword(name) or name in {"step_id", "more"} else name


def _parameter(name: str, field: Field, step_type: StepType) -> Parameter:
    accepted = _KEYS[field.types[0]] if field in step_type.keys else _annotation(field)
    if field.required and not field.from_id:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=accepted)
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=f"{accepted} | None", default=None)


def _annotation(field: Field) -> str:
    if field.name == "loop_params":
        return _LOOP_PARAMS[field.values]
    found = " | ".join(_specific(name, field) for name in _groups(field.types))
    return f"Step | {found}" if field.is_step else found


def _groups(types: tuple[ParamType, ...]) -> Iterator[str]:
    left = set(types)
    for group, name in _ANNOTATIONS.items():
        if left.issuperset(group):
            left.difference_update(group)
            yield name


def _specific(name: str, field: Field) -> str:
    """Return a more specific type where the field has choices, or a map whose values are texts."""
    choices = f"Literal[{', '.join(map(json.dumps, field.choices))}]"
    match name:
        case "Text" if field.choices:
            return f"{choices} | Reference | Param"
        case "Texts" if field.choices:
            return f"Sequence[{choices}] | Param"
        case "ValueMap" if field.values == (ParamType.STRING,):
            return "TextMap"
        case _:
            return name


def _meaning(field: Field) -> str:
    parts = [field.doc]
    if field.is_step:
        parts.append("Or the step itself.")
    if field.fields:
        names = listed((f"``{item.name}``" for item in field.fields), "and")
        parts.append(f"A map of {names}.")
    if field.from_id:
        parts.append("Default: the id of the step.")
    if field.default is not None:
        parts.append(f"Default: ``{field.default!r}``.".replace("'", '"'))
    return " ".join(parts)
