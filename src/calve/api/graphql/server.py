"""GraphQL over HTTP, and subscriptions over a WebSocket."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import strawberry
from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIWebSocketRoute
from graphql import GraphQLError
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import HTTPConnection
from starlette.responses import Response
from strawberry.extensions import MaskErrors
from strawberry.fastapi import GraphQLRouter
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionContext, ExecutionResult
from strawberry.types.graphql import OperationType

from calve.api.caller import Call, WebCaller, caller_of
from calve.api.graphql.limits import LENGTH, Ending, Limits
from calve.api.graphql.mutations import Mutation
from calve.api.graphql.operations import extended
from calve.api.graphql.queries import Query
from calve.api.graphql.subscriptions import Subscription
from calve.api.graphql.values import CONFIG
from calve.api.responses import Document
from calve.api.routes import Guard, Routes
from calve.api.threads import Abandoned, Deadline
from calve.errors import CalveError, RequestInvalid
from calve.operations import READ_SOMEWHERE

PATH = "/graphql"
_LOG = logging.getLogger(__name__)
_SAID = frozenset({OperationType.QUERY, OperationType.MUTATION})
_BUG = "Internal error; see the server's log."


class _Schema(strawberry.Schema):
    """A schema that logs bugs, but not mistakes of callers."""

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Log unexpected errors."""
        del execution_context
        for error in filter(_is_bug, errors):
            _LOG.error("graphql", exc_info=error.original_error)


def _is_bug(error: GraphQLError) -> bool:
    cause = error.original_error
    return cause is not None and not isinstance(cause, GraphQLError | CalveError)


SCHEMA = _Schema(
    extended(Query, is_read=True),
    extended(Mutation, is_read=False),
    Subscription,
    extensions=[Limits, Ending],
    config=CONFIG,
)
"""The schema: queries and mutations over HTTP, subscriptions over a WebSocket."""

routes = Routes("graphql", prefix="", is_slow=True)


class GraphQLRequest(BaseModel):
    """A GraphQL request."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    query: Annotated[str, Field(min_length=1, max_length=LENGTH, examples=["{ workflows { items { id } } }"])]
    variables: dict[str, Any] | None = None
    operation_name: Annotated[str | None, Field(alias="operationName", max_length=128)] = None


@routes.post(PATH, "graphql", READ_SOMEWHERE)
async def ask(call: Call, request: GraphQLRequest, connection: Request) -> Response:
    """Answer a GraphQL query, or perform a GraphQL mutation."""
    allowed = call.services.graphql.deadline
    deadline = Deadline(time.monotonic() + allowed.total_seconds(), is_ending=call.services.ending)
    watching = asyncio.create_task(_watch(connection, deadline.is_gone))
    try:
        return await call.services.queries.run(call.name, lambda: _answer(replace(call, deadline=deadline), request))
    except Abandoned:
        raise RequestInvalid(
            f"The request took longer than {allowed.total_seconds():g} s, and was cancelled.",
            remedy="Request less at a time, or increase server.graphql.deadline.",
        ) from None
    finally:
        watching.cancel()


async def _watch(connection: Request, is_gone: threading.Event) -> None:
    """Wait until the caller hangs up."""
    while (await connection.receive())["type"] != "http.disconnect":
        pass
    is_gone.set()


def _answer(call: WebCaller, request: GraphQLRequest) -> Response:
    call.deadline.check()  # it may have waited for a thread
    result = _result(call, request)
    answer: dict[str, Any] = {"data": result.data}
    if result.errors:
        answer["errors"] = [_told(error) for error in result.errors]
    return Document(answer)


def _result(call: WebCaller, request: GraphQLRequest) -> ExecutionResult:
    """Perform a request.

    Raises:
        RequestInvalid: it is neither a query nor a mutation, or does not say which of several operations to perform.
    """
    try:
        return SCHEMA.execute_sync(
            request.query,
            request.variables,
            context_value=call,
            operation_name=request.operation_name,
            allowed_operation_types=_SAID,
        )
    except InvalidOperationTypeError as error:
        raise RequestInvalid("Subscriptions require a WebSocket.", remedy=f"Open one at {PATH}.") from error
    except CannotGetOperationTypeError as error:
        raise RequestInvalid(error.as_http_error_reason(), remedy="Set operationName to one of them.") from error


def _told(error: GraphQLError) -> dict[str, Any]:
    """Return an error for the response: calve's with its code, mistakes in the query as they are, no bugs."""
    cause = error.original_error
    if cause is None:
        return {**error.formatted, "extensions": {"code": RequestInvalid.code}}
    if isinstance(cause, CalveError):
        more = {"code": cause.code, "remedy": cause.remedy}
        return {**error.formatted, "message": cause.message, "extensions": more}
    return {**error.formatted, "message": _BUG, "extensions": {"code": "unexpected"}}


@strawberry.type
class _OnlyEvents:
    """The queries over a WebSocket, which serves only subscriptions: none."""

    @strawberry.field
    def hint(self) -> str:
        """Return where to send queries."""
        return f"Send queries and mutations to POST {PATH}."


def _listening() -> Sequence[APIWebSocketRoute]:
    """Return the route for subscriptions; queries over it would block all other WebSockets, and are refused."""
    schema = _Schema(
        _OnlyEvents,
        subscription=Subscription,
        extensions=[Limits, lambda: MaskErrors(_is_bug, _BUG)],
        config=CONFIG,
    )
    router: GraphQLRouter[dict[str, WebCaller], None] = GraphQLRouter(
        schema,
        path=PATH,
        graphql_ide=None,
        context_getter=_context,
        subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
        dependencies=[Depends(Guard(READ_SOMEWHERE)), Depends(_counted)],
    )
    return [route for route in router.routes if isinstance(route, APIWebSocketRoute)]


async def _context(connection: HTTPConnection) -> dict[str, WebCaller]:
    return {"caller": caller_of(connection)}


async def _counted(connection: HTTPConnection) -> AsyncIterator[None]:
    """Count an open WebSocket as a stream, in addition to its subscriptions."""
    caller = caller_of(connection)
    with caller.services.streams.opened(caller.name):
        yield


def routers() -> list[APIRouter]:
    """Return the routes of GraphQL."""
    listening = APIRouter()
    listening.routes.extend(_listening())
    return [routes.router, listening]
