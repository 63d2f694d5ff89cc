"""How an operation is declared: one typed method, from which REST, GraphQL, the Python client and its page follow.

    @operation("PUT /workflows/{workflow_id}/actions/stop", RUN, id="stop_workflow", answer=ActionEvent, status=202)
    def stop_workflow(self, workflow_id: WorkflowId, *, reason: Reason = "") -> Document:
        ...

A parameter is in the path if the path names it. Otherwise GET and DELETE take it in the query, POST and PUT in the
body, unless its ``Argument`` says otherwise. A parameter that is a model, or a list of models, is the whole body.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cached_property, wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from calve.errors import RequestInvalid
from calve.operations.caller import Caller
from calve.operations.pages import Page
from calve.operations.policy import PermissionScope, Policy

Document = dict[str, Any]
"""The answer of an operation, in JSON's own types; in Maestro's format where Maestro has the document."""
REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""
_T = TypeVar("_T", bound="Topic")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Model = TypeVar("_Model", bound=BaseModel)
_MANY = 1_000
_SECTIONS = re.compile(r"\n\n(?:Args|Returns|Raises):")


class Argument:
    """The annotation of a parameter: its description, and which values are valid.

    Args:
        doc: its description, in one sentence.
        alias: its name in a query, if Maestro has another one.
        is_query: whether it is in the query although the operation has a body.
        checks: further arguments of ``pydantic.Field``: pattern, ge, max_length, examples …
    """

    def __init__(self, doc: str = "", *, alias: str | None = None, is_query: bool = False, **checks: Any) -> None:
        self.doc = doc or None
        self.alias = alias
        self.is_query = is_query
        self.checks = checks


def jsonable(value: Any) -> Any:
    """Return a value in JSON's types: times as text, decimals as numbers."""
    match value:
        case Enum():
            return jsonable(value.value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): jsonable(item) for key, item in value.items()}
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list() | tuple() | set() | frozenset():
            return [jsonable(item) for item in value]
        case _:
            return str(value)


def request(model: type[_Model], **fields: Any) -> _Model:
    """Return the body of a request.

    Raises:
        RequestInvalid: a field is not valid.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        details = [f"body.{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
        raise RequestInvalid(details[0]) from None


class StrictBody(BaseModel):
    """A body that accepts only its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(StrEnum):
    """Which part of a request an argument is sent in."""

    PATH = "path"
    QUERY = "query"
    PAGE = "page"
    """In the query: limit, first, last and cursor."""
    BODY = "body"
    """It is the body."""
    FIELD = "field"
    """A field of the body."""
    RAW = "raw"
    """It is the text of the body."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation."""

    name: str
    type: Any
    place: Place
    argument: Argument
    default: Any = REQUIRED

    @property
    def is_required(self) -> bool:
        """Tell whether there is no default."""
        return self.default is REQUIRED

    @property
    def field(self) -> FieldInfo:
        """The same as a field of pydantic, with its default, its documentation and which values are valid."""
        default = ... if self.is_required else self.default
        info: FieldInfo = Field(default, description=self.argument.doc, **self.argument.checks)
        return FieldInfo.from_annotated_attribute(self.type, info)


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation: a read or a change that callers can request."""

    id: str
    method: str
    path: str
    policy: Policy
    function: Callable[..., Any]
    answer: Any = None
    """The schema of the answer in the OpenAPI document."""
    status: int = 200
    is_slow: bool = False
    """Whether it may wait for something other than the state database, or take long if a caller wants it to."""
    is_repeatable: bool = False
    """Whether it is idempotent, so that a client may repeat it if no answer arrives."""
    body: type[BaseModel] | None = None
    """The model of the body, if its fields are parameters; one is derived from the parameters, if not given."""
    needs_body: bool = False
    """Whether a request must have a body, even though none of its fields is required."""
    openapi: Mapping[str, Any] = field(default_factory=dict)
    """Additions to the OpenAPI document."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.function.__name__

    @property
    def doc(self) -> str:
        """The docstring without its sections Args, Returns and Raises, which are for callers from Python."""
        return _SECTIONS.split(inspect.getdoc(self.function) or "")[0]

    @property
    def is_read(self) -> bool:
        """Tell whether it changes nothing."""
        return self.method == "GET"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the order of the signature."""
        hints = get_type_hints(self.function, include_extras=True)
        given = list(inspect.signature(self.function).parameters.values())[1:]
        return tuple(self._parameter(one.name, hints[one.name], one.default) for one in given)

    def _parameter(self, name: str, hint: Any, default: Any) -> Parameter:
        kind, argument = hint, Argument()
        if get_origin(hint) is Annotated:
            kind, *more = get_args(hint)
            argument = next((one for one in more if isinstance(one, Argument)), argument)
        if kind == str | int:  # a number, or a word such as latest: text wherever it is sent
            kind = str
        return Parameter(name, kind, self._place(name, kind, argument), argument, default)

    def _place(self, name: str, kind: Any, argument: Argument) -> Place:
        if kind is Page:
            return Place.PAGE
        if kind is bytes:
            return Place.RAW
        if f"{{{name}}}" in self.path or f"{{{name}:path}}" in self.path:
            return Place.PATH
        if is_model(kind) or (get_origin(kind) is list and is_model(get_args(kind)[0])):
            return Place.BODY
        return Place.QUERY if self.method in {"GET", "DELETE"} or argument.is_query else Place.FIELD

    @cached_property
    def model(self) -> type[BaseModel] | None:
        """The model of the body, where parameters are its fields."""
        fields = [one for one in self.parameters if one.place is Place.FIELD]
        if self.body is not None or not fields:
            return self.body
        made: dict[str, Any] = {one.name: (one.type, one.field) for one in fields}
        title = "".join(part.capitalize() for part in self.id.split("_"))
        return create_model(f"{title}Request", __base__=StrictBody, __doc__=self.doc.partition("\n")[0], **made)

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """Its parameters by name, without the page, and with the fields of the body instead of its model."""
        found: dict[str, FieldInfo] = {}
        for one in self.parameters:
            match one.place:
                case Place.PATH | Place.QUERY:
                    found[one.name] = one.field
                case Place.FIELD if self.model is not None:
                    found[one.name] = self.model.model_fields[one.name]
                case Place.BODY if is_model(one.type):
                    found |= one.type.model_fields
                case _:
                    pass
        return found

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return its arguments from values by name, as ``fields`` lists them: those of a body become its model.

        Raises:
            RequestInvalid: a value in the body is not valid.
        """
        body = next((one for one in self.parameters if one.place is Place.BODY), None)
        if body is None:
            return dict(given)
        names = {one.name for one in self.parameters}
        inside = {name: value for name, value in given.items() if name not in names}
        beside = {name: value for name, value in given.items() if name in names}
        return {**beside, body.name: request(body.type, **inside)}

    @cached_property
    def _numbers(self) -> dict[str, TypeAdapter[int]]:
        """The validators of the numbers in the path."""
        found = (one for one in self.parameters if one.place is Place.PATH and one.type is int)
        return {one.name: TypeAdapter(Annotated[int, one.field]) for one in found}

    def check_numbers(self, arguments: Mapping[str, Any]) -> None:
        """Refuse numbers that cannot be in the path, in the words of a server; a name that cannot be names nothing.

        Raises:
            RequestInvalid: a number is too small or too large.
        """
        for name in self._numbers.keys() & arguments.keys():
            try:
                self._numbers[name].validate_python(arguments[name])
            except ValidationError as error:
                raise RequestInvalid(f"path.{name}: {error.errors()[0]['msg']}") from None

    @cached_property
    def is_paged(self) -> bool:
        """Tell whether it returns a list page by page."""
        return any(one.place is Place.PAGE for one in self.parameters)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The parameters that may be given by position."""
        code = self.function.__code__
        return code.co_varnames[1 : code.co_argcount]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return arguments by name."""
        return {**dict(zip(self.positional, args, strict=False)), **kwargs}

    def check(self, call: Caller, arguments: Mapping[str, Any]) -> None:
        """Refuse a caller who lacks the permission; note changes for the audit log.

        Raises:
            Unauthenticated: the caller is not signed in.
            Forbidden: the caller lacks the permission.
        """
        workflow_id = arguments["workflow_id"] if self.policy.scope is PermissionScope.WORKFLOW else ""
        # call.require also notes the requested change for the audit log. Reads are not noted, and an operation with
        # scope SOMEWHERE itself requires the permission for each workflow that it changes.
        if self.is_read or self.policy.scope is PermissionScope.SOMEWHERE:
            self.policy.check(call.principal, workflow_id)
        else:
            call.require(self.policy.permission, workflow_id)


def is_model(kind: Any) -> bool:
    """Tell whether a type is a model of a body."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


class Topic:
    """Operations about one topic, performed in this process on behalf of a caller."""

    __slots__ = ("call",)
    tag = ""
    """Their tag in the OpenAPI document."""

    def __init__(self, call: Caller) -> None:
        self.call = call

    def perform(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        """Check the permission, and perform the operation; the client overrides this, and sends a request."""
        operation.check(self.call, arguments)
        operation.check_numbers(arguments)
        return operation.function(self, **arguments)

    def pages(self, listed: Callable[..., Document], *, limit: int = _MANY, **given: Any) -> Iterator[Document]:
        """Yield all elements of a list, page by page.

        Args:
            listed: returns one page.
            limit: how many elements a page has.
            given: further arguments; those that are None are left out.
        """
        given = {name: value for name, value in given.items() if value is not None}
        page = Page(limit)
        while True:
            document = listed(page=page, **given)
            yield from document["elements"]
            about = document.get("page_info", {})
            if not about.get("has_next_page") or about.get("end_cursor") is None:
                return
            page = Page(limit, about["end_cursor"])

    def request_id(self, given: str | None) -> str | None:
        """Return the id of a request; the client generates one, so that it can repeat the request."""
        return given


def operation(
    route: str,
    policy: Policy,
    *,
    id: str | None = None,  # noqa: A002 - OpenAPI's word
    **more: Any,
) -> Callable[[Callable[Concatenate[_T, _P], _R]], Callable[Concatenate[_T, _P], _R]]:
    """Declare that a method of a topic is an operation.

    Args:
        route: the method and the path below ``/api/v3``.
        policy: who may perform it.
        id: its name in OpenAPI; that of the method, if not given.
        more: see ``Operation``.
    """
    verb, _, path = route.partition(" ")

    def declare(function: Callable[Concatenate[_T, _P], _R]) -> Callable[Concatenate[_T, _P], _R]:
        declared = Operation(id or function.__name__, verb, path, policy, function, **more)

        @wraps(function)
        def method(self: _T, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            result: _R = self.perform(declared, declared.bind(args, kwargs))
            return result

        method.operation = declared  # type: ignore[attr-defined]
        return method

    return declare


def operations_of(topic: type[Topic]) -> list[Operation]:
    """Return the operations that a topic declares, in order."""
    found = (getattr(member, "operation", None) for member in vars(topic).values())
    return [one for one in found if isinstance(one, Operation)]
