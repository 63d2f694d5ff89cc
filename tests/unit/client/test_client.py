"""The client against a server that says what a test wants."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from calve.client import Client
from calve.client.events import Message, messages
from calve.client.server import failure
from calve.errors import (
    ActionRefused,
    DefinitionInvalid,
    ExpressionFailed,
    RequestInvalid,
    ServerError,
    ServerUnreachable,
    WaitedTooLong,
    WorkflowMissing,
)

Answer = tuple[int, Any]
LOST = "lost"
"""In place of a status: the connection is cut without a word."""
_A, _B, _C = {"n": 1}, {"n": 2}, {"n": 3}


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


@dataclass
class Said:
    """A server that gives the answers of a list one after the other, the last one again and again."""

    answers: list[Any] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def next(self) -> Any:
        """Return the next answer."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def of(self, start: str) -> list[Asked]:
        """Return the requests whose path begins like that."""
        return [one for one in self.asked if one.path.startswith(start)]


class _Handler(BaseHTTPRequestHandler):
    said: Said

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.said.asked.append(Asked(self.command, self.path, headers, self.rfile.read(length)))
        answer = self.said.next()
        status, body = answer(self.said.asked[-1]) if callable(answer) else answer
        if status == LOST:
            self.close_connection = True
            return
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, bytes) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - as the library calls them

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's signature
        """Say nothing."""


@pytest.fixture
def said() -> Iterator[Said]:
    """Yield a server."""
    script = Said()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"said": script}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}"
    yield script
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(said: Said) -> Iterator[Client]:
    """Yield a client that does not wait between tries."""
    with Client(said.url, "calve_abc", sleep=lambda _: None) as made:
        yield made


def _problem(status: int, **body: Any) -> Answer:
    return status, {"status": "BAD", "message": "no", "errors": [], **body}


def test_a_refusal_is_the_error_of_the_engine(said: Said, client: Client) -> None:
    """What the engine raises in process is raised by the client, with message, remedy and context."""
    said.answers = [_problem(404, code="workflow_missing", remedy="Push it.", context={"workflow": "a", "message": 1})]
    with pytest.raises(WorkflowMissing, match="no") as raised:
        client.instance("a", 1)
    assert raised.value.remedy == "Push it."
    assert raised.value.context == {"workflow": "a"}


def test_a_token_that_opens_nothing_is_reported_as_people_give_it() -> None:
    """And not as the header that a server hears of."""
    error = failure(401, {"code": "unauthenticated", "message": "No.", "remedy": "A header."}, place="GET /")
    assert "CALVE_TOKEN=" in error.remedy


def test_errors_that_need_more_are_made_too() -> None:
    """An expression's error has a kind of mistake; a problem document says its message as detail."""
    error = failure(400, {"code": "expression_failed", "detail": "by zero", "context": {"kind": "X"}}, place="GET /")
    assert isinstance(error, ExpressionFailed)
    assert (error.message, error.kind) == ("by zero", "X")
    bare = failure(400, {"code": "expression_failed"}, place="GET /")
    assert isinstance(bare, ExpressionFailed)
    assert bare.kind == ""


@pytest.mark.parametrize(("status", "body"), [(500, None), (404, ["?"]), (418, {"code": "teapot"}), (299 + 300, {})])
def test_an_answer_of_no_known_code_is_still_an_error(status: int, body: Any) -> None:
    """It names the request and the status."""
    error = failure(status, body, place="GET /x")
    assert type(error) is ServerError
    assert "GET /x" in error.message
    assert str(status) in error.message


def test_a_page_that_is_not_json_is_refused(said: Said, client: Client) -> None:
    """Some other server's front page is not taken for an answer."""
    said.answers = [(200, b"<html>")]
    with pytest.raises(ServerError, match="not JSON"):
        client.workflow("a")


def test_the_token_is_sent_and_names_are_escaped(said: Said, client: Client) -> None:
    """A name cannot lead out of its place in the path."""
    said.answers = [(200, {})]
    client.workflow("a/../b c")
    assert said.asked[0].path == "/api/v3/workflows/a%2F..%2Fb%20c/overview"
    assert said.asked[0].headers["authorization"] == "Bearer calve_abc"


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://x", "http://", "http://x/?a=1", "http://me:pw@x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """What is no address of a server is said before anything is sent."""
    with pytest.raises(RequestInvalid):
        Client(url)


def test_an_address_may_end_in_a_slash_or_in_the_api() -> None:
    """What people copy works."""
    assert Client("http://x/").server.url == "http://x"
    assert Client("http://x/api/v3/").server.url == "http://x"


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_the_address_of_a_page_is_given_where_the_page_is(said: Said, client: Client, status: int) -> None:
    """A page that asks to sign in first is one."""
    said.answers = [(status, {})]
    url = client.view_url({"workflow_id": "a", "workflow_instance_id": 2})
    assert url == (f"{client.server.url}/workflows/a/instances/2" if status < 400 else None)


def test_no_page_is_named_of_a_server_that_does_not_answer(said: Said, client: Client) -> None:
    """What was started is started all the same."""
    said.answers = [(LOST, None)]
    assert client.view_url({"workflow_id": "a", "workflow_instance_id": 2}) is None


@pytest.mark.parametrize("trouble", [(LOST, None), (503, {}), (429, {}), (502, b"gateway")])
def test_reads_are_asked_again(said: Said, client: Client, trouble: Answer) -> None:
    """A server that is away for a moment is not noticed."""
    said.answers = [trouble, trouble, (200, {"status": "FAILED"})]
    assert client.instance("a", 1)["status"] == "FAILED"
    assert len(said.asked) == 3


def test_a_start_whose_answer_is_lost_is_repeated_under_its_request_id(said: Said, client: Client) -> None:
    """So that nothing is started twice."""
    said.answers = [(LOST, None), (200, {"workflow_instance_id": 1})]
    client.start("a", {"x": 1})
    first, second = said.asked
    assert first.json == second.json
    assert first.json["run_params"] == {"x": 1}
    assert first.json["request_id"]


def test_what_must_not_be_repeated_is_not(said: Said, client: Client) -> None:
    """A push whose answer is lost may have made a version."""
    said.answers = [(LOST, None), (200, {})]
    with pytest.raises(ServerUnreachable):
        client.push("Workflow: {id: a}")
    assert len(said.asked) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    """However often it was asked."""
    pauses: list[float] = []
    with (
        Client("http://127.0.0.1:9", timeout=1, sleep=pauses.append) as client,
        pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:9"),
    ):
        client.push("Workflow: {id: a}")
    assert pauses == sorted(pauses)
    assert len(pauses) == 4


def test_the_server_says_how_long_to_leave_it_alone(said: Said) -> None:
    """Within reason."""
    pauses: list[float] = []
    said.answers = [(503, {}), (503, {}), (200, {})]
    with Client(said.url, sleep=pauses.append) as client:
        client.workflow("a")
    assert pauses == [0.1, 0.2]


def test_definitions_are_sent_as_what_they_are(said: Said, client: Client, tmp_path: Path) -> None:
    """YAML goes to the place for YAML, JSON to that for JSON, from text, file or types."""
    said.answers = [(200, {})]
    file = tmp_path / "a.json"
    file.write_text('{"workflow": {}}')
    forms: list[Any] = ["Workflow: {}", b"Workflow: {}", {"workflow": {}}, '{"workflow": {}}', file, "[1]"]
    for given in forms:
        client.push(given)
    client.validate("Workflow: {}")
    assert [one.path.removeprefix("/api/v3/workflows") for one in said.asked] == [
        *("/yaml", "/yaml", "", "", "", "/yaml", "/actions/validate/yaml")
    ]
    with pytest.raises(RequestInvalid, match="cannot be read"):
        client.push(tmp_path / "b.yaml")


def test_problems_of_a_definition_come_back(said: Said, client: Client) -> None:
    """All of them, in the error's context."""
    said.answers = [_problem(400, code="definition_invalid", context={"problems": [{"message": "x"}]})]
    with pytest.raises(DefinitionInvalid) as raised:
        client.push("a: 1")
    assert raised.value.context["problems"] == [{"message": "x"}]


def test_lists_are_read_page_by_page(said: Said, client: Client) -> None:
    """The caller sees no pages."""
    said.answers = [
        (200, {"elements": [_A, _B], "page_info": {"has_next_page": True, "end_cursor": "c"}}),
        (200, {"elements": [_C], "page_info": {"has_next_page": False, "end_cursor": "d"}}),
    ]
    assert list(client.instances("a", statuses=["FAILED", "STOPPED"])) == [_A, _B, _C]
    assert "status=FAILED&status=STOPPED" in said.asked[0].path
    assert "cursor=c" in said.asked[1].path


def test_a_limit_is_a_limit(said: Said, client: Client) -> None:
    """No more than asked for."""
    said.answers = [(200, {"elements": [_A, _B, _C], "page_info": {}})]
    assert list(client.instances(limit=2)) == [_A, _B]
    assert client.captures() == [_A, _B, _C]
    assert client.checkpoints(consumer="a") == [_A, _B, _C]
    assert client.lag() == [_A, _B, _C]
    assert client.runs("a", 1) == client.past_events("a", 1) == [_A, _B, _C]
    assert list(client.workflows(search="x")) == [_A, _B, _C]


def test_actions_go_to_their_places(said: Said, client: Client) -> None:
    """To a workflow, an instance or a step."""
    said.answers = [(200, {})]
    calls: list[Callable[[], Any]] = [
        lambda: client.stop("a"),
        lambda: client.kill("a", 1),
        lambda: client.skip("a", 1, "s"),
        lambda: client.bypass("a", 1, "s"),
        lambda: client.unblock("a", 1),
        lambda: client.act("approve", "a", 1, "s", is_blocking=True, comment="fine"),
        lambda: client.restart("a", 1, "s"),
        lambda: client.plan_restart("a", 1, latest=True),
        lambda: client.activate("a", 2),
        lambda: client.deactivate("a"),
        lambda: client.delete("a"),
        lambda: client.version("a"),
        lambda: client.step("a", 1, "s"),
        lambda: client.announce("sig", {"x": 1}),
        lambda: client.signal("sig"),
        lambda: client.capture("c1"),
    ]
    for call in calls:
        call()
    assert [f"{one.method} {one.path.removeprefix('/api/v3/')}" for one in said.asked] == [
        "PUT workflows/a/actions/stop",
        "PUT workflows/a/instances/1/actions/kill",
        "PUT workflows/a/instances/1/steps/s/actions/skip",
        "PUT workflows/a/instances/1/steps/s/actions/bypass",
        "PUT workflows/a/instances/1/actions/unblock",
        "PUT workflows/a/instances/1/steps/s/actions/approve?blocking=true",
        "POST workflows/a/instances/1/steps/s/actions/restart",
        "POST workflows/a/instances/1/actions/plan-restart",
        "PUT workflows/a/versions/2/actions/activate",
        "PUT workflows/a/actions/deactivate",
        "DELETE workflows/a",
        "GET workflows/a/versions/active",
        "GET workflows/a/instances/1/steps/s",
        "POST signals",
        "GET signals/sig/instances/latest",
        "GET captures/c1",
    ]
    assert said.asked[5].json == {"comment": "fine"}
    assert said.asked[7].json == {"latest": True}


def test_a_batch_is_started_under_ids(said: Said, client: Client) -> None:
    """Each start of it has its own."""
    said.answers = [(200, {"elements": [{"workflow_instance_id": 1}, {"workflow_instance_id": 2}]})]
    assert len(client.start_batch("a", [{"x": 1}, {"x": 2}])) == 2
    assert len({one["request_id"] for one in said.asked[0].json}) == 2


def test_breakpoints_and_limits_go_to_their_places(said: Said, client: Client) -> None:
    """And steps, which come as a plain list."""
    said.answers = [(200, [])]
    calls: list[Callable[[], Any]] = [
        lambda: client.pause("a", "s", 3),
        lambda: client.breakpoints("a", "s"),
        lambda: client.paused("a", "s"),
        lambda: client.unpause("a", "s"),
        client.permits,
        lambda: client.limit_tag("t", 2),
        lambda: client.unlimit_tag("t"),
        lambda: client.steps("a", 1),
        lambda: client.attempt("a", 1, "loop/2/s", 3),
    ]
    for call in calls:
        call()
    where = "?workflowId=a&stepId=s"
    assert [f"{one.method} {one.path.removeprefix('/api/v3/')}" for one in said.asked] == [
        "POST workflows/steps/breakpoints",
        f"GET workflows/steps/breakpoints{where}",
        f"GET workflows/steps/breakpoints/paused-step-attempts{where}",
        f"DELETE workflows/steps/breakpoints{where}",
        "GET tag-permits",
        "POST tag-permits",
        "DELETE tag-permits/t",
        "GET workflows/a/instances/1/steps",
        "GET workflows/a/instances/1/runs/latest/steps/loop%2F2%2Fs/attempts/3",
    ]
    assert said.asked[0].json == {"workflow_id": "a", "step_id": "s", "workflow_instance_id": 3}


def test_logs_are_text(said: Said, client: Client) -> None:
    """As the step wrote it."""
    said.answers = [(200, b"one\ntwo\n")]
    assert "".join(client.logs("a", 1, "s", attempt=2)) == "one\ntwo\n"
    assert said.asked[0].path == "/api/v3/workflows/a/instances/1/steps/s/logs?attempt=2"
    said.answers = [_problem(400, code="action_refused")]
    with pytest.raises(ActionRefused):
        list(client.logs("a", 1, "s"))
    said.answers = [(LOST, None)]
    with pytest.raises(ServerUnreachable):
        list(client.logs("a", 1, "s"))


def _stream(*seqs: int, after: str = "IN_PROGRESS") -> Answer:
    text = "".join(f'id: {seq}\nevent: E\ndata: {{"after": "{after}"}}\n\n' for seq in seqs)
    return 200, f": hello\n\n{text}".encode()


def test_events_continue_where_they_were_cut(said: Said, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of the last one that came."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    said.answers = [_stream(5, 6), (LOST, None), _stream(7)]
    assert [event["seq"] for event in islice(client.events(after=4, workflow_id="a"), 3)] == [5, 6, 7]
    assert [one.headers["last-event-id"] for one in said.asked] == ["4", "6", "6"]


def test_events_end_when_the_server_is_gone(said: Said, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tries."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    said.answers = [(LOST, None)]
    with pytest.raises(ServerUnreachable):
        list(client.events())
    said.answers = [(200, b"id: x\ndata: 1\n\n")]
    with pytest.raises(ServerError):
        list(client.events())


def test_an_event_stream_is_read_as_its_standard_says() -> None:
    """Comments, several lines of data, fields without a space, blank lines."""
    lines = [": lives", "", "id:1", "event: a", "data: x", "data:y", "", "id: 2", "", "data", ""]
    assert list(messages(iter(lines))) == [Message(), Message("1", "a", "x\ny"), Message("", "", "")]


def test_waiting_ends_with_the_instance(said: Said, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks, hears of an end, looks again; without events, looking is enough."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    states = iter(["CREATED", "IN_PROGRESS", "IN_PROGRESS", "SUCCEEDED"])
    streams = iter([_stream(1), _stream(2, after="FAILED"), (404, {})])
    said.answers = [lambda asked: next(streams) if "/events" in asked.path else (200, {"status": next(states)})]
    assert client.wait("a", 1)["status"] == "SUCCEEDED"
    assert [one.headers["last-event-id"] for one in said.of("/api/v3/events")] == ["0", "1", "2"]


def test_waiting_has_an_end(said: Said, client: Client) -> None:
    """The error says how the instance stands."""
    said.answers = [lambda asked: (404, {}) if "/events" in asked.path else (200, {"status": "PAUSED"})]
    with pytest.raises(WaitedTooLong, match="PAUSED"):
        client.wait("a", 1, timeout=0.05)


def test_what_is_not_text_is_not_sent() -> None:
    """The message names the place; no server is asked."""
    client = Client("http://127.0.0.1:9")
    for ask, place in (
        (lambda: client.start("w", {"x": "\ud83d"}), "run_params.x"),
        (lambda: client.restart("w", 1, run_params={"x": ["\0"]}), r"run_params.x\[0\]"),
        (lambda: client.act("stop", "w", 1, reason="\udc00"), "reason"),
        (lambda: client.push({"workflow": {"id": "\ud83d"}}), "workflow.id"),
        (lambda: client.push("Workflow: {id: '\ud83d'}"), "The definition"),
    ):
        with pytest.raises(RequestInvalid, match=f"{place} holds"):
            ask()
