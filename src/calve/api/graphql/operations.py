"""The GraphQL fields that are derived from operations: one for each, and ``perform`` for those with other types."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import strawberry
from pydantic import Field, TypeAdapter, ValidationError

from calve.api.caller import WebCaller
from calve.api.graphql.limits import FEW
from calve.api.graphql.types import count
from calve.api.graphql.values import JSON, Info, Long, described
from calve.engine import RunStatus
from calve.errors import RequestInvalid
from calve.operations import Operation, Operations, Page, Parameter, Place, declared

_BY_ID = {one.id: one for _, one in declared()}
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SAME: tuple[Any, ...] = (str, bool, list[str], list[RunStatus])
_KINDS: dict[Any, Any] = {**{kind: kind for kind in _SAME}, int: Long, bytes: str}


def extended(kind: type, *, is_read: bool) -> type:
    """Return Query or Mutation with a field for every operation, in addition to the fields that it has."""
    make = strawberry.field if is_read else strawberry.mutation
    own = kind.__dict__["__strawberry_definition__"].fields
    fields = {
        one.id: make(resolver=_resolver(one), description=one.doc.partition("\n")[0])
        for one in _BY_ID.values()
        if one.is_read is is_read and one.id not in {field.python_name for field in own}
    }
    return described(strawberry.type(type(kind.__name__, (kind,), {"__doc__": kind.__doc__, **fields})))


def perform(call: WebCaller, name: str, given: Mapping[str, Any]) -> Any:
    """Perform an operation on behalf of a caller, and return its document.

    Args:
        call: the caller.
        name: the id of the operation.
        given: its arguments as GraphQL has them; they are checked as those of a REST request are.

    Raises:
        RequestInvalid: there is no such operation.
    """
    operation = _BY_ID.get(name)
    if operation is None:
        raise RequestInvalid(f"There is no operation {name}.")
    arguments: dict[str, Any] = {}
    for read in _readers(name):
        arguments.update(read(given))
    operation.check(call, arguments)
    return operation.function(Operations(call), **arguments)


def _resolver(operation: Operation) -> Callable[..., Any]:
    """Return the resolver of an operation's field."""

    def resolve(info: Info, **given: Any) -> JSON:
        return JSON(perform(info.context, operation.id, given))

    own = [inspect.Parameter("info", _KEYWORD, annotation=Info)]
    made = [argument for one in operation.parameters for argument in _arguments(operation, one)]
    resolve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*own, *made], return_annotation=JSON
    )
    resolve.__annotations__ = {one.name: one.annotation for one in (*own, *made)} | {"return": JSON}
    resolve.__name__ = operation.id
    return resolve


def _cursor(operation: Operation) -> str:
    """Return the name of the argument that is the cursor of a page: after, unless the operation has another after."""
    return "cursor" if any(one.name == "after" for one in operation.parameters) else "after"


def _arguments(operation: Operation, parameter: Parameter) -> list[inspect.Parameter]:
    if parameter.place is Place.PAGE:
        return [
            inspect.Parameter("first", _KEYWORD, annotation=int, default=FEW),
            inspect.Parameter(_cursor(operation), _KEYWORD, annotation=str, default=""),
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


@cache
def _readers(name: str) -> tuple[Callable[[Mapping[str, Any]], dict[str, Any]], ...]:
    """Return the validators of the arguments of an operation."""
    return tuple(_reader(_BY_ID[name], one) for one in _BY_ID[name].parameters)


def _reader(operation: Operation, parameter: Parameter) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the validator of an argument, which makes the same checks as REST."""
    name = parameter.name
    if parameter.place is Place.PAGE:
        cursor = _cursor(operation)
        return lambda given: {name: Page(count(given.get("first", FEW)), given.get(cursor) or None)}
    if parameter.place is Place.RAW:
        return lambda given: {name: given[name].encode()}
    kind: Any = Annotated[parameter.type, Field(**parameter.argument.checks)]
    if parameter.place is Place.FIELD and operation.body is not None:
        field = operation.body.model_fields[name]
        kind = Annotated[field.annotation, field]
    return partial(_read, name, TypeAdapter(kind))


def _read(name: str, adapter: TypeAdapter[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if name not in given:
        return {}
    try:
        return {name: adapter.validate_python(given[name], from_attributes=True)}
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestInvalid(f"{'.'.join((name, *map(str, first['loc'])))}: {first['msg']}") from None
