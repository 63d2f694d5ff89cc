"""What a request may weigh."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from calve.api.limits import CleanHeaders, SmallBodies, SmallHeaders


@pytest.fixture
def client() -> TestClient:
    """Give a client of an app that says how long a body is."""

    async def length(request: Request) -> Response:
        return JSONResponse(len(await request.body()))

    def header(request: Request) -> Response:
        answer = Response()
        answer.raw_headers.append((b"x-value", request.query_params["value"].encode()))
        return answer

    app = Starlette(
        routes=[Route("/", length, methods=["POST"]), Route("/header", header)],
        middleware=[Middleware(SmallHeaders), Middleware(CleanHeaders), Middleware(SmallBodies, limit=1_000)],
    )
    return TestClient(app)


def test_a_body_is_passed_on_whole(client: TestClient) -> None:
    """In one part, or in many."""
    assert client.post("/", content=b"x" * 1_000).json() == 1_000
    assert client.post("/", content=iter([b"x"] * 1_000)).json() == 1_000


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"x" * 1_001, 413, "body_too_large"),
        (b"[" * 65 + b"]" * 65, 400, "body_too_deep"),
        (b'{"a":' * 65, 400, "body_too_deep"),
        (b'[1, "]]]]", [[' + b"[" * 62, 400, "body_too_deep"),
    ],
)
def test_a_body_over_a_limit_is_refused(client: TestClient, content: bytes, status: int, code: str) -> None:
    """B.4-51: by its length, by what comes, by its depth."""
    answer = client.post("/", content=content)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    streamed = client.post("/", content=iter([content[:500], content[500:]]))
    assert (streamed.status_code, streamed.json()["code"]) == (status, code)


def test_an_incomplete_body_is_discarded() -> None:
    """Of a caller who hangs up before its end, nothing is done: the beginning of a YAML file is one too."""
    coming: list[Message] = [
        {"type": "http.request", "body": b"Workflow:\n  id: demo\n", "more_body": True},
        {"type": "http.disconnect"},
    ]
    done: list[str] = []

    async def receive() -> Message:
        return coming.pop(0)

    async def send(message: Message) -> None:
        done.append(message["type"])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        done.append(scope["type"])

    scope = {"type": "http", "headers": [(b"content-length", b"1000")]}
    asyncio.run(SmallBodies(app)(scope, receive, send))
    assert done == []


@pytest.mark.parametrize("content", [b'["' + b"[" * 500 + b'"]', b'"\\"\\"' * 200, b"[]" * 400, b'{"a": "\\""}', b"x["])
def test_depth_is_not_what_stands_in_texts(client: TestClient, content: bytes) -> None:
    """Nor what is closed again; an endless text is nobody's harm."""
    assert client.post("/", content=content).status_code == 200


def test_compressed_bodies_are_refused(client: TestClient) -> None:
    """A few bytes could become very many."""
    answer = client.post("/", content=b"x", headers={"content-encoding": "gzip"})
    assert answer.json()["code"] == "body_encoded"


def test_headers_have_a_limit(client: TestClient) -> None:
    """In size and in number."""
    assert client.get("/header?value=1", headers={"x-large": "x" * 17_000}).status_code == 431
    assert client.get("/header?value=1", headers={f"x-{number}": "1" for number in range(120)}).status_code == 431
    assert client.get("/header?value=" + "x" * 17_000).status_code == 431


def test_response_headers_have_no_line_breaks(client: TestClient) -> None:
    """B.4-52: what someone wrote stays in the line where it was put."""
    answer = client.get("/header", params={"value": "a\r\nSet-Cookie: b=c"})
    assert answer.headers["x-value"] == "a  Set-Cookie: b=c"
    assert "set-cookie" not in answer.headers
