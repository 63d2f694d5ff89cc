"""The declaration of a step type as the tables of its reference page. Pure."""

import json
from collections.abc import Iterable, Iterator

from calve.definition.model import ParamType
from calve.definition.step_types.step_type import DYNAMIC, LISTS, MAPS, Choose, Field, Output, StepType, listed

_VALUES: dict[tuple[ParamType, ...], str] = {
    LISTS: "list",
    MAPS: "map",
    (ParamType.STRING_ARRAY,): "list of texts",
    (ParamType.LONG_ARRAY,): "list of whole numbers",
    (ParamType.DOUBLE_ARRAY,): "list of numbers",
    (ParamType.BOOLEAN_ARRAY,): "list of true and false",
    (ParamType.STRING,): "text",
    (ParamType.SECRET,): "secret",
    (ParamType.LONG,): "whole number",
    (ParamType.DOUBLE,): "number",
    (ParamType.BOOLEAN,): "true or false",
    (ParamType.STRING_MAP,): "map of texts",
    (ParamType.MAP,): "map",
}
"""The words for what a field accepts; the larger groups first."""


def reference(step_type: StepType) -> str:
    """Return the params, fields and outputs of a step type as Markdown."""
    given = {item.name: DYNAMIC for item in step_type.fields}
    outputs = [*step_type.outputs, *step_type.outputs_of(given).params.values()]
    parts = [
        _fields_table("Params of the step:", step_type.params),
        _fields_table("Keys of the step:", step_type.keys),
        _fields_table(f"Fields of `{step_type.config}`:", step_type.fields),
        " ".join(_chosen(choose) for choose in step_type.choose),
        _outputs_table("Outputs:" if step_type.is_leaf else "For the steps inside:", outputs),
    ]
    return "\n".join(f"{part}\n" for part in parts if part)


def _fields_table(title: str, fields: Iterable[Field]) -> str:
    rows = list(_rows(fields))
    return "\n".join([title, "", "| name | value | default | meaning |", "|---|---|---|---|", *rows]) if rows else ""


def _rows(fields: Iterable[Field], prefix: str = "") -> Iterator[str]:
    for item in fields:
        yield f"| `{prefix}{item.name}` | {_value(item.types)} | {_default(item)} | {_meaning(item)} |"
        yield from _rows(item.fields, f"{item.name}.")


def _value(types: tuple[ParamType, ...]) -> str:
    left, found = set(types), []
    for group, words in _VALUES.items():
        if left.issuperset(group):
            left.difference_update(group)
            found.append((types.index(group[0]), words))
    return ", ".join(words for _, words in sorted(found))


def _default(item: Field) -> str:
    if item.required:
        return "**required**"
    if item.default is None:
        return "–"
    return f"`{item.default if isinstance(item.default, str) else json.dumps(item.default)}`"


def _meaning(item: Field) -> str:
    parts = [item.doc.replace("|", "\\|")]
    if item.choices:
        other = ", or a map" if set(item.types).intersection(MAPS) else ""
        parts.append(f"One of {', '.join(f'`{choice}`' for choice in item.choices)}{other}.")
    if item.minimum is not None and item.maximum is not None:
        parts.append(f"From {item.minimum:,} to {item.maximum:,}.")
    elif item.minimum is not None:
        parts.append(f"At least {item.minimum:,}.")
    elif item.maximum is not None:
        parts.append(f"At most {item.maximum:,}.")
    if item.keyword:
        parts.append(f"Written `{item.keyword}` in YAML and Python.")
    if item.from_id:
        parts.append("There it may be left out: the default is the id of the step.")
    return " ".join(parts)


def _chosen(choose: Choose) -> str:
    names = listed((f"`{name}`" for name in choose.names), "and")
    if choose.without:
        text = f"Exactly one of {names} should be given; a step without any of them {choose.without}."
    elif choose.is_optional:
        text = f"At most one of {names} may be given."
    elif choose.most == 1:
        text = f"Exactly one of {names} must be given."
    else:
        text = f"At least one of {names} must be given."
    return f"{text} `{choose.beside}` may also be a param of the step itself." if choose.beside else text


def _outputs_table(title: str, outputs: Iterable[Output]) -> str:
    rows = [f"| `{item.name}` | {item.type} | {item.doc} |" for item in outputs]
    return "\n".join([title, "", "| output | type | meaning |", "|---|---|---|", *rows]) if rows else ""
