"""Check a step against what its type declares."""

from collections.abc import Iterable, Mapping

from calve.definition.document import Node
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems, did_you_mean
from calve.definition.step_types import reading
from calve.definition.step_types.model import LISTS, Choose, Field, StepType
from calve.definition.step_types.programs import CLUSTER_FIELDS, KUBERNETES
from calve.definition.step_types.reading import Given
from calve.definition.walking import entries, items

_WORDS = {
    ParamType.STRING: "a text",
    ParamType.LONG: "a whole number",
    ParamType.DOUBLE: "a number",
    ParamType.BOOLEAN: "true or false",
    ParamType.STRING_MAP: "a map of texts",
    ParamType.MAP: "a map",
    ParamType.STRING_ARRAY: "a list of texts",
    ParamType.LONG_ARRAY: "a list of whole numbers",
    ParamType.DOUBLE_ARRAY: "a list of numbers",
    ParamType.BOOLEAN_ARRAY: "a list of true and false",
    ParamType.SECRET: "a secret",
}
_SCALARS = frozenset({ParamType.LONG, ParamType.DOUBLE, ParamType.BOOLEAN})
_WIDER = {
    ParamType.LONG: ParamType.DOUBLE,
    ParamType.LONG_ARRAY: ParamType.DOUBLE_ARRAY,
    ParamType.SECRET: ParamType.STRING,
    ParamType.STRING_MAP: ParamType.MAP,
}
"""A literal of the one type is good where the other is asked for."""


def check_step(step: Node, step_type: StepType, problems: Problems) -> None:
    """Note what is wrong with a step of a type.

    What a step with a ``sub_type`` leaves out may stand in its template.
    """
    named = reading.params(step)
    config = named.get(step_type.config or "")
    is_whole = "sub_type" not in entries(step)
    prefix = f"{step_type.config}." if step_type.config else ""
    if config is not None and config.is_known and not _is_map(config, prefix, problems):
        return
    for item in step_type.params:
        _check_field(item, named.get(item.name), item.name, problems)
    found = reading.fields(step, step_type)
    known = step_type.known()
    for name, entry in found.items():
        if name in known:
            _check_field(known[name], entry, f"{prefix}{name}", problems)
        elif name in CLUSTER_FIELDS:
            _warn_of_cluster(entry.node, f"{prefix}{name}", step_type, problems)
        else:
            hint = did_you_mean(name, known)
            message = f"{step_type.config} of a {step_type.name} step has no field {name}"
            problems.add(entry.node, "unknown_field", message, hint=hint, at_key=True)
    for choose in step_type.choose:
        _check_most(choose, found, prefix, problems)
    if is_whole:
        _check_missing(step, step_type, problems)
    _check_targets(step, step_type, found, problems)
    _check_cluster(named, step_type, problems)
    step_type.check(config.node if config else step, {name: entry.plain() for name, entry in found.items()}, problems)


def _check_targets(step: Node, step_type: StepType, found: Mapping[str, Given], problems: Problems) -> None:
    """Note targets that the type does not deliver to, and what is said of a delivery without them."""
    targets = entries(step).get("targets")
    if targets is not None and targets.value and not step_type.delivers:
        message = f"a {step_type.name} step cannot have targets: it does not write tables exactly once"
        hint = "leave targets out, or write the tables in a Spark step"
        problems.add(targets, "targets_unsupported", message, hint=hint, at_key=True)
    if step_type.delivers and not items(targets):
        for name in ("audit", "publish"):
            if name in found and "merge" not in found:
                message, hint = f"{step_type.config}.{name} needs targets", "write targets: [db.table] beside the type"
                problems.add(found[name].node, "missing_field", message, hint=hint, at_key=True)


def _check_cluster(named: Mapping[str, Given], step_type: StepType, problems: Problems) -> None:
    """Warn about the map of a Kubernetes step beside a step that runs elsewhere."""
    config = named.get(KUBERNETES.config or "")
    if config is None or step_type.config == KUBERNETES.config or not step_type.is_leaf:
        return
    for name, entry in config.inside().items():
        if name in KUBERNETES.known():
            _warn_of_cluster(entry.node, f"{KUBERNETES.config}.{name}", step_type, problems)


def _warn_of_cluster(node: Node, field: str, step_type: StepType, problems: Problems) -> None:
    message = f"{field} has no effect: a {step_type.name} step does not run on Kubernetes"
    problems.warn(node, "kubernetes_only", message, hint="leave it out, or write a Kubernetes step")


def _is_map(config: Given, prefix: str, problems: Problems) -> bool:
    is_map = config.type in {ParamType.MAP, ParamType.STRING_MAP}
    if not is_map:
        given = _WORDS[config.type] if config.type else "this"
        problems.add(config.node, "wrong_type", f"{prefix.rstrip('.')} must be a map, not {given}")
    return is_map


def _check_missing(step: Node, step_type: StepType, problems: Problems) -> None:
    """Note required fields that are not there, at the config map if there is one, else at the step's type."""
    named = reading.params(step)
    config = named.get(step_type.config or "")
    found = reading.fields(step, step_type)
    place = config.node if config else entries(step).get("type", step)
    who = f"a {step_type.name} step"
    for item in step_type.params:
        if item.required and item.name not in named:
            problems.add(place, "missing_field", f"{who} needs the param {item.name}", hint=item.doc)
    if config is not None and config.value is None:
        return  # an expression: the run will tell
    prefix = f"{step_type.config}." if step_type.config else ""
    for item in step_type.fields:
        if item.required and item.name not in found:
            hint = _misplaced((item.name,), step_type, named) or item.doc
            problems.add(place, "missing_field", f"{who} needs {prefix}{item.name}", hint=hint, at_key=True)
    for choose in step_type.choose:
        if sum(name in found for name in choose.names) >= choose.least or choose.beside in named:
            continue
        what = _listed(f"{prefix}{name}" for name in choose.names)
        hint = _misplaced(choose.names, step_type, named)
        if choose.without and not hint:
            message = f"{who} without {what} {choose.without}"
            problems.warn(place, "does_nothing", message, hint=f"give {what}")
        else:
            problems.add(place, "missing_field", f"{who} needs one of {what}", hint=hint, at_key=True)


def _misplaced(names: Iterable[str], step_type: StepType, named: Mapping[str, Given]) -> str:
    """Return a hint where a field stands beside its map, or the map under another name."""
    beside = next((name for name in names if name in named), None)
    if beside:
        return f"move {beside} into {step_type.config}"
    near = did_you_mean(step_type.config or "", named) if step_type.config not in named else ""
    return f"the map is to be named {step_type.config}" if near.startswith("did you mean") else ""


def _check_most(choose: Choose, found: Mapping[str, Given], prefix: str, problems: Problems) -> None:
    there = [name for name in choose.names if name in found]
    if len(there) > choose.most:
        message = f"{_listed((f'{prefix}{name}' for name in there), 'and')} cannot be given together"
        hint = f"give one of {_listed(choose.names)}"
        problems.add(found[there[1]].node, "exclusive_fields", message, hint=hint, at_key=True)


def _check_field(item: Field, entry: Given | None, where: str, problems: Problems) -> None:
    if entry is None or not entry.is_known or entry.value is None or entry.type is None:
        return
    if not _accepts(item.types, entry):
        message = f"{where} must be {_listed(_WORDS[kind] for kind in item.types)}, not {_WORDS[entry.type]}"
        problems.add(entry.node, "wrong_type", message, hint=_type_hint(item, entry))
        return
    for value in items(entry.value) or [entry.value]:
        _check_value(item, value, where, problems)
    inside = {nested.name: nested for nested in item.fields}
    for name, nested in entry.inside().items():
        if name in inside:
            _check_field(inside[name], nested, f"{where}.{name}", problems)
        elif inside:
            message = f"{where} has no field {name}"
            problems.add(nested.node, "unknown_field", message, hint=did_you_mean(name, inside), at_key=True)
        elif item.values:
            _check_field(Field(name, item.values, item.doc), nested, f"{where}.{name}", problems)
    for name, nested_field in inside.items():
        if nested_field.required and name not in entry.inside():
            message = f"{where} needs {name}"
            problems.add(entry.node, "missing_field", message, hint=nested_field.doc, at_key=True)


def _accepts(types: tuple[ParamType, ...], entry: Given) -> bool:
    if entry.type in types or _WIDER.get(entry.type or ParamType.MAP) in types:
        return True
    is_empty = entry.value is not None and not entry.value.value
    if entry.type in LISTS:
        return is_empty and any(kind in LISTS for kind in types)
    return is_empty and entry.type is ParamType.MAP and ParamType.STRING_MAP in types


def _type_hint(item: Field, entry: Given) -> str:
    if entry.type in _SCALARS and ParamType.STRING in item.types:
        return "write it in quotes"
    if entry.type is ParamType.STRING and _SCALARS.intersection(item.types):
        return "write it without quotes"
    return item.doc


def _check_value(item: Field, node: Node, where: str, problems: Problems) -> None:
    value = node.value
    if isinstance(value, str) and item.choices and value not in item.choices and not reading.is_dynamic(value):
        message = f"{where} cannot be {value!r}: it is {_listed(item.choices)}"
        problems.add(node, "unknown_word", message, hint=did_you_mean(value, item.choices))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if item.minimum is not None and value < item.minimum:
        problems.add(node, "out_of_bounds", f"{where} is {value}; the least is {item.minimum}")
    if item.maximum is not None and value > item.maximum:
        problems.add(node, "out_of_bounds", f"{where} is {value}; the most is {item.maximum}")


def _listed(names: Iterable[str], word: str = "or") -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
