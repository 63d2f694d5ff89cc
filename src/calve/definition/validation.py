"""Validate a canonical document: by the model, and by the checks that the model cannot make."""

import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from calve.definition.document import Node, all_steps, entries, entry, items, steps_of, text
from calve.definition.model import (
    LOOPS,
    NAME_BYTES,
    RESERVED_PARAMS,
    Definition,
    Model,
    check_reference,
    is_signal_name,
)
from calve.definition.params import SIZE_LIMIT
from calve.definition.problems import Problems, did_you_mean
from calve.definition.references import all_expressions
from calve.errors import ExpressionError
from calve.expressions import complete, lint, parse
from calve.namespaces import is_shared, namespace_of, owns
from calve.texts import text_fault

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
"""Messages for the error types of pydantic."""
_BOUNDS = {
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
}
"""Messages for bounds of numbers, and the key of the bound in pydantic's context."""


def validated(document: Node, problems: Problems) -> Definition | None:
    """Return the definition in a canonical document; None if it has errors, which are reported."""
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
            message = f"{_called(node, name)} cannot be {_shown(line['input'])}"
            problems.add(node, "unknown_word", message, hint=did_you_mean(str(line["input"]), known))
        case code if expected := _expected(code, line):
            message = f"{_called(node, name)} {expected}, not {_shown(line['input'])}"
            problems.add(node, "wrong_type" if code in _WORDS else code, message)
        case "too_short" | "string_too_short" if node.value:
            pass  # it has items, and the error of each is reported
        case "too_short" | "string_too_short":
            problems.add(node, "empty", f"{name} cannot be empty")
        case code:
            problems.add(node, code, f"{name}: {line['msg']}")


def _expected(code: str, line: ErrorDetails) -> str:
    """Return what a value must be; empty if the error is of another kind."""
    if code in _BOUNDS:
        words, key = _BOUNDS[code]
        return f"must be {words} {line['ctx'][key]}"
    return line["msg"] if code == "not_a_duration" else _WORDS.get(code, "")


def _called(node: Node, name: str) -> str:
    """Return the name of a value as it was written: YAML's jobs are steps in the model."""
    tail = node.path.rpartition(".")[2]
    if name.isdigit():
        return f"an item of {tail.partition('[')[0]}"
    return tail if tail.isidentifier() else name


def _fields_at(steps: tuple[str | int, ...]) -> set[str]:
    """Return the fields that the models have at a path of the document."""
    models: list[type[Model]] = [Definition]
    for step in steps:
        if not isinstance(step, str):
            continue
        tagged = [model for model in models if step in _tags(model)]
        fields = [model.model_fields[step] for model in models if step in model.model_fields]
        models = tagged or [inner for field in fields for inner in _models_in(field.annotation)] or models
    return {name for model in models for name in model.model_fields}


def _tags(model: type[Model]) -> set[str]:
    """Return the tags by which a union selects this model."""
    kind = model.model_fields["type"].default if "type" in model.model_fields else None
    return {str(kind), str(getattr(model, "kind", kind))}


def _models_in(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _bare(word: str) -> str:
    """Return a word without the quotes of Python's repr: ``<Kind.A: 'A'>`` and ``'A'`` are ``A``."""
    return word.rpartition("'")[0].rpartition("'")[2]


def _untagged(context: dict[str, Any]) -> str:
    field = context["discriminator"]
    return (
        "a step is a map with one key: step, subworkflow, foreach, while or template"
        if "(" in field
        else f"{_bare(field)} is missing"
    )


def _shown(value: Any) -> str:
    """Return a value for a message."""
    match value:
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return repr(value)[:60]


STEPS = 300
DEPTH = 10
REQUEST_BYTES = 256 * 1024
_CAPTURES = ("ip_capture", "icdc")
"""The config maps that may name a consumer."""


def check_document(document: Node, problems: Problems) -> None:
    """Report what the models cannot check: sizes, names, loops, signals, consumers, expressions."""
    _check_texts(document, problems)
    _check_sizes(document, problems)
    _check_step_ids(document, problems)
    _check_params(document, problems)
    _check_loops(document, problems)
    _check_signal_outputs(document, problems)
    _check_signal_names(document, problems)
    _check_consumers(document, problems)
    _check_expressions(document, problems)


def _check_texts(node: Node, problems: Problems) -> None:
    """Check the characters of texts: the reader has checked YAML and JSON, but not what Python made."""
    match node.value:
        case str() as written:
            if fault := text_fault(written, "this text"):
                problems.add(node, "character", fault.removesuffix("."), hint="remove it")
        case list() as listed:
            for item in listed:
                _check_texts(item, problems)
        case dict() as mapping:
            for key, item in mapping.items():
                if fault := text_fault(key, "this key"):
                    problems.add(item, "character", fault.removesuffix("."), hint="remove it", at_key=True)
                _check_texts(item, problems)
        case _:
            pass


def _check_sizes(document: Node, problems: Problems) -> None:
    workflow = entry(document, "workflow")
    size = len(json.dumps(document.plain()).encode())
    if size > REQUEST_BYTES:
        problems.add(document, "too_large", f"the definition has {size:,} bytes, more than {REQUEST_BYTES:,}")
    for holder in (workflow, *(step for _, step in all_steps(workflow))):
        params = entry(holder, "params")
        if params is not None and (length := len(json.dumps(params.plain()))) > SIZE_LIMIT:
            problems.add(params, "too_large", f"the params have {length:,} characters, more than {SIZE_LIMIT:,}")


def _check_step_ids(document: Node, problems: Problems) -> None:
    workflow = entry(document, "workflow")
    first: dict[str, Node] = {}
    count = 0
    for _, step in all_steps(workflow):
        count += 1
        node = entry(step, "id")
        if node is None or not (step_id := text(node)):
            continue
        if step_id in first:
            line = first[step_id].mark.line
            problems.add(node, "duplicate_step", f"the step id {step_id} is already used in line {line}")
        first.setdefault(step_id, node)
    if count > STEPS:
        at = entry(workflow, "steps") or document
        problems.add(at, "too_many_steps", f"the workflow has {count} steps, more than {STEPS}")


def _check_params(document: Node, problems: Problems) -> None:
    for params in _params(document):
        for name, param in entries(params).items():
            _check_param_name(name, param, problems)
            _check_defined(name, param, problems)


def _check_param_name(name: str, param: Node, problems: Problems) -> None:
    if name in RESERVED_PARAMS:
        problems.add(param, "reserved_param", f"{name} is reserved and cannot be the name of a param", at_key=True)
    try:
        check_reference(name)
    except PydanticCustomError as error:
        problems.add(param, error.type, error.message(), at_key=True)


def _check_defined(name: str, param: Node, problems: Problems) -> None:
    """Report a param without a value or an expression, also among the members of a map."""
    given = entries(param)
    if given and not {"value", "expression", "internal_mode"} & given.keys():
        problems.add(param, "param_undefined", f"the param {name} has neither a value nor an expression")
    if text(given.get("type")) == "MAP":
        for inner, member in entries(given.get("value")).items():
            _check_defined(f"{name}.{inner}", member, problems)


def _params(document: Node) -> Iterator[Node]:
    """Yield every mapping of params: the workflow's, the steps', and the triggers'."""
    workflow = entry(document, "workflow")
    holders = [workflow, *(step for _, step in all_steps(workflow)), *items(entry(workflow, "signal_triggers"))]
    for holder in holders:
        params = entry(holder, "params")
        if params is not None:
            yield params


def _check_loops(document: Node, problems: Problems) -> None:
    _check_loop_level(entry(document, "workflow"), problems, {}, 1)


def _check_loop_level(holder: Node | None, problems: Problems, outer: dict[str, Node], depth: int) -> None:
    for kind, step in steps_of(holder):
        if kind not in LOOPS:
            continue
        if depth > DEPTH:
            problems.add(step, "too_deep", f"loops are nested more than {DEPTH} deep")
            continue
        loop = entry(step, "params", "loop_params")
        if loop is None:
            problems.add(step, "missing_field", f"a {kind} needs loop_params")
        inner = dict(outer)
        for name, param in entries(entry(loop, "value")).items():
            if name in outer:
                message = f"the enclosing loop already has the loop param {name}, in line {outer[name].mark.line}"
                problems.add(param, "duplicate_loop_param", message, at_key=True)
            _check_loop_type(kind, name, param, problems)
            inner[name] = param
        _check_loop_level(step, problems, inner, depth + 1)


def _check_loop_type(kind: str, name: str, param: Node, problems: Problems) -> None:
    is_array = (text(entry(param, "type")) or "").endswith("_ARRAY")
    if kind == "foreach" and not is_array:
        problems.add(param, "loop_param_type", f"foreach iterates over arrays, but {name} is not an array")
    if kind == "while" and is_array:
        problems.add(param, "loop_param_type", f"while starts from single values, but {name} is an array")


def _check_signal_outputs(document: Node, problems: Problems) -> None:
    for _, step in all_steps(entry(document, "workflow")):
        for output in items(entry(step, "signal_outputs")):
            for name, param in entries(entry(output, "params")).items():
                if text(entry(param, "type")) not in {"STRING", "LONG"}:
                    problems.add(
                        param, "signal_param_type", f"a signal's param is STRING or LONG, but {name} is neither"
                    )


def _check_signal_names(document: Node, problems: Problems) -> None:
    """Report invalid names of signals; only the run can check names that contain references."""
    workflow = entry(document, "workflow")
    for trigger in items(entry(workflow, "signal_triggers")):
        for name, signal in entries(entry(trigger, "definitions")).items():
            _check_signal_name(name, signal, problems, at_key=True)
            _check_signal_params(entry(signal, "match_params"), problems)
    for _, step in all_steps(workflow):
        for field, params in (("signal_dependencies", "match_params"), ("signal_outputs", "params")):
            for signal in items(entry(step, field)):
                name_node = entry(signal, "name")
                if name_node is not None and "$" not in (name := text(name_node) or "$"):
                    _check_signal_name(name, name_node, problems)
                _check_signal_params(entry(signal, params), problems)


def _check_signal_params(params: Node | None, problems: Problems) -> None:
    for name, param in entries(params).items():
        _check_signal_name(name, param, problems, at_key=True, what="a signal's param")


def _check_signal_name(
    name: str, node: Node, problems: Problems, *, at_key: bool = False, what: str = "a signal"
) -> None:
    if not is_signal_name(name):
        hint = f"use printable characters, at most {NAME_BYTES} bytes, without blanks at either end"
        problems.add(node, "signal_name", f"the name of {what} cannot be {name!r:.100}", hint=hint, at_key=at_key)


def _check_consumers(document: Node, problems: Problems) -> None:
    """Report consumers outside the namespace of their workflow; only the run can check names with references."""
    workflow = entry(document, "workflow")
    workflow_id = text(entry(workflow, "id")) or ""
    for _, step in all_steps(workflow):
        for config in _CAPTURES:
            node = entry(step, "params", config, "value", "consumer")
            consumer = text(node) or text(entry(node, "value"))  # as a text in a STRING_MAP, as a param in a MAP
            if node is None or not consumer or "$" in consumer or is_shared(consumer):
                continue  # the run decides
            if owns(workflow_id, consumer):
                continue
            message = f"the consumer {consumer:.100} is not in the namespace of the workflow"
            hint = f"omit consumer, or start its name with {namespace_of(workflow_id)}."
            problems.add(node, "foreign_consumer", message, hint=hint)


def _check_expressions(document: Node, problems: Problems) -> None:
    for node in all_expressions(document):
        try:
            program = parse(complete(str(node.value)))
        except ExpressionError as error:
            problems.add(node, error.code, error.message, hint=error.remedy)
            continue
        for warning in lint(program):
            problems.warn(node, warning.code, warning.message)
