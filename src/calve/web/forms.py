"""Forms: parsing what a browser sends, turning it into an operation's arguments, and listing an operation's inputs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from calve.api import caller_of
from calve.api.access import RequestInfo, check_form
from calve.errors import RequestInvalid
from calve.operations import REQUIRED, Operation, Parameter, Place, is_model
from calve.texts import check_text

_MOST = 1_000
_OWN = frozenset({"asked", "csrf", "next", "show"})
"""Fields that are not an argument of an operation."""
Fields = Mapping[str, list[str]]
"""The values of each field of a form, by name."""


async def _form(request: Request) -> Fields:
    """Return the fields of a form that was sent by a page of the caller's session."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/x-www-form-urlencoded":
        raise RequestInvalid("This is not a form.", remedy="Send application/x-www-form-urlencoded.")
    fields = parsed(await request.body())
    info = getattr(request.state, "info", None)
    if isinstance(info, RequestInfo):
        check_form(caller_of(request).principal, info, first(fields, "csrf"))
    return fields


Form = Annotated[Fields, Depends(_form)]
"""The fields of a form, for a route; its token is checked."""


def parsed(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form.

    Raises:
        RequestInvalid: it has too many fields, or contains anything but text.
    """
    fields: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST)
    except ValueError:
        raise RequestInvalid("The form cannot be read.") from None
    for name, text in pairs:
        fields.setdefault(name, []).append(text.replace("\r\n", "\n"))
    check_text(fields)
    return fields


def first(fields: Fields, name: str, default: str = "") -> str:
    """Return the first value of a field."""
    return fields.get(name, [default])[0]


def arguments_of(operation: Operation, fields: Fields) -> dict[str, Any]:
    """Return the arguments of an operation from a form; empty fields get their defaults.

    A field ``name.key`` is one entry of a mapping; a field ``name:json`` contains JSON instead of text.

    Raises:
        RequestInvalid: a field is missing or invalid.
    """
    given = {name: value for name, value in nested(fields).items() if name not in _OWN}
    arguments: dict[str, Any] = {}
    for one in operation.parameters:
        match one.place:
            case Place.PAGE:
                continue
            case Place.RAW:
                arguments[one.name] = first(fields, one.name).encode()
            case Place.BODY if is_model(one.type):
                arguments[one.name] = _model(one.type, given)
            case _ if one.name in given or one.is_required:
                arguments[one.name] = _value(one, given.get(one.name))
            case _:
                continue
    return arguments


def nested(fields: Fields) -> dict[str, Any]:
    """Return the values of a form: repeated fields as lists, ``name.key`` in mappings; empty fields are left out."""
    found: dict[str, Any] = {}
    for name, texts in fields.items():
        plain, _, kind = name.partition(":")
        values = [_read(plain, text) if kind == "json" else text for text in texts if text.strip()]
        if not values:
            continue
        *path, last = plain.split(".", 1) if "." in plain else (plain,)
        place = found
        for part in path:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise RequestInvalid(f"{part} is given twice.")
        place[last] = values[0] if len(values) == 1 else values
    return found


def _read(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RequestInvalid(f"{name} is not JSON: {error}.") from None


def _value(parameter: Parameter, given: Any) -> Any:
    if given is None:
        raise RequestInvalid(f"{parameter.name} is missing.")
    kind: Any = parameter.type
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, Field(**parameter.argument.checks)])
    return _checked(parameter.name, adapter, _shaped(parameter.type, given))


def _model(model: type[BaseModel], given: Mapping[str, Any]) -> Any:
    known = {
        name: _shaped(field.annotation, given[name]) for name, field in model.model_fields.items() if name in given
    }
    return _checked("", TypeAdapter(model), known)


def _checked(name: str, adapter: "TypeAdapter[Any]", value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        one = error.errors()[0]
        place = ".".join(str(part) for part in ((name,) if name else ()) + one["loc"])
        raise RequestInvalid(f"{place}: {one['msg']}") from None


def _shaped(kind: Any, value: Any) -> Any:
    """Convert a form value for its type: text is split into words for a list, and parsed as JSON for a mapping."""
    bases = {get_origin(one) or one for one in _members(kind)}
    if list in bases and not isinstance(value, list):
        return value.replace(",", " ").split() if isinstance(value, str) else [value]
    if dict in bases and str not in bases and isinstance(value, str):
        return _read("It", value)
    return value


def _members(kind: Any) -> Iterator[Any]:
    """Yield the types that a type consists of: the members of a union, and the type inside ``Annotated``."""
    if get_origin(kind) is Annotated:
        yield from _members(get_args(kind)[0])
    elif get_origin(kind) in {Union, UnionType}:
        for one in get_args(kind):
            yield from _members(one)
    else:
        yield kind


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a form."""

    name: str
    kind: str
    """text, password, number, checkbox, area or select."""
    doc: str
    is_required: bool
    default: str = ""
    choices: tuple[str, ...] = ()
    """The choices of a select."""

    @property
    def label(self) -> str:
        """The name in words."""
        return self.name.partition(":")[0].replace("_", " ").capitalize()


def inputs_of(operation: Operation, fields: Fields) -> list[Input]:
    """Return the fields of an operation's form that have no value yet, required ones first."""
    found: list[Input] = []
    for one in operation.parameters:
        if one.place is Place.BODY and is_model(one.type):
            found += [_of_field(name, field) for name, field in one.type.model_fields.items()]
        elif one.place is Place.RAW:
            found.append(Input(one.name, "area", one.argument.doc or "", is_required=True))
        elif _is_password(operation, one.name):
            found.append(Input(one.name, "password", one.argument.doc or "", one.is_required))
        elif one.place is not Place.PAGE:
            default = "" if one.default in {REQUIRED, None} else str(one.default)
            found.append(_input(one.name, one.type, one.argument.doc or "", one.is_required, default))
    given = {name.partition(":")[0] for name in fields}
    return sorted(
        (one for one in found if one.name.partition(":")[0] not in given), key=lambda one: not one.is_required
    )


def _of_field(name: str, field: Any) -> Input:
    is_required = field.is_required()
    default = "" if is_required or not isinstance(field.default, str | int | float) else str(field.default)
    return _input(name, field.annotation, field.description or "", is_required, default)


def _is_password(operation: Operation, name: str) -> bool:
    """Tell whether a parameter is a field of the body with OpenAPI's format ``password``."""
    field = operation.body.model_fields.get(name) if operation.body else None
    if field is None:
        return False
    described = [field, *(one for part in get_args(field.annotation) for one in get_args(part))]
    return any((getattr(one, "json_schema_extra", None) or {}).get("format") == "password" for one in described)


def _input(name: str, kind: Any, doc: str, is_required: bool, default: str) -> Input:  # noqa: FBT001 - by position
    bases = {get_origin(one) or one for one in _members(kind)}
    if bool in bases:
        return Input(name, "checkbox", doc, is_required=False, default=default if default == "True" else "")
    if dict in bases:
        return Input(f"{name}:json", "area", doc, is_required)
    if choices := tuple(str(one) for base in _members(kind) for one in _choices(base)):
        return Input(name, "select", doc, is_required, default, choices)
    if int in bases and str not in bases:
        return Input(name, "number", doc, is_required, default)
    return Input(name, "text", doc, is_required, default)


def _choices(kind: Any) -> tuple[Any, ...]:
    """Return the values of a Literal or an Enum; none for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()
