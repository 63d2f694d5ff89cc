"""Requests to a REST catalog: PyIceberg signs in and signs, calve sends and reads the JSON itself.

PyIceberg decodes answers into classes that refuse column types which it does not know, and loses the fields of
snapshots that it has no attributes for.
"""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from calve.errors import CalveError, CatalogRefused, LakeUnavailable
from calve.lake import metadata as raw
from calve.lake.commit_outcomes import Outcome, outcome_of
from calve.lake.metadata_checks import decoding, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog.rest import RestCatalog
    from requests import Response

_TIMEOUTS = (10.0, 120.0)
"""Seconds to connect, and to wait for the next bytes."""
_READS = 4
"""How often a request that changes nothing is sent, before the catalog counts as unavailable."""
_ATTEMPTS = 6
"""The same for one that changes something: some 5 s."""
_SIGNED_OUT = frozenset({401, 419})
_ERRORS = 400
_CHUNK = 1 << 16
_DONE = 204
_LONGEST_PAUSE, _LONGEST_WANTED = 1.5, 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a catalog answered, or why there is no answer."""

    status: int | None
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    """Why there is no answer."""

    @property
    def outcome(self) -> Outcome:
        """What became of the request."""
        return outcome_of(self.status, self.kind, self.message)

    @property
    def kind(self) -> str:
        """The type of the error that it names."""
        return str(self._error.get("type", ""))

    @property
    def message(self) -> str:
        """The error that it names, for people."""
        return str(self._error.get("message") or self.failure or f"HTTP status {self.status}")

    @property
    def wanted_pause(self) -> float | None:
        """The seconds after which the catalog asks to come back."""
        text = self.headers.get("Retry-After", "")
        return min(float(text), _LONGEST_WANTED) if text.isdigit() else None

    @property
    def _error(self) -> Mapping[str, Any]:
        if self.status is None or self.status < _ERRORS:
            return {}
        try:
            found = json.loads(self.content).get("error")
        except (ValueError, AttributeError, RecursionError):  # of a proxy in between: HTML, as a rule
            return {}
        return found if isinstance(found, dict) else {}


class RestSession:
    """Sends requests to one REST catalog; safe for several threads."""

    def __init__(self, name: str, opened: "Callable[[], RestCatalog]", max_bytes: int) -> None:
        """Take the catalog's name, what opens PyIceberg's catalog, and the limit of an answer."""
        self.name = name
        self._opened = opened
        self._max_bytes = max_bytes
        self._signing_in = Lock()

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog, after its own defaults and overrides."""
        properties: Mapping[str, str] = self.catalog().properties
        return properties

    def catalog(self) -> "RestCatalog":
        """Return PyIceberg's catalog, which asks the server for its configuration when it is opened."""
        with reached(self.name):
            return self._opened()

    def offers(self, endpoint: str) -> bool:
        """Tell whether the catalog has an endpoint, such as ``HEAD namespaces/{namespace}``."""
        method, _, path = endpoint.partition(" ")
        known = self.catalog()._supported_endpoints  # noqa: SLF001 - there is no other way to see them
        return f"{method} /v1/{{prefix}}/{path}" in map(str, known)

    def path(self, template: str, namespace: Sequence[str] = (), **parts: str) -> str:
        """Return the path of an endpoint, with names as the catalog separates and escapes them."""
        levels = self.catalog()._encode_namespace_path(tuple(namespace))  # noqa: SLF001 - the separator is configured
        return template.format(namespace=levels, **{key: quote(text, safe="") for key, text in parts.items()})

    def read(self, path: str, params: Mapping[str, str] | None = None, *, method: str = "GET", **more: Any) -> Answer:
        """Send a request that changes nothing, again if the answer is lost; return it, also if nothing is there.

        Raises:
            LakeUnavailable: there is no answer.
            CatalogRefused: the catalog does not let the caller read this.
        """
        for attempt in range(_READS):
            answer = self.send(method, path, params=params, **more)
            if answer.outcome in {Outcome.DONE, Outcome.MISSING}:
                return answer
            if answer.outcome in {Outcome.REFUSED, Outcome.CONFLICT}:
                raise self.refusal(answer)
            if attempt + 1 < _READS:
                pause(attempt, answer)
        raise self.unavailable(answer)

    def repeat(self, method: str, path: str, **given: Any) -> Answer:
        """Send a request that may be carried out twice until its outcome is known.

        What a repeated DELETE does not find, it has removed itself when it was sent before.

        Raises:
            LakeUnavailable: the outcome stays unknown.
        """
        is_unknown = False
        for attempt in range(_ATTEMPTS):
            answer = self.send(method, path, **given)
            if answer.outcome not in {Outcome.UNKNOWN, Outcome.BUSY}:
                was_done = is_unknown and method == "DELETE" and answer.outcome is Outcome.MISSING
                return Answer(_DONE) if was_done else answer
            is_unknown |= answer.outcome is Outcome.UNKNOWN
            pause(attempt, answer)
        raise self.unavailable(answer)

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request once, or twice if a token has to be renewed; return what is known of it afterwards."""
        catalog = self.catalog()
        url = catalog.url(path.replace("{", "{{").replace("}", "}}"))
        given = {
            "params": dict(params or {}),
            "data": None if body is None else json.dumps(body).encode(),
            "headers": dict(headers or {}),
        }
        answer = self._sent(catalog, method, url, given)
        if answer.status in _SIGNED_OUT:
            with self._signing_in, reached(self.name):
                catalog._refresh_token()  # noqa: SLF001 - PyIceberg's own retry does this
            answer = self._sent(catalog, method, url, given)
        return answer

    def parse(self, answer: Answer, what: str) -> dict[str, Any]:
        """Return the JSON of an answer, checked like a metadata file.

        Raises:
            LakeCorrupt: it is damaged, or too large.
        """
        with decoding(what):
            document = raw.parse(answer.content, self._max_bytes)
            if not isinstance(document, dict):
                raise TypeError(f"the catalog {self.name} did not answer with an object")
            return document

    def refusal(self, answer: Answer, remedy: str = "") -> CatalogRefused:
        """Return the error for a request that the catalog refused."""
        cure = _sign_in(self.name) if answer.status in _SIGNED_OUT else remedy
        return CatalogRefused(
            f"The catalog {self.name} refused: {one_line(answer.message)}",
            remedy=cure or None,
            catalog=self.name,
            status=answer.status,
        )

    def unavailable(self, answer: Answer) -> LakeUnavailable:
        """Return the error for a request without an answer."""
        return LakeUnavailable(
            f"The catalog {self.name} cannot be reached: {one_line(answer.message)}", catalog=self.name
        )

    def _sent(self, catalog: "RestCatalog", method: str, url: str, given: Mapping[str, Any]) -> Answer:
        from requests.exceptions import RequestException

        try:
            with catalog._session.request(method, url, timeout=_TIMEOUTS, stream=True, **given) as response:  # noqa: SLF001 - see the module
                return Answer(response.status_code, self._content(response), response.headers)
        except (RequestException, OSError) as error:
            return Answer(None, failure=str(error))

    def _content(self, response: "Response") -> bytes:
        """Read an answer, but not more than the limit, however small it is while it is compressed."""
        content = bytearray()
        for chunk in response.iter_content(_CHUNK):
            content += chunk
            if len(content) > self._max_bytes:
                raise too_large(f"it has more than {self._max_bytes} bytes").in_file(response.url)
        return bytes(content)


def pause(attempt: int, answer: Answer) -> None:
    """Wait before a request is sent again: longer each time, and not all at once."""
    # A conflict means that the catalog works; the pauses of eight of them add up to 2.6 s at most.
    base = 0.01 if answer.outcome is Outcome.CONFLICT else 0.1
    usual = min(base * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - to get out of step, no secret
    time.sleep(usual if answer.wanted_pause is None else answer.wanted_pause)


def _sign_in(name: str) -> str:
    return f"Check credential, token and scope of the catalog {name}."


def one_line(message: str) -> str:
    """Return a message of a server on one line, without control characters."""
    plain = " ".join(message.split())
    plain = plain if plain.isprintable() else repr(plain)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"


_LONGEST = 600


@contextmanager
def reached(name: str) -> "Iterator[None]":
    """Turn errors of PyIceberg while it signs in into errors that name the catalog."""
    from pyiceberg.exceptions import (
        AuthorizationExpiredError,
        BadRequestError,
        ForbiddenError,
        OAuthError,
        RESTError,
        UnauthorizedError,
    )
    from requests.exceptions import RequestException

    refused = (AuthorizationExpiredError, BadRequestError, ForbiddenError, OAuthError, UnauthorizedError)
    try:
        yield
    except CalveError:
        raise
    except refused as error:
        raise CatalogRefused(
            f"The catalog {name} refused: {one_line(str(error))}",
            remedy=_sign_in(name),
            catalog=name,
        ) from error
    except (RESTError, RequestException, OSError) as error:
        raise LakeUnavailable(f"The catalog {name} cannot be reached: {one_line(str(error))}", catalog=name) from error
