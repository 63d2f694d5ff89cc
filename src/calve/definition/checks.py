"""What the models cannot say: limits over the whole tree, names, loops, and every expression's grammar."""

import json
from collections.abc import Iterator

from pydantic_core import PydanticCustomError

from calve.definition.document import Node
from calve.definition.model.names import RESERVED_PARAMS, check_reference
from calve.definition.model.triggers import NAME_BYTES, is_signal_name
from calve.definition.problems import Problems
from calve.definition.sources import all_expressions
from calve.definition.walking import all_steps, entries, entry, items, steps_of, text
from calve.errors import ExpressionError
from calve.expressions import complete, lint, parse
from calve.namespaces import is_shared, namespace_of, owns
from calve.texts import text_fault

STEPS = 300
DEPTH = 10
REQUEST_BYTES = 256 * 1024
PARAMS_CHARACTERS = 750_000
LOOPS = frozenset({"foreach", "while"})
_CAPTURES = ("ip_capture", "icdc")
"""The params of steps that may name a consumer."""


def check_document(document: Node, problems: Problems) -> None:
    """Note what is wrong with a canonical document beyond what its models say."""
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
    """A definition in Python can hold what no text in YAML or JSON gets as far as here with."""
    match node.value:
        case str() as written:
            if fault := text_fault(written, "this text"):
                problems.add(node, "character", fault.removesuffix("."), hint="leave it out")
        case list() as listed:
            for item in listed:
                _check_texts(item, problems)
        case dict() as mapping:
            for key, item in mapping.items():
                if fault := text_fault(key, "this key"):
                    problems.add(item, "character", fault.removesuffix("."), hint="leave it out", at_key=True)
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
        if params is not None and (length := len(json.dumps(params.plain()))) > PARAMS_CHARACTERS:
            problems.add(params, "too_large", f"the params have {length:,} characters, more than {PARAMS_CHARACTERS:,}")


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
            problems.add(node, "duplicate_step", f"the step id {step_id} is used already, in line {line}")
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
        problems.add(param, "reserved_param", f"no param may be called {name}", at_key=True)
    try:
        check_reference(name)
    except PydanticCustomError as error:
        problems.add(param, error.type, error.message(), at_key=True)


def _check_defined(name: str, param: Node, problems: Problems) -> None:
    """Every param has a value or an expression, members of maps too."""
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
                message = f"the loop param {name} is one of the loop around it already, in line {outer[name].mark.line}"
                problems.add(param, "duplicate_loop_param", message, at_key=True)
            _check_loop_type(kind, name, param, problems)
            inner[name] = param
        _check_loop_level(step, problems, inner, depth + 1)


def _check_loop_type(kind: str, name: str, param: Node, problems: Problems) -> None:
    is_array = (text(entry(param, "type")) or "").endswith("_ARRAY")
    if kind == "foreach" and not is_array:
        problems.add(param, "loop_param_type", f"foreach goes over arrays, and {name} is none")
    if kind == "while" and is_array:
        problems.add(param, "loop_param_type", f"while starts from single values, and {name} is an array")


def _check_signal_outputs(document: Node, problems: Problems) -> None:
    for _, step in all_steps(entry(document, "workflow")):
        for output in items(entry(step, "signal_outputs")):
            for name, param in entries(entry(output, "params")).items():
                if text(entry(param, "type")) not in {"STRING", "LONG"}:
                    problems.add(
                        param, "signal_param_type", f"a signal's param is STRING or LONG, and {name} is neither"
                    )


def _check_signal_names(document: Node, problems: Problems) -> None:
    """Names that a run makes of params can be checked by the run only."""
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
        hint = f"use printable characters, at most {NAME_BYTES} bytes of them, and no blanks around them"
        problems.add(node, "signal_name", f"the name of {what} cannot be {name!r:.100}", hint=hint, at_key=at_key)


def _check_consumers(document: Node, problems: Problems) -> None:
    """A consumer belongs to the namespace of its workflow; a run checks those that it makes of params."""
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
            message = f"the consumer {consumer:.100} belongs to another namespace than the workflow"
            hint = f"leave consumer out, or begin its name with {namespace_of(workflow_id)}."
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
