"""A server's refusals as the errors that the same call raises in process."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from calve import errors
from calve.errors import CalveError, ServerError

_OWN = frozenset({"self", "message", "remedy"})
_TOKEN = "Give a token that is valid there: CALVE_TOKEN=calve_…, or Client(url, token=…)."  # noqa: S105 - a sentence


def failure(status: int, body: Any, *, place: str) -> CalveError:
    """Return what an answer other than 2xx means: by its code, else in general.

    Args:
        status: the HTTP status.
        body: the answer, as JSON gave it; None if it is no JSON.
        place: what was asked, for people.
    """
    said: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    kind = {error.code: error for error in _tree(CalveError)}.get(str(said.get("code")))
    message = said.get("message") or said.get("detail")
    if kind is None:
        return ServerError(
            f"{place}: {status} {message or _phrase(status)}.", remedy=_remedy(status), status=status, place=place
        )
    given = said.get("context")
    context = {key: value for key, value in given.items() if key not in _OWN} if isinstance(given, Mapping) else {}
    if issubclass(kind, errors.ExpressionError):
        context.setdefault("kind", "")
    remedy = _TOKEN if kind is errors.Unauthenticated else said.get("remedy")
    return kind(
        None if message is None else str(message), remedy=remedy if isinstance(remedy, str) else None, **context
    )


def _tree(kind: type[CalveError]) -> Iterator[type[CalveError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"


def _remedy(status: int) -> str:
    if status == HTTPStatus.NOT_FOUND:
        return "Check that the address is that of a calve server, and that the server is as new as this client."
    return "The server's log says more." if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
