"""What differs between two definitions of a step or a workflow, and which params a step depends on. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from calve.definition.model import ForeachStep, Step, SubworkflowStep, TypedStep, WhileStep, Workflow
from calve.definition.params import references
from calve.errors import ExpressionError
from calve.expressions import calls, complete, inputs, parse

_NOT_THE_RESULT = frozenset(
    {
        "id",
        "name",
        "description",
        "tags",
        "transition",
        "failure_mode",
        "timeout",
        "retry_policy",
        "concurrency",
        "strict_ordering",
    }
)
"""Fields that name a step, or say how it is scheduled and retried: they do not change its result."""
_EXPRESSIONS = frozenset({"expression", "condition", "successors"})
_INSIDE = frozenset({"params", "steps"})


def step_differences(older: Step, newer: Step) -> tuple[str, ...]:
    """Return the names of the fields in which two definitions of a step differ, if they affect its result."""
    if older is newer:
        return ()
    if older.kind != newer.kind:
        return ("type",)
    return tuple(_differences(older.as_json(), newer.as_json()))


def body_differences(older: Step, newer: Step) -> tuple[str, ...]:
    """Return the names of what differs in the steps of two definitions of a loop."""
    if older is newer:
        return ()
    return tuple(_of_steps(older.as_json().get("steps", ()), newer.as_json().get("steps", ())))


@dataclass(frozen=True, slots=True)
class Change:
    """A step or a param that two versions of a workflow do not have in common."""

    kind: Literal["added", "removed", "changed"]
    name: str
    fields: tuple[str, ...] = ()
    """Of what changed: the fields that differ, whether or not they affect its result."""

    def as_json(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {"change": self.kind, "name": self.name, **({"fields": list(self.fields)} if self.fields else {})}


def step_changes(older: Workflow, newer: Workflow) -> tuple[Change, ...]:
    """Return which steps were added, removed or changed between two versions, including those inside loops."""
    before = {step.id: _without_steps(step) for step in older.all_steps()}
    after = {step.id: _without_steps(step) for step in newer.all_steps()}
    return tuple(_changes(before, after))


def param_changes(older: Workflow, newer: Workflow) -> tuple[Change, ...]:
    """Return which params of the workflow were added, removed or changed between two versions."""
    before, after = (workflow.as_json().get("params", {}) for workflow in (older, newer))
    return tuple(_changes(before, after))


def _changes(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    for name in dict.fromkeys((*after, *before)):
        if name not in before:
            yield Change("added", name)
        elif name not in after:
            yield Change("removed", name)
        elif before[name] != after[name]:
            yield Change("changed", name, tuple(_unlike(before[name], after[name])))


def _unlike(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Iterator[str]:
    names = dict.fromkeys((*newer, *older))
    yield from (name for name in names if name != "params" and older.get(name) != newer.get(name))
    yield from _of_params(older.get("params", {}), newer.get("params", {}))


def _without_steps(step: Step) -> dict[str, Any]:
    """Return a step in JSON's types, with its kind, without those inside it, which are steps of their own."""
    return {"kind": step.kind, **{name: value for name, value in step.as_json().items() if name != "steps"}}


def around_body(step: ForeachStep | WhileStep) -> Step:
    """Return a loop without its steps and loop params: what every iteration has in common."""
    params = {name: param for name, param in step.params.items() if name != "loop_params"}
    return step.model_copy(update={"steps": (), "params": params})


def _differences(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Iterator[str]:
    names = dict.fromkeys((*newer, *older))
    yield from (name for name in names if name not in _NOT_THE_RESULT | _INSIDE and older.get(name) != newer.get(name))
    yield from _of_params(older.get("params", {}), newer.get("params", {}))
    yield from _of_steps(older.get("steps", ()), newer.get("steps", ()))


def _of_params(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*newer, *older)):
        one, other = older.get(name), newer.get(name)
        if one != other:
            yield from [f"{name}.{key}" for key in _unlike_members(one, other)] or [name]


def _unlike_members(older: Mapping[str, Any] | None, newer: Mapping[str, Any] | None) -> list[str]:
    """Return the members in which two maps differ; empty if one of them is not a map."""
    one, other = ((param or {}).get("value") for param in (older, newer))
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return []
    return [key for key in dict.fromkeys((*other, *one)) if one.get(key) != other.get(key)]


def _of_steps(older: Collection[Mapping[str, Any]], newer: Collection[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of what differs in the steps of a loop, including the edges between them."""
    before, after = _by_id(older), _by_id(newer)
    for step_id in dict.fromkeys((*after, *before)):
        one, other = before.get(step_id), after.get(step_id)
        if one is None or other is None or one[0] != other[0]:
            yield step_id
            continue
        yield from (f"{step_id}.{name}" for name in _differences(one[1], other[1]))
        if _ways(one[1]) != _ways(other[1]):
            yield f"{step_id}.transition"


def _by_id(steps: Collection[Mapping[str, Any]]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    return {step["id"]: (kind, step) for wrapped in steps for kind, step in wrapped.items()}


def _ways(step: Mapping[str, Any]) -> Any:
    return step.get("transition", {}).get("successors", {})


def depends_on(step: Step, names: Collection[str]) -> tuple[str, ...]:
    """Return those of the given workflow params that a step may depend on.

    A subworkflow gets all of them unless it has explicit_params, and so does a job template.
    """
    if not names:
        return ()
    is_given_all = any(
        (isinstance(each, SubworkflowStep) and not each.explicit_params)
        or (isinstance(each, TypedStep) and each.sub_type is not None)
        for each in _with_inner(step)
    )
    written = {name: value for name, value in step.as_json().items() if name != "transition"}
    found = _mentioned(written)
    if is_given_all or None in found:
        return tuple(sorted(names))
    return tuple(sorted(name for name in names if name in found))


def condition_depends_on(expression: str, names: Collection[str]) -> bool:
    """Tell whether a condition refers to one of the given names."""
    found = set(_in_expression(expression)) if names else set()
    return None in found or not found.isdisjoint(names)


def _with_inner(step: Step) -> Iterator[Step]:
    yield step
    if isinstance(step, ForeachStep | WhileStep):
        for inner in step.steps:
            yield from _with_inner(inner)


def _mentioned(value: Any, key: str = "") -> set[str | None]:
    """Return the names that a value refers to; None among them means any name."""
    match value:
        case str() if key in _EXPRESSIONS:
            return set(_in_expression(value))
        case str():
            return {part for name in references(value) for part in (name, name.partition(".")[0])}
        case Mapping():
            # The values of successors are conditions.
            return set().union(
                *(_mentioned(member, key if key == "successors" else name) for name, member in value.items())
            )
        case list() | tuple():
            return set().union(*map(_mentioned, value))
        case _:
            return set()


def _in_expression(expression: str) -> Iterator[str | None]:
    """Yield the names that an expression reads; None if they cannot be determined."""
    try:
        program = parse(complete(expression))
    except ExpressionError:
        yield None
        return
    yield from inputs(program)
    for call in calls(program):
        if call.name == "get":
            yield from call.arguments
