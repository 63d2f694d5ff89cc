"""Routes: one for each operation, and those with a handler of their own."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.routing import APIRoute, APIWebSocketRoute
from pydantic import BaseModel, ConfigDict
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount

from calve.api.caller import Call, WebCaller, principal_of
from calve.api.responses import Document
from calve.api.threads import in_slow_thread, in_thread
from calve.errors import RequestInvalid, SettingsInvalid
from calve.operations import DEFAULT, LIMIT, PREFIX, Operation, Operations, Page, Parameter, Place, Policy, declared
from calve.texts import check_text

Handler = TypeVar("Handler", bound=Callable[..., Any])
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\xed[\xa0-\xbf]|\x00")
"""Bytes of a JSON body that may contain invalid text."""
_Number = Annotated[int | None, Query(ge=1, le=LIMIT)]


class Error(BaseModel):
    """An error in Maestro's format; with ``Accept: application/problem+json``, in that of RFC 9457."""

    model_config = ConfigDict(extra="allow")

    status: str | int
    """The name of the status; in a problem document, its number."""
    code: str
    """For machines; the reference of errors lists them."""
    remedy: str
    """How to fix it."""
    errors: list[str]
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks the policy of a route."""

    policy: Policy

    async def __call__(self, request: HTTPConnection) -> None:
        """Check the caller of a request or a WebSocket.

        Raises:
            Unauthenticated: the caller is not signed in.
            Forbidden: the caller lacks the permission.
        """
        self.policy.check(principal_of(request), request.path_params.get("workflow_id", ""))


async def text_only(request: Request) -> None:
    """Refuse a request with invalid text in any of its parts.

    Raises:
        RequestInvalid: it does.
    """
    check_text({**request.path_params, **request.query_params})
    is_json = getattr(request.scope.get("route"), "body_field", None) is not None
    if is_json and _SUSPECT.search(await request.body()):
        with suppress(ValueError):  # invalid JSON is refused elsewhere
            check_text(await request.json())


async def _page(
    limit: _Number = None,
    first: _Number = None,
    last: _Number = None,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
) -> Page:
    given = [number for number in (limit, first, last) if number is not None]
    if len(given) > 1:
        raise RequestInvalid("Give one of limit, first and last.")
    return Page(given[0] if given else DEFAULT, cursor or None, last is not None)


Paged = Annotated[Page, Depends(_page)]
"""The page that a request selects; ``first`` is ``limit``, ``last`` reads from the end."""


async def _raw(request: Request) -> bytes:
    return await request.body()


class Routes:
    """Routes about one topic.

    Args:
        tag: the topic, in OpenAPI.
        prefix: the prefix of their paths.
        is_slow: whether they may wait for something other than the state database, or take long.
    """

    def __init__(self, tag: str, prefix: str = PREFIX, *, is_slow: bool = False) -> None:
        self.router = APIRouter(prefix=prefix, tags=[tag])
        self._is_slow = is_slow

    def get(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer GET."""
        return self._route("GET", path, name, policy, answer, **more)

    def head(self, path: str, name: str, policy: Policy, **more: Any) -> Callable[[Handler], Handler]:
        """Make a function answer HEAD: the server leaves out the body."""
        return self._route("HEAD", path, name, policy, None, **more)

    def post(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer POST."""
        return self._route("POST", path, name, policy, answer, **more)

    def _route(
        self, method: str, path: str, name: str, policy: Policy, answer: Any, *, is_slow: bool = False, **more: Any
    ) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            endpoint = _in_thread(handler, is_slow=is_slow or self._is_slow)
            add_route(self.router, method, path, name, policy, endpoint, answer, **more)
            return handler

        return decorate


def add_route(
    router: APIRouter,
    method: str,
    path: str,
    name: str,
    policy: Policy,
    endpoint: Callable[..., Any],
    answer: Any,
    *,
    status: int = 200,
    answers: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Add a route.

    Args:
        router: the router to add it to.
        method: the HTTP method.
        path: its path, below the prefix of the router.
        name: the operation's id, in OpenAPI.
        policy: who may use it.
        endpoint: the function that answers.
        answer: the schema of the response, for the OpenAPI document only.
        status: the status of the response.
        answers: additions to the response in OpenAPI.
        more: additions to the route in OpenAPI.
    """
    shape: Mapping[str, Any] = {"model": answer} if answer is not None else {}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": "Done.", **shape, **(answers or {})},
        "default": {"model": Error, "description": "The request failed."},
    }
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=name,
        summary=name.replace("_", " ").title(),
        dependencies=[Depends(Guard(policy)), Depends(text_only)],
        responses=responses,
        response_class=Document,
        response_model=None,
        status_code=status,
        **more,
    )


def _in_thread(handler: Callable[..., Any], *, is_slow: bool) -> Callable[..., Any]:
    """Return a function that calls a handler, in a thread unless the handler is a coroutine."""
    if inspect.iscoroutinefunction(handler):
        return handler
    thread = in_slow_thread if is_slow else in_thread

    @wraps(handler)
    async def answering(**arguments: Any) -> Any:
        return await thread(handler, **arguments)

    return answering


@dataclass(frozen=True, slots=True)
class Special:
    """A handler of an operation that can also respond in other formats than JSON.

    It takes the caller, headers that it declares itself, and the arguments of the operation.
    """

    handler: Callable[..., Response]
    answers: Mapping[str, Any]
    """Additions to the response in OpenAPI."""


def operation_routers(specials: Mapping[str, Special]) -> list[APIRouter]:
    """Return a route for every operation, by topic.

    Args:
        specials: handlers that can also respond in other formats than JSON, by the id of the operation.
    """
    routers: dict[str, APIRouter] = {}
    for tag, operation in declared():
        router = routers.setdefault(tag, APIRouter(prefix=PREFIX, tags=[tag]))
        special = specials.get(operation.id)
        add_route(
            router,
            operation.method,
            operation.path,
            operation.id,
            operation.policy,
            _endpoint(operation) if special is None else _special_endpoint(operation, special.handler),
            operation.answer,
            status=operation.status,
            answers=None if special is None else special.answers,
            openapi_extra=dict(operation.openapi) or None,
        )
    return list(routers.values())


def _endpoint(operation: Operation) -> Callable[..., Any]:
    """Return the function that answers requests for an operation; what its declaration defines is computed once."""
    function, status = operation.function, operation.status
    thread = in_slow_thread if operation.is_slow else in_thread
    fields = tuple(one.name for one in operation.parameters if one.place is Place.FIELD)

    def answer(call: WebCaller, arguments: dict[str, Any]) -> Response:
        # Without operation.check: the guard of the route has checked already; other edges check themselves.
        result = function(Operations(call), **arguments)
        return PlainTextResponse(result, status) if isinstance(result, str) else Document(result, status)

    async def endpoint(call: WebCaller, **arguments: Any) -> Response:
        if fields and (body := arguments.pop("body")) is not None:
            arguments.update((name, getattr(body, name)) for name in fields)
        return await thread(answer, call, arguments)

    return _described(endpoint, operation, [])


def _special_endpoint(operation: Operation, handler: Callable[..., Response]) -> Callable[..., Any]:
    known = {"call", *(one.name for one in operation.parameters)}
    given = inspect.signature(handler).parameters.values()
    headers = [one.replace(kind=_KEYWORD) for one in given if one.name not in known and one.kind is not one.VAR_KEYWORD]

    async def endpoint(**arguments: Any) -> Response:
        return await in_slow_thread(handler, **arguments)

    return _described(endpoint, operation, headers)


def _described(
    endpoint: Callable[..., Any], operation: Operation, headers: list[inspect.Parameter]
) -> Callable[..., Any]:
    """Set the signature of an endpoint, for FastAPI."""
    call = inspect.Parameter("call", _KEYWORD, annotation=Call)
    endpoint.__doc__ = operation.doc
    endpoint.__name__ = operation.id
    endpoint.__signature__ = inspect.Signature([call, *_parameters(operation), *headers])  # type: ignore[attr-defined]
    return endpoint


def _parameters(operation: Operation) -> Iterator[inspect.Parameter]:
    for one in operation.parameters:
        if one.place is not Place.FIELD:
            default = one.default if one.place is Place.QUERY else inspect.Parameter.empty
            yield inspect.Parameter(one.name, _KEYWORD, annotation=_annotation(one), default=default)
    if any(one.place is Place.FIELD for one in operation.parameters):
        model = operation.model
        assert model is not None  # noqa: S101 - fields make one
        if operation.needs_body or any(field.is_required() for field in model.model_fields.values()):
            yield inspect.Parameter("body", _KEYWORD, annotation=model)
        else:
            yield inspect.Parameter("body", _KEYWORD, annotation=Annotated[model | None, Body()], default=None)


def _annotation(parameter: Parameter) -> Any:
    kind, argument = parameter.type, parameter.argument
    match parameter.place:
        case Place.PATH:
            return Annotated[kind, Path(description=argument.doc, **argument.checks)]
        case Place.QUERY:
            return Annotated[kind, Query(alias=argument.alias, description=argument.doc, **argument.checks)]
        case Place.PAGE:
            return Paged
        case Place.RAW:
            return Annotated[bytes, Depends(_raw)]
        case _:
            return Annotated[kind, Body(**argument.checks)]


def policy_of(route: BaseRoute) -> Policy | None:
    """Return the policy of a route, if it has one."""
    dependencies = route.dependencies if isinstance(route, APIRoute | APIWebSocketRoute) else ()
    policies = [one.dependency.policy for one in dependencies if isinstance(one.dependency, Guard)]
    return policies[0] if len(policies) == 1 else None


def check_policies(routes: Iterable[BaseRoute]) -> None:
    """Refuse an app with a route that has no policy, which every caller could use.

    Raises:
        SettingsInvalid: a route has no policy.
    """
    bare = [getattr(route, "path", repr(route)) for route in _all(routes) if policy_of(route) is None]
    if bare:
        raise SettingsInvalid(
            f"These routes have no policy: {', '.join(bare)}.",
            remedy="Give each one: dependencies=[Depends(Guard(…))].",
        )


def _all(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        if isinstance(route, Mount) and route.routes:
            yield from _all(route.routes)
        else:
            yield route
