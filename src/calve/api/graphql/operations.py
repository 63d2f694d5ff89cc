"""The GraphQL fields that are derived from operations; workflows and instances have types of their own."""

import inspect
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import strawberry
from pydantic import Field, TypeAdapter

from calve.api.graphql.limits import FEW
from calve.api.graphql.types import count
from calve.api.graphql.values import JSON, Info, Long, described
from calve.engine import RunStatus
from calve.operations import Operation, Operations, Page, Parameter, Place, declared

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SAME: tuple[Any, ...] = (str, bool, list[str], list[RunStatus])
_KINDS: dict[Any, Any] = {**{kind: kind for kind in _SAME}, int: Long, bytes: str}


def extended(kind: type, *, is_read: bool) -> type:
    """Return Query or Mutation with a field for every operation that has no hand-written one."""
    make = strawberry.field if is_read else strawberry.mutation
    fields = {
        one.id: make(resolver=_resolver(one), description=one.doc.partition("\n")[0])
        for _, one in declared()
        if one.graphql and one.is_read is is_read
    }
    return described(strawberry.type(type(kind.__name__, (kind,), {"__doc__": kind.__doc__, **fields})))


def _resolver(operation: Operation) -> Callable[..., Any]:
    """Return the resolver of an operation's field."""
    read = [_reader(operation, one) for one in operation.parameters]

    def resolve(info: Info, **given: Any) -> JSON:
        arguments: dict[str, Any] = {}
        for one in read:
            arguments.update(one(given))
        operation.check(info.context, arguments)
        return JSON(operation.function(Operations(info.context), **arguments))

    own = [inspect.Parameter("info", _KEYWORD, annotation=Info)]
    made = [argument for one in operation.parameters for argument in _arguments(one)]
    resolve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*own, *made], return_annotation=JSON
    )
    resolve.__annotations__ = {one.name: one.annotation for one in (*own, *made)} | {"return": JSON}
    resolve.__name__ = operation.id
    return resolve


def _arguments(parameter: Parameter) -> list[inspect.Parameter]:
    if parameter.place is Place.PAGE:
        return [
            inspect.Parameter("first", _KEYWORD, annotation=int, default=FEW),
            inspect.Parameter("after", _KEYWORD, annotation=str, default=""),
        ]
    kind, is_optional = _shown(parameter.type)
    if parameter.argument.doc:
        kind = Annotated[kind, strawberry.argument(description=parameter.argument.doc)]
    default = inspect.Parameter.empty if parameter.is_required else parameter.default
    if isinstance(default, list | dict) or (not is_optional and default is None):
        default = None
    return [inspect.Parameter(parameter.name, _KEYWORD, annotation=kind, default=default)]


def _shown(kind: Any) -> tuple[Any, bool]:
    """Return the type of an argument, JSON if GraphQL has none for it, and whether it may be null."""
    if get_origin(kind) in {Union, UnionType} and type(None) in get_args(kind):
        (first, *more) = (one for one in get_args(kind) if one is not type(None))
        return (JSON if more else _KINDS.get(first, JSON)) | None, True
    return _KINDS.get(kind, JSON), False


def _reader(operation: Operation, parameter: Parameter) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the validator of an argument, which makes the same checks as REST."""
    name = parameter.name
    if parameter.place is Place.PAGE:
        return lambda given: {name: Page(count(given.get("first", FEW)), given.get("after") or None)}
    if parameter.place is Place.RAW:
        return lambda given: {name: given[name].encode()}
    kind: Any = Annotated[parameter.type, Field(**parameter.argument.checks)]
    if parameter.place is Place.FIELD and operation.body is not None:
        field = operation.body.model_fields[name]
        kind = Annotated[field.annotation, field]
    return partial(_read, name, TypeAdapter(kind))


def _read(name: str, adapter: TypeAdapter[Any], given: dict[str, Any]) -> dict[str, Any]:
    return {name: adapter.validate_python(given[name])} if name in given else {}
