"""Errors as responses: a table of statuses, Maestro's body and that of RFC 9457."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from calve import errors
from calve.errors import CalveError
from calve.operations import PREFIX

_LOG = logging.getLogger(__name__)
PROBLEM = "application/problem+json"

STATUS: Mapping[type[CalveError], int] = {
    CalveError: 500,
    errors.SettingsInvalid: 500,
    errors.EnvironmentUnfit: 500,
    errors.RequestInvalid: 400,
    errors.SqlFailed: 400,
    errors.LakeError: 502,
    errors.CatalogUnknown: 404,
    errors.NotSupportedByCatalog: 422,
    errors.TableMissing: 404,
    errors.TableIsView: 422,
    errors.TableEncrypted: 422,
    errors.FormatVersionUnknown: 422,
    errors.FilesLost: 410,
    errors.LakeCorrupt: 422,
    errors.SourceBusy: 409,
    errors.SourceUnstable: 409,
    errors.CaptureError: 409,
    errors.HistoryExpired: 410,
    errors.SnapshotUnknown: 404,
    errors.RangeColumnMissing: 422,
    errors.CheckpointMissing: 404,
    errors.CaptureMissing: 404,
    errors.DeliveryError: 409,
    errors.DefinitionInvalid: 400,
    errors.ParamError: 400,
    errors.ExpressionError: 400,
    errors.WorkflowMissing: 404,
    errors.SignalMissing: 404,
    errors.ActionRefused: 400,
    errors.ActionPending: 408,
    errors.AlertNotSent: 502,
    errors.ServerError: 502,
    errors.WaitedTooLong: 408,
    errors.Conflict: 409,
    errors.LeaseLost: 409,
    errors.StepFailed: 500,
    errors.AccessError: 403,
    errors.Unauthenticated: 401,
    errors.TooManyAttempts: 429,
    errors.TooManyStreams: 429,
    errors.StreamsExhausted: 503,
    errors.ProviderFailed: 502,
    errors.StoreError: 500,
    errors.StoreUnavailable: 503,
    errors.StoreBusy: 503,
    errors.StoreDamaged: 503,
    errors.StoreSchemaUnknown: 503,
}
"""The status of every error; an error that is not listed has that of its nearest base class."""
_NAMES = {500: "INTERNAL_ERROR", 422: "UNPROCESSABLE_ENTITY", 413: "PAYLOAD_TOO_LARGE"}
"""Statuses whose name in Maestro differs from Python's."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of a request, independent of the format of the response."""

    status: int
    message: str
    code: str
    remedy: str = ""
    details: list[str] = field(default_factory=list)
    context: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def status_of(kind: type[CalveError]) -> int:
    """Return the HTTP status of an error."""
    return next(STATUS[one] for one in kind.__mro__ if one in STATUS)


def handle_errors(app: FastAPI) -> None:
    """Answer all errors of an app with a problem document."""
    app.add_exception_handler(CalveError, _of_calve)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_bug)


def answer(
    accept: str,
    status: int,
    message: str,
    *,
    code: str,
    remedy: str = "",
    details: list[str] | None = None,
    context: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error in Maestro's format, or in that of RFC 9457 if the caller accepts it."""
    more = {"code": code, "remedy": remedy, "errors": details or [], "context": dict(context or {})}
    is_problem = PROBLEM in accept
    if is_problem:
        title = HTTPStatus(status).phrase
        body = {"type": f"urn:calve:error:{code}", "title": title, "status": status, "detail": message, **more}
    else:
        body = {"status": status_name(status), "message": message, **more}
    media = PROBLEM if is_problem else "application/json"
    return Response(json.dumps(body, default=str), status, headers=dict(headers or {}), media_type=media)


def status_name(status: int) -> str:
    """Return Maestro's name of a status."""
    return _NAMES.get(status) or HTTPStatus(status).name


def problem_of(error: CalveError) -> Problem:
    """Return an error as the problem of a request."""
    status = status_of(type(error))
    problems = error.context.get("problems", ())
    details = [str(problem.get("message", "")) for problem in problems if isinstance(problem, Mapping)]
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    if "retry_after" in error.context:
        headers["Retry-After"] = str(error.context["retry_after"])
    return Problem(status, error.message, error.code, error.remedy, details, error.context, headers)


def error_answer(accept: str, error: CalveError) -> Response:
    """Return the response to a request that ended with an error."""
    return _document(accept, problem_of(error))


def _document(accept: str, problem: Problem) -> Response:
    return answer(
        accept,
        problem.status,
        problem.message,
        code=problem.code,
        remedy=problem.remedy,
        details=problem.details,
        context=problem.context,
        headers=problem.headers,
    )


def refusal(scope: Scope, error: CalveError) -> Response:
    """Return the response to a request that is refused before its route."""
    if scope["type"] != "http":
        return error_answer(accepted(scope), error)
    return _answered(Request(scope), problem_of(error))


def _answered(request: Request, problem: Problem) -> Response:
    """Return the response: a page if the app has pages and the caller is a browser, otherwise a document."""
    accept, page = accepted(request.scope), getattr(request.app.state, "error_page", None)
    if page is None or "text/html" not in accept or request.url.path.startswith(PREFIX):
        return _document(accept, problem)
    answered: Response = page(request, problem)
    return answered


def accepted(scope: Scope) -> str:
    """Return the media types that a caller accepts."""
    return Headers(scope=scope).get("accept", "")


async def _of_calve(request: Request, error: Exception) -> Response:
    assert isinstance(error, CalveError)  # noqa: S101 - what it is registered for
    if status_of(type(error)) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _LOG.error("%s %s: %s", request.scope.get("method", ""), request.url.path, error.message)
    request.state.refused = error  # the middleware sends it over a WebSocket
    return _answered(request, problem_of(error))


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the same
    details = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
    message = details[0] if details else "The request is invalid."
    is_unread = not _is_json(request) and any(one["loc"][0] == "body" for one in error.errors())
    remedy = "Send the body as JSON, with the header content-type: application/json." if is_unread else ""
    return _answered(request, Problem(400, message, errors.RequestInvalid.code, remedy, details))


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the same
    code = status_name(error.status_code).lower()
    message, remedy = str(error.detail), ""
    if error.status_code == HTTPStatus.NOT_FOUND:
        path = request.url.path
        message, remedy = f"There is no route {path}.", "Routes: /api/v3/openapi.json"
        if path.startswith("/workflows/"):
            remedy = f"This document has no page. As JSON: /api/v3{path}"
    return _answered(request, Problem(error.status_code, message, code, remedy, headers=error.headers or {}))


async def _of_bug(request: Request, error: Exception) -> Response:
    _LOG.exception("%s %s", request.method, request.url.path, exc_info=error)
    message = "Internal error; see the server's log."
    return _answered(request, Problem(500, message, "unexpected"))


def _is_json(request: Request) -> bool:
    """Tell whether there is no body, or one with a media type of JSON."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return request.method in {"GET", "DELETE"} or given.endswith("json")
