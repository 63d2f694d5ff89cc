"""The keywords that all steps share, and how keywords become the fields and params of a step."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from calve.definition.forms.keys import misspelt
from calve.definition.step_types import STEP_TYPES
from calve.dsl.graphs import Graph, Step, active
from calve.dsl.places import Unfit, here
from calve.dsl.values import placed_param

FailureMode: TypeAlias = Literal["FAIL_AFTER_RUNNING", "FAIL_IMMEDIATELY", "IGNORE_FAILURE"]
Tags: TypeAlias = "Sequence[str | Mapping[str, Any]]"

_Made = TypeVar("_Made", bound=Step)

COMMON = (
    "name",
    "description",
    "failure_mode",
    "tags",
    "timeout",
    "retry_policy",
    "signal_dependencies",
    "signal_outputs",
    "targets",
)
"""Keywords that are fields of a step rather than params."""

_NO_KEYWORDS = frozenset({"step_id", "type", "self", "more", "fields"})


def typed(type_name: str, given: Mapping[str, Any], **renamed: Any) -> Step:
    """Describe a step of a built-in type from the arguments of its function.

    Args:
        type_name: The type.
        given: The arguments, all of them, as ``locals()`` gives them.
        **renamed: Shared fields for which the function has other keywords, since the type has its own of that name.
    """
    declared = STEP_TYPES[type_name]
    members = _told(given, (item.name for item in declared.fields))
    params = _told(given, (item.name for item in declared.params))
    if declared.config and members:
        params[declared.config] = {"type": "MAP", "value": members}
    return described(Step, "step", given, {"type": type_name, **renamed}, params)


def described(
    made: type[_Made],
    kind: str,
    given: Mapping[str, Any],
    fields: Mapping[str, Any],
    own: Mapping[str, Any],
    inner: Graph | None = None,
) -> _Made:
    """Hand a step to the workflow that is being described.

    Args:
        made: What the user gets to hold.
        kind: The shape of the step.
        given: The arguments of the function that describes it.
        fields: Its fields besides those that all steps share.
        own: The params that its type knows, as a definition spells them.
        inner: Where the steps inside a loop will stand.
    """
    place = here()
    step_id = given["step_id"]
    graph = active(f"the step {step_id}", place)
    said = without_nothing({"id": step_id, **{name: given.get(name) for name in COMMON}, **fields})
    if params := all_params(own, given):
        said["params"] = params
    step = made(step_id, kind, said, place, graph, inner)
    graph.steps.append(step)
    return step


def all_params(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of a step or workflow: those its type knows, and those the user adds."""
    params = dict(own)
    for name, value in (given["params"] or {}).items():
        params[name] = _twice(name) if name in params else placed_param(value)
    keywords = given.keys() - _NO_KEYWORDS
    for name, value in given["more"].items():
        meant = misspelt(name, keywords)
        params[name] = _slip(name, meant) if meant else _twice(name) if name in params else placed_param(value)
    return params


def without_nothing(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were told, apart from what the user may go on to change."""
    return {name: _copied(item) for name, item in fields.items() if item is not None and item not in ((), [])}


def _copied(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _copied(item) for key, item in value.items()}
        case list() | tuple():
            return [_copied(item) for item in value]
        case _:
            return value


def _told(given: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: placed_param(given[name]) for name in names if given[name] is not None}


def _twice(name: str) -> Unfit:
    """Return what stands for a param that was given twice."""
    return Unfit(f"the param {name} is given twice", code="said_twice")


def _slip(name: str, meant: str) -> Unfit:
    hint = f'write params={{"{name}": …}} if a param of that name is meant'
    return Unfit(f"{name} looks like {meant}", hint, code="misspelt_key")
