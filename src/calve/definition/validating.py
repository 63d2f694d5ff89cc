"""From a canonical document to the model, with every mistake at its place."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from calve.definition.document import Node
from calve.definition.model.base import Model
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problems, did_you_mean

_WORDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
"""What pydantic's own names for mistakes are called here."""
_BOUNDS = {
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
}
"""The bounds of numbers: the words, and where pydantic keeps the number."""


def validated(document: Node, problems: Problems) -> Definition | None:
    """Return the definition that a canonical document holds, or note all that is wrong with it."""
    try:
        return Definition.model_validate(document.plain())
    except ValidationError as error:
        for line in error.errors(include_url=False):
            _note(line, document, problems)
        return None


def _note(line: ErrorDetails, document: Node, problems: Problems) -> None:
    steps = line["loc"]
    node, name = document.at(steps), str(steps[-1])
    context = line.get("ctx", {})
    match line["type"]:
        case "extra_forbidden":
            known = sorted(_fields_at(steps[:-1]))
            message = f"there is no field {name} here"
            problems.add(node, "unknown_field", message, hint=did_you_mean(name, known), at_key=True)
        case "missing":
            problems.add(node, "missing_field", f"{name} is missing")
        case "union_tag_invalid":
            known = [tag for tag in (_bare(tag) for tag in context["expected_tags"].split(", ")) if tag]
            tag = str(context["tag"])
            problems.add(node, "unknown_kind", f"there is no {tag} here", hint=did_you_mean(tag, known))
        case "union_tag_not_found":
            problems.add(node, "missing_kind", _untagged(context))
        case "enum" | "literal_error":
            known = [_bare(word) for word in context["expected"].replace(" or ", ", ").split(", ")]
            message = f"{_called(node, name)} may not be {_shown(line['input'])}"
            problems.add(node, "unknown_word", message, hint=did_you_mean(str(line["input"]), known))
        case code if expected := _expected(code, line):
            message = f"{_called(node, name)} {expected}, not {_shown(line['input'])}"
            problems.add(node, "wrong_type" if code in _WORDS else code, message)
        case "too_short" | "string_too_short" if node.value:
            pass  # it has items, each of which is wrong and noted
        case "too_short" | "string_too_short":
            problems.add(node, "empty", f"{name} may not be empty")
        case code:
            problems.add(node, code, f"{name}: {line['msg']}")


def _expected(code: str, line: ErrorDetails) -> str:
    """Return what a value must be, in words; nothing, if that is not what is wrong with it."""
    if code in _BOUNDS:
        words, key = _BOUNDS[code]
        return f"must be {words} {line['ctx'][key]}"
    return line["msg"] if code == "not_a_duration" else _WORDS.get(code, "")


def _called(node: Node, name: str) -> str:
    """Return what a value is called where it was written: YAML's jobs are steps in the model."""
    tail = node.path.rpartition(".")[2]
    if name.isdigit():
        return f"an item of {tail.partition('[')[0]}"
    return tail if tail.isidentifier() else name


def _fields_at(steps: tuple[str | int, ...]) -> set[str]:
    """Return the fields that the models have at a place of the document."""
    models: list[type[Model]] = [Definition]
    for step in steps:
        if not isinstance(step, str):
            continue
        tagged = [model for model in models if step in _tags(model)]
        fields = [model.model_fields[step] for model in models if step in model.model_fields]
        models = tagged or [inner for field in fields for inner in _models_in(field.annotation)] or models
    return {name for model in models for name in model.model_fields}


def _tags(model: type[Model]) -> set[str]:
    """Return the words by which a union tells this model from others."""
    kind = model.model_fields["type"].default if "type" in model.model_fields else None
    return {str(kind), str(getattr(model, "kind", kind))}


def _models_in(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _bare(word: str) -> str:
    """Return a word without what Python's repr puts around it: ``<Kind.A: 'A'>`` and ``'A'`` are ``A``."""
    return word.rpartition("'")[0].rpartition("'")[2]


def _untagged(context: dict[str, Any]) -> str:
    field = context["discriminator"]
    return (
        "one of step, subworkflow, foreach, while, template must stand here alone"
        if "(" in field
        else f"{_bare(field)} is missing"
    )


def _shown(value: Any) -> str:
    """Return a value in a few words."""
    match value:
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return repr(value)[:60]
