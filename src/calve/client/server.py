"""HTTP requests to one server: retries, streams, and error responses raised as the errors of a call in process."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from calve import errors
from calve.errors import CalveError, RequestInvalid, ServerError, ServerUnreachable
from calve.operations import PREFIX
from calve.texts import check_text

TRIES = 5
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_NONE: Mapping[str, str] = {}
_OWN = frozenset({"self", "message", "remedy"})
_TOKEN = "Give a token that is valid there: CALVE_TOKEN=calve_…, or Client(url, token=…)."  # noqa: S105 - a sentence
_PASSING = frozenset({429, 502, 503, 504})
"""Statuses of a server, or of a proxy in front of it, after which a repeatable request is sent again."""


class Server:
    """Sends requests to a server, and repeats those that are safe to repeat."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.url = _checked(url)
        self.timeout = timeout
        self._sleep = sleep
        headers = {"Accept": "application/json", "User-Agent": "calve"}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers | ({"Authorization": f"Bearer {token}"} if token else {}),
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        place: str,
        body: Any = None,
        *,
        text: bytes | None = None,
        media: str = "application/x-yaml",
        query: Mapping[str, Any] | None = None,
        is_repeatable: bool = False,
    ) -> Any:
        """Send a request, and return the JSON of the response.

        Args:
            method: GET, POST, PUT or DELETE.
            place: the path.
            body: the body, which is sent as JSON.
            text: a body to send unchanged, instead.
            media: the content type of ``text``.
            query: the parameters of the query; values that are None are left out.
            is_repeatable: whether the request is idempotent, so that it may be repeated if no response arrives.

        Raises:
            CalveError: the server responded with this error.
            ServerUnreachable: no response arrived.
            RequestInvalid: the body contains a string that is not valid text.
        """
        check_text(body)
        given: dict[str, Any] = {"params": _present(query)}
        if text is not None:
            given |= {"content": text, "headers": {"Content-Type": media}}
        elif body is not None:
            given |= {"json": body}
        return _read(self._sent(method, place, given, is_repeatable=is_repeatable), f"{method} {place}")

    def has_page(self, place: str) -> bool:
        """Tell whether the server has a web page at a path, even if it requires signing in."""
        try:
            return not self._http.head(place, headers={"Accept": "text/html"}).is_error
        except httpx.TransportError:
            return False

    @contextmanager
    def stream(
        self, place: str, *, accept: str, silence: float, query: Mapping[str, Any], headers: Mapping[str, str] = _NONE
    ) -> Iterator[httpx.Response]:
        """Open a streamed response; ``httpx.ReadTimeout`` is raised after ``silence`` seconds without data."""
        timeout = httpx.Timeout(self.timeout, read=silence)
        with self._http.stream(
            "GET", place, params=_present(query), headers={"Accept": accept, **headers}, timeout=timeout
        ) as answer:
            if not answer.is_success:
                answer.read()
                _read(answer, f"GET {place}")
            yield answer

    def _sent(self, method: str, place: str, given: dict[str, Any], *, is_repeatable: bool) -> httpx.Response:
        pause = _FIRST_PAUSE
        for left in reversed(range(TRIES)):
            try:
                answer = self._http.request(method, place, **given)
            except httpx.TransportError as error:
                is_unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if not left or not (is_repeatable or is_unsent):
                    raise self.unreachable(error) from error
            else:
                if not left or not is_repeatable or answer.status_code not in _PASSING:
                    return answer
                pause = max(pause, _wanted_pause(answer))
            self._sleep(min(pause, _LONGEST_PAUSE))
            pause *= 2
        raise AssertionError  # pragma: no cover - the last try returns or raises

    def unreachable(self, error: httpx.TransportError) -> ServerUnreachable:
        """Return the error for a request without a response."""
        return ServerUnreachable(
            f"{self.url} does not answer: {error or type(error).__name__}.",
            remedy="Is calve server (or calve up) running there? Check CALVE_URL.",
            url=self.url,
        )


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise RequestInvalid(f"{url!r} is not the address of a server.", remedy="Write it like http://127.0.0.1:8765.")
    if parts.username is not None:
        raise RequestInvalid("The address of the server contains a name or a password.", remedy="Use an API token.")
    return url.rstrip("/").removesuffix(PREFIX)


def _present(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: _word(value) for name, value in (query or {}).items() if value is not None}


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _read(answer: httpx.Response, place: str) -> Any:
    try:
        body = json.loads(answer.content) if answer.content else None
    except ValueError:
        body = None
        if answer.is_success:
            kind = answer.headers.get("content-type", "nothing")
            raise ServerError(
                f"{place}: the answer is not JSON but {kind}.",
                remedy="Check that the address is that of a calve server.",
            ) from None
    if answer.is_success:
        return body
    raise failure(answer.status_code, body, place=place)


def _wanted_pause(answer: httpx.Response) -> float:
    """Return the seconds of the header ``Retry-After``; 0 if there is none."""
    wanted = answer.headers.get("retry-after", "")
    return float(wanted) if wanted.isdecimal() else 0.0


def failure(status: int, body: Any, *, place: str) -> CalveError:
    """Return the error for a response that is not 2xx: the class of its ``code`` if known, otherwise ServerError.

    Args:
        status: the HTTP status.
        body: the parsed body; None if it is not JSON.
        place: the method and the path, for the message.
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
