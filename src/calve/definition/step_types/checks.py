"""Check a step against the declaration of its type."""

from collections.abc import Iterable, Mapping

from calve.definition.document import Node, entries, items
from calve.definition.model import ParamType
from calve.definition.problems import Problems, did_you_mean
from calve.definition.step_types import step_params
from calve.definition.step_types.programs import CLUSTER_FIELDS, KUBERNETES
from calve.definition.step_types.step_params import Given
from calve.definition.step_types.step_type import LISTS, Choose, Field, StepType, listed

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
"""A literal of the first type is accepted for the second."""


def check_step(step: Node, step_type: StepType, problems: Problems) -> None:
    """Report what is wrong with a step of a type.

    What a step with a ``sub_type`` leaves out may be in its template.
    """
    named = step_params.params(step)
    config = named.get(step_type.config or "")
    is_whole = "sub_type" not in entries(step)
    prefix = f"{step_type.config}." if step_type.config else ""
    if config is not None and config.is_known and not _is_map(config, prefix, problems):
        return
    for item in step_type.params:
        _check_field(item, named.get(item.name), item.name, problems)
    found = step_params.fields(step, step_type)
    known = step_type.known()
    for name, entry in found.items():
        if name in known:
            _check_field(known[name], entry, f"{prefix}{name}", problems)
        elif name in CLUSTER_FIELDS:
            _warn_of_cluster(entry.node, f"{prefix}{name}", step_type, problems)
        else:
            hint = did_you_mean(name, known)
            message = f"{step_type.config} of {step_type.phrase} has no field {name}"
            problems.add(entry.node, "unknown_field", message, hint=hint, at_key=True)
    for choose in step_type.choose:
        _check_most(choose, found, prefix, problems)
    if is_whole:
        _check_missing(step, step_type, problems)
    _check_targets(step, step_type, found, problems)
    _check_cluster(named, step_type, problems)
    step_type.check(config.node if config else step, {name: entry.plain() for name, entry in found.items()}, problems)


def _check_targets(step: Node, step_type: StepType, found: Mapping[str, Given], problems: Problems) -> None:
    """Report targets that the type cannot deliver to, and fields about a delivery without targets."""
    targets = entries(step).get("targets")
    if targets is not None and targets.value and not step_type.delivers:
        message = f"{step_type.phrase} cannot have targets: it does not write tables exactly once"
        hint = "leave targets out, or write the tables in a Spark step"
        problems.add(targets, "targets_unsupported", message, hint=hint, at_key=True)
    if step_type.delivers and not items(targets):
        for name in ("audit", "publish"):
            if name in found and "merge" not in found:
                message, hint = f"{step_type.config}.{name} needs targets", "write targets: [db.table] next to the type"
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
    message = f"{field} has no effect: {step_type.phrase} does not run on Kubernetes"
    problems.warn(node, "kubernetes_only", message, hint="leave it out, or write a Kubernetes step")


def _is_map(config: Given, prefix: str, problems: Problems) -> bool:
    is_map = config.type in {ParamType.MAP, ParamType.STRING_MAP}
    if not is_map:
        given = _WORDS[config.type] if config.type else "this"
        problems.add(config.node, "wrong_type", f"{prefix.rstrip('.')} must be a map, not {given}")
    return is_map


def _check_missing(step: Node, step_type: StepType, problems: Problems) -> None:
    """Report missing fields, at the config map if there is one, else at the type of the step."""
    named = step_params.params(step)
    config = named.get(step_type.config or "")
    found = step_params.fields(step, step_type)
    place = config.node if config else entries(step).get("type", step)
    who = step_type.phrase
    for item in step_type.params:
        if item.required and item.name not in named:
            problems.add(place, "missing_field", f"{who} needs the param {item.name}", hint=item.doc)
    if config is not None and config.value is None:
        return  # an expression: known when the step runs
    prefix = f"{step_type.config}." if step_type.config else ""
    for item in step_type.fields:
        if item.required and item.name not in found:
            hint = _misplaced((item.name,), step_type, named) or item.doc
            problems.add(place, "missing_field", f"{who} needs {prefix}{item.name}", hint=hint, at_key=True)
    for choose in step_type.choose:
        if sum(name in found for name in choose.names) >= choose.least or choose.beside in named:
            continue
        what = listed(f"{prefix}{name}" for name in choose.names)
        hint = _misplaced(choose.names, step_type, named)
        if choose.without and not hint:
            message = f"{who} without {what} {choose.without}"
            problems.warn(place, "does_nothing", message, hint=f"give {what}")
        else:
            problems.add(place, "missing_field", f"{who} needs one of {what}", hint=hint, at_key=True)


def _misplaced(names: Iterable[str], step_type: StepType, named: Mapping[str, Given]) -> str:
    """Return a hint if a field is beside its map, or the map has another name."""
    beside = next((name for name in names if name in named), None)
    if beside:
        return f"move {beside} into {step_type.config}"
    near = did_you_mean(step_type.config or "", named) if step_type.config not in named else ""
    return f"name the map {step_type.config}" if near.startswith("did you mean") else ""


def _check_most(choose: Choose, found: Mapping[str, Given], prefix: str, problems: Problems) -> None:
    there = [name for name in choose.names if name in found]
    if len(there) > choose.most:
        message = f"{listed((f'{prefix}{name}' for name in there), 'and')} cannot be given together"
        hint = f"give one of {listed(choose.names)}"
        problems.add(found[there[1]].node, "exclusive_fields", message, hint=hint, at_key=True)


def _check_field(item: Field, entry: Given | None, where: str, problems: Problems) -> None:
    if entry is None or not entry.is_known or entry.value is None or entry.type is None:
        return
    if not _accepts(item.types, entry):
        message = f"{where} must be {listed(_WORDS[kind] for kind in item.types)}, not {_WORDS[entry.type]}"
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
    if step_params.is_dynamic(node.value) or (found := item.fault(node.value)) is None:
        return
    code, fault = found
    hint = did_you_mean(str(node.value), item.choices) if item.choices else ""
    problems.add(node, code, f"{where} {fault}", hint=hint)
