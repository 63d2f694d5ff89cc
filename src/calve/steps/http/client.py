"""Sends one request, follows redirects, and reads a response of bounded size."""

import base64
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from calve.engine import StepContext
from calve.errors import StepFailed
from calve.steps.config import text, texts
from calve.steps.failures import fatal, platform_error
from calve.steps.http.allow_list import AllowList, Resolver
from calve.steps.http.transport import Deadline, Transport

logging.getLogger("httpx").setLevel(logging.WARNING)  # httpx logs whole URLs at level INFO; they may contain secrets

REDIRECTS = 5
BODY_BYTES = 1_000_000
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""Headers that the client derives from the URL and the body; a step cannot set them."""
_HARMLESS = frozenset({"accept", "accept-encoding", "content-type", "content-length", "host", "user-agent"})
"""Headers that are sent on after a redirect to another host."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The response."""

    status: int
    reason: str
    body: str
    headers: Mapping[str, str]
    """The headers by their names in lower case."""


def send_request(
    config: Mapping[str, Any], context: StepContext, key: str, *, allowed: AllowList, resolver: Resolver
) -> HttpAnswer:
    """Send the request that a step's fields describe, and return the answer.

    Raises:
        StepFailed: the host is not allowed, or did not respond.
    """
    request = _request(config, key)
    deadline = Deadline(config["timeout_seconds"], context.is_interrupted)
    with Transport(allowed, resolver, deadline, verify=config["verify"]) as transport:
        try:
            return _follow(transport, request, context, allowed)
        except (httpx.HTTPError, httpx.InvalidURL, httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
            raise fatal(f"{shown(request)}: {error}.") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise platform_error(f"{shown(request)}: {str(error) or type(error).__name__}.") from None


def shown(request: httpx.Request) -> str:
    """Return a request for messages and logs: without its query and credentials, which may be secret."""
    return f"{request.method} {request.url.copy_with(userinfo=b'', query=None, fragment=None)}"


def _request(config: Mapping[str, Any], key: str) -> httpx.Request:
    body = config.get("body")
    content: dict[str, Any] = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}
    try:
        url = httpx.URL(config["url"])
        query = config.get("query")
        if query:
            url = url.copy_merge_params({name: _query_value(value) for name, value in query.items()})
        headers = _headers(config, url, key)
        return httpx.Request(config["method"], url.copy_with(userinfo=b""), headers=headers, **content)
    except (httpx.InvalidURL, ValueError) as error:
        raise fatal(f"The request cannot be made: {error}.") from None


def _query_value(value: Any) -> Any:
    return [text(item) for item in value] if isinstance(value, list | tuple) else text(value)


def _headers(config: Mapping[str, Any], url: httpx.URL, key: str) -> httpx.Headers:
    given = httpx.Headers(texts(config.get("headers", {})))
    if refused := _OURS.intersection(given):
        raise fatal(f"http.headers cannot set {', '.join(sorted(refused))}: it follows from the address and the body.")
    defaults = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "calve"}
    if config["method"] not in {"GET", "HEAD", "OPTIONS"}:
        defaults["idempotency-key"] = key
    if credentials := _credentials(config.get("auth", {}), url):
        defaults["authorization"] = credentials
    return httpx.Headers(defaults | dict(given))


def _credentials(auth: Mapping[str, Any], url: httpx.URL) -> str:
    if "token" in auth:
        return f"Bearer {auth['token']}"
    name, password = auth.get("username", url.username), auth.get("password", url.password)
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" if name or password else ""


def _follow(transport: Transport, request: httpx.Request, context: StepContext, allowed: AllowList) -> HttpAnswer:
    client = httpx.Client(transport=transport, trust_env=False, follow_redirects=False)
    for _ in range(REDIRECTS + 1):
        _check(request.url, allowed)
        context.log(f"{shown(request)}\n")
        response = client.send(request, stream=True, auth=None)
        try:
            if response.next_request is None:
                return _answer(response)
            request = _redirected(request, response.next_request)
        finally:
            response.close()
    raise fatal(f"More than {REDIRECTS} redirects, the last one to {shown(request)}.")


def _check(url: httpx.URL, allowed: AllowList) -> None:
    if url.scheme not in {"http", "https"} or not url.host:
        raise fatal(f"{url.scheme}://{url.host} is not an http or https URL.")
    allowed.check_host(url.raw_host.decode("ascii"))


def _redirected(before: httpx.Request, after: httpx.Request) -> httpx.Request:
    """Return the next request, without credentials if it goes to another host."""

    def origin(url: httpx.URL) -> tuple[str, str, int | None]:
        return url.scheme, url.host, url.port

    if origin(before.url) != origin(after.url):
        for name in set(after.headers) - _HARMLESS:
            del after.headers[name]
    after.url = after.url.copy_with(userinfo=b"")
    return after


def _answer(response: httpx.Response) -> HttpAnswer:
    body = _decoded(_read(response), response.headers.get("content-encoding", "identity"))
    headers = {name.lower(): value for name, value in response.headers.items()}
    encoding = response.charset_encoding or "utf-8"
    try:
        decoded = body.decode(encoding, errors="replace")
    except LookupError:  # an unknown charset
        decoded = body.decode(errors="replace")
    return HttpAnswer(response.status_code, response.reason_phrase, decoded, headers)


def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > BODY_BYTES:
            raise _too_large()
    return bytes(body)


def _decoded(body: bytes, encoding: str) -> bytes:
    """Decompress a body that a server compressed although it was asked not to, up to the size limit."""
    match encoding.lower():
        case "identity" | "":
            return body
        case "gzip" | "x-gzip" | "deflate":
            unpacking = zlib.decompressobj(wbits=47)
        case _:
            raise fatal(f"The response is encoded as {encoding}, which calve does not support.")
    try:
        plain = unpacking.decompress(body, BODY_BYTES + 1)
    except zlib.error as error:
        raise platform_error(f"The response is not {encoding}: {error}.") from None
    if len(plain) > BODY_BYTES:
        raise _too_large()
    return plain


def _too_large() -> StepFailed:
    return fatal(f"The body of the response is larger than {BODY_BYTES:,} bytes.")
