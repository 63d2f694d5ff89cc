"""Values of params: plain Python, expressions, secrets, and references to other params."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from calve.definition.forms import misspelt
from calve.dsl.location import Described, Unsupported, here

Type: TypeAlias = Literal[
    "STRING",
    "LONG",
    "DOUBLE",
    "BOOLEAN",
    "STRING_MAP",
    "MAP",
    "STRING_ARRAY",
    "LONG_ARRAY",
    "DOUBLE_ARRAY",
    "BOOLEAN_ARRAY",
    "SECRET",
]
Tags: TypeAlias = "Sequence[str | Mapping[str, Any]]"
Mode: TypeAlias = Literal["MUTABLE", "MUTABLE_ON_START_RESTART", "MUTABLE_ON_START", "IMMUTABLE", "CONSTANT"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a param of a step, a loop or the workflow; in a text it is ``${step.param}``."""

    name: str
    sel: str
    """The reference in SEL, for conditions and ``expr``."""

    def __str__(self) -> str:
        return f"${{{self.name}}}"


class ParamSource:
    """An object with params to which others can refer, by name in brackets."""

    __slots__ = ()
    __iter__: ClassVar[None] = None  # otherwise Python would try [0], [1] and so on, without end


@dataclass(frozen=True, slots=True)
class Param(Described):
    """A param with a type, a mode or other fields besides its value."""


Value: TypeAlias = (
    str
    | int
    | float
    | bool
    | range
    | Reference
    | Param
    | Sequence[str | int | float | bool | Reference]
    | Mapping[str, "Value"]
)
"""A value for a param."""

Text: TypeAlias = str | Reference | Param
Whole: TypeAlias = int | Reference | Param
Number: TypeAlias = float | Reference | Param
Flag: TypeAlias = bool | Reference | Param
Quantity: TypeAlias = str | float | Reference | Param
Texts: TypeAlias = Sequence[str | Reference] | Param
Wholes: TypeAlias = Sequence[int] | Param
Items: TypeAlias = Sequence[str | Reference] | Sequence[int] | Sequence[float] | Sequence[bool] | Param
TextMap: TypeAlias = Mapping[str, str | Reference] | Param
ValueMap: TypeAlias = Mapping[str, Value] | Param
Scalar: TypeAlias = str | int | float | bool | Reference | Param


def expr(source: str, *, type: Type = "STRING", mode: Mode | None = None) -> Param:  # noqa: A002 - the definition's word
    """Return a param whose value an expression gives when the workflow runs.

    Args:
        source: The expression, in SEL: ``"Util.dateIntsBetween(20240101, 20240108, 1)"``.
        type: The type of its result.
        mode: When it may still be changed. Default: always.
    """
    return Param(_without_none(expression=source, type=type, mode=mode), here())


def param(
    value: Value,
    *,
    type: Type | None = None,  # noqa: A002 - the definition's word
    mode: Mode | None = None,
    tags: Sequence[str | Mapping[str, Any]] = (),
    validator: Any = None,
    meta: Mapping[str, Any] | None = None,
) -> Param:
    """Return a param with a type, a mode, tags or notes.

    Args:
        value: The value, or a param made by ``expr`` or ``secret`` to which the rest is added.
        type: The type of the value. Default: the type that YAML would infer.
        mode: When it may still be changed. Default: always.
        tags: Tags of the param.
        validator: A rule, kept beside the param.
        meta: Notes, kept beside the param.
    """
    known = as_param(value)
    if isinstance(known, Unsupported):
        return Param(known, here())
    if type == "MAP" and isinstance(value, Mapping):
        known["value"] = {name: located_param(item) for name, item in value.items()}
    written = _without_none(type=type, mode=mode, tags=list(tags) or None, validator=validator, meta=meta)
    return Param({**known, **written}, here())


def secret(name: str) -> Param:
    """Return a param whose text is fetched when a step runs, and is never shown or stored.

    Args:
        name: The name of the secret.
    """
    return Param({"type": "SECRET", "value": name}, here())


def refer(name: str) -> Reference:
    """Return a reference to a param of the workflow or of a loop."""
    return Reference(name, name if name.isidentifier() else f"params.get('{name}')")


def as_param(value: Any) -> dict[str, Any] | Unsupported:
    """Return a value as a definition spells it, with the type that YAML would infer."""
    match value:
        case Param(Unsupported() as unfit):
            return unfit
        case Param(fields):
            return dict(fields)
        case range() if value.step > 0:
            expression = f"Util.intsBetween({value.start}, {value.stop}, {value.step});"
            return {"type": "LONG_ARRAY", "expression": expression}
        case Mapping():
            return _as_map(value)
        case Sequence() | range() if not isinstance(value, str | bytes):
            return _as_array(list(value))
        case _ if (kind := _kind(value)) is not None:
            return {"type": kind, "value": _plain(value)}
        case _:
            return Unsupported(f"a param cannot hold {_shown(value)}", _advice(value))


def _as_array(items: list[Any]) -> dict[str, Any] | Unsupported:
    kinds = {_kind(item) for item in items} or {"STRING"}
    if kinds == {"LONG", "DOUBLE"}:
        kinds = {"DOUBLE"}
    if len(kinds) > 1 or None in kinds:
        return Unsupported("a list holds texts, numbers or booleans, all of one type")
    return {"type": f"{kinds.pop()}_ARRAY", "value": [_plain(item) for item in items]}


def _as_map(entries: Mapping[Any, Any]) -> dict[str, Any] | Unsupported:
    if not all(isinstance(key, str) for key in entries):
        return Unsupported("the names in a map are texts")
    if entries and all(_kind(item) == "STRING" for item in entries.values()):
        return {"type": "STRING_MAP", "value": {key: _plain(item) for key, item in entries.items()}}
    return {"type": "MAP", "value": {key: located_param(item) for key, item in entries.items()}}


def located_param(value: Any) -> Any:
    """Return a value as a definition spells it, at its own location if it has one."""
    made = as_param(value)
    return Described(made, value.location) if isinstance(value, Param) else made


def _kind(value: Any) -> str | None:
    match value:
        case str() | Reference():
            return "STRING"
        case bool():
            return "BOOLEAN"
        case int():
            return "LONG"
        case float():
            return "DOUBLE"
        case _:
            return None


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str | Reference) else value


def _shown(value: Any) -> str:
    return "None" if value is None else f"a {value.__class__.__name__}"


def _advice(value: Any) -> str:
    if isinstance(value, ParamSource):
        return 'to use one of its params, name it: step["param"]'
    return "a text, a number, a boolean, a list or a dict of these, expr(…), param(…) or secret(…)"


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: item for name, item in fields.items() if item is not None}


def all_params(own: Mapping[str, Any], given: Mapping[str, Any], keywords: Collection[str]) -> dict[str, Any]:
    """Return the params of a step or workflow: those its type knows, and those the user adds.

    Args:
        own: The params that its type knows, as a definition spells them.
        given: The arguments of its function: ``params``, and ``more``, the keywords that it does not know.
        keywords: The keywords that it knows, of which others may be misspellings.
    """
    params = dict(own)
    for name, value in (given["params"] or {}).items():
        params[name] = _twice(name) if name in params else located_param(value)
    for name, value in given["more"].items():
        meant = misspelt(name, keywords)
        params[name] = _misspelt(name, meant) if meant else _twice(name) if name in params else located_param(value)
    return params


def given_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of the fields that were given."""
    return {name: _copied(item) for name, item in fields.items() if item is not None and item not in ((), [])}


def _copied(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _copied(item) for key, item in value.items()}
        case list() | tuple():
            return [_copied(item) for item in value]
        case _:
            return value


def _twice(name: str) -> Unsupported:
    """Return the problem of a param that is given twice."""
    return Unsupported(f"the param {name} is given twice", code="said_twice")


def _misspelt(name: str, meant: str) -> Unsupported:
    hint = f'write params={{"{name}": …}} if you mean a param of that name'
    return Unsupported(f"{name} looks like {meant}", hint, code="misspelt_key")
