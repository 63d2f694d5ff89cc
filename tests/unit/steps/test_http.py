"""Http asks only hosts that may be asked, at the address that was checked, and judges the answer."""

import gzip
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine import Outcome, State
from calve.errors import StepFailed
from calve.steps.http import AllowList, Http
from calve.steps.http.allow_list import SPECIAL

TLS = Path(__file__).parents[2] / "data" / "tls"
NOW = 1_700_000_000_000


@dataclass
class Reply:
    """What the server answers."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """A server on this machine, and what it was asked."""

    port: int
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


def _serving(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            served.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if self.path == "/slow":
                served.hold.wait(30)
            reply = served.replies.get(self.path, Reply())
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Listener(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Bear with clients that go away."""

    listener = Listener(("127.0.0.1", 0), Handler)
    if tls:
        listener.socket = tls.wrap_socket(listener.socket, server_side=True)
    served = Server(listener.server_address[1])
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.hold.set()
    listener.shutdown()
    thread.join()
    listener.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve on this machine."""
    yield from _serving()


@pytest.fixture
def other() -> Iterator[Server]:
    """Serve on another port of this machine."""
    yield from _serving()


Ask = Callable[..., Outcome]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return a way to run an Http step."""

    def ask(
        url: str, *, allow: tuple[str, ...] = ("127.0.0.1",), expression: str | None = None, **http: Any
    ) -> Outcome:
        params = {"http": {"url": url, **http}} | ({"state_expr": expression} if expression else {})
        return Http(AllowList(allow), lambda: NOW).execute(FakeContext(tmp_path, params))

    return ask


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, State.DONE),
        (204, State.DONE),
        (301, State.USER_ERROR),
        (404, State.FATAL_ERROR),
        (408, State.PLATFORM_ERROR),
        (425, State.PLATFORM_ERROR),
        (429, State.PLATFORM_ERROR),
        (500, State.USER_ERROR),
        (503, State.PLATFORM_ERROR),
    ],
)
def test_the_status_decides(ask: Ask, server: Server, status: int, state: State) -> None:
    """2xx is done; 4xx is not worth another try, but for those that ask for patience; the rest is."""
    server.replies["/"] = Reply(status, b"said" if status != 204 else b"")
    outcome = ask(server.url + "/")
    assert outcome.state is state
    assert outcome.outputs == {"status_code": status, "response_body": "said" if status != 204 else ""}
    assert (str(status) in outcome.message) == (state is not State.DONE)


def test_a_throttled_request_is_tried_again_when_the_server_says(ask: Ask, server: Server) -> None:
    """Not before: the engine waits at least so long."""
    server.replies["/"] = Reply(429, b"", {"Retry-After": "120"})
    outcome = ask(server.url + "/")
    assert (outcome.state, outcome.retry_after) == (State.PLATFORM_ERROR, 120.0)


def test_everything_of_the_request_is_sent(ask: Ask, server: Server) -> None:
    """Method, headers, query, body and credentials."""
    outcome = ask(
        server.url + "/hook?a=1",
        method="POST",
        headers={"X-Count": 3, "X-Name": "n"},
        query={"b": "x y", "c": True, "d": [1, 2]},
        body={"text": "hi", "n": 1},
        auth={"username": "me", "password": "pass"},
    )
    assert outcome.state is State.DONE
    ((method, path, headers, body),) = server.asked
    assert (method, path) == ("POST", "/hook?a=1&b=x+y&c=true&d=1&d=2")
    assert (headers["x-count"], headers["x-name"]) == ("3", "n")
    assert json.loads(body) == {"text": "hi", "n": 1}
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == "Basic bWU6cGFzcw=="
    assert headers["idempotency-key"] == "0195-attempt"


def test_a_text_is_sent_as_it_is(ask: Ask, server: Server) -> None:
    """And a token signs in; a key of the user's own stays."""
    ask(server.url, method="PUT", body="plain é", auth={"token": "t"}, headers={"Idempotency-Key": "mine"})
    ((_, _, headers, body),) = server.asked
    assert body == "plain é".encode()
    assert (headers["authorization"], headers["idempotency-key"]) == ("Bearer t", "mine")


def test_a_get_needs_no_idempotency_key(ask: Ask, server: Server) -> None:
    """It changes nothing."""
    ask(server.url)
    assert "idempotency-key" not in server.asked[0][2]


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding"])
def test_headers_that_follow_from_the_request_cannot_be_set(ask: Ask, server: Server, name: str) -> None:
    """They could mean another host, or hide a second request."""
    outcome = ask(server.url, headers={name: "1"})
    assert (outcome.state, server.asked) == (State.FATAL_ERROR, [])
    assert name.lower() in outcome.message


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "naïve ☃"])
def test_a_header_cannot_smuggle(ask: Ask, server: Server, value: str) -> None:
    """No line breaks, and nothing that is not of HTTP."""
    assert ask(server.url, headers={"X-A": value}).state is State.FATAL_ERROR
    assert server.asked == []


@pytest.mark.parametrize(
    ("expression", "state"),
    [
        ("status_code == 404 ? 'DONE' : 'USER_ERROR'", State.DONE),
        ("return response_body.contains('wait') ? 'FATAL_ERROR' : 'DONE';", State.FATAL_ERROR),
        ("'PLATFORM_ERROR'", State.PLATFORM_ERROR),
        ("'STOPPED'", State.STOPPED),
    ],
)
def test_an_expression_decides_otherwise(ask: Ask, server: Server, expression: str, state: State) -> None:
    """Over status_code and response_body."""
    server.replies["/"] = Reply(404, b"wait for it")
    assert ask(server.url + "/", expression=expression).state is state


@pytest.mark.parametrize("expression", ["'NEARLY'", "1 + 1", "new String[]{'DONE'}", "nobody", "1 +", "throw 'no'"])
def test_an_expression_that_gives_no_state_is_fatal(ask: Ask, server: Server, expression: str) -> None:
    """The message says so."""
    outcome = ask(server.url, expression=expression)
    assert outcome.state is State.FATAL_ERROR
    assert "state_expr" in outcome.message


def test_it_asks_again_while_the_expression_says_so(server: Server, tmp_path: Path) -> None:
    """Later and later, with a new key each time, and no worker held in between."""
    params = {"http": {"url": server.url, "method": "POST"}, "state_expr": "'CONTINUE'"}
    context = FakeContext(tmp_path, params)
    http = Http(AllowList(["127.0.0.1"]), lambda: NOW)
    pauses = []
    for _ in range(7):
        outcome = http.execute(context)
        assert outcome.state is State.CONTINUE
        context.keep(outcome.artifacts)
        pauses.append(outcome.poll_after)
    assert pauses == [3, 6, 12, 24, 48, 60, 60]
    keys = [headers["idempotency-key"] for _, _, headers, _ in server.asked]
    assert keys[:3] == ["0195-attempt", "0195-attempt-1", "0195-attempt-2"]


@pytest.mark.parametrize(
    ("asked", "pause"),
    [
        ("7", 7.0),
        ("999999", 3600.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 3.0),
        ("soon", 3.0),
    ],
)
def test_a_server_says_when_to_ask_again(ask: Ask, server: Server, asked: str, pause: float) -> None:
    """In seconds or as a moment, but not for ever."""
    server.replies["/"] = Reply(202, headers={"Retry-After": asked})
    assert ask(server.url + "/", expression="'CONTINUE'").poll_after == pause


def test_an_empty_allow_list_blocks_everything(ask: Ask, server: Server) -> None:
    """The message names the setting."""
    outcome = ask(server.url, allow=())
    assert (outcome.state, server.asked) == (State.FATAL_ERROR, [])
    assert '[http] allow = ["127.0.0.1"]' in outcome.message


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1", "127.0.0.1", "http://"]
)
def test_only_http_is_spoken(ask: Ask, url: str) -> None:
    """Other schemes are refused."""
    assert ask(url).state is State.FATAL_ERROR


def _resolving(*answers: str) -> Http:
    """Return a step for which every name has the given addresses."""
    return Http(AllowList(["*"]), lambda: NOW, lambda _host, _port: list(answers))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",  # noqa: S104 - refused
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "198.18.0.1",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
    ],
)
def test_a_name_cannot_lead_into_the_own_network(tmp_path: Path, address: str) -> None:
    """Whatever the name, an address that is not public is refused, and said."""
    outcome = _resolving(address).execute(FakeContext(tmp_path, {"http": {"url": "http://rebind.example.com/"}}))
    assert outcome.state is State.FATAL_ERROR
    assert "not a public address" in outcome.message


def _ends(entry: str) -> list[str]:
    network = ipaddress.ip_network(entry)
    return [str(network[0]), str(network[-1])]


@pytest.mark.parametrize("address", [end for entry in SPECIAL for end in _ends(entry)])
def test_no_special_purpose_address_is_public(address: str) -> None:
    """Neither the first nor the last one of any range of the registries; only a range of the settings opens it."""
    with pytest.raises(StepFailed, match="not a public address"):
        AllowList(["*"]).check_address("name.example.com", address)
    AllowList(["*", "0.0.0.0/0", "::/0"]).check_address("name.example.com", address)


IANA = [  # the registries of 2025 as they stand there, with the rows that lie within others
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::1/128",
    "::/128",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
]


@pytest.mark.parametrize("row", IANA)
def test_every_row_of_the_registries_is_covered(row: str) -> None:
    """By one of the ranges in the code."""
    network: Any = ipaddress.ip_network(row)
    ranges: list[Any] = [ipaddress.ip_network(entry) for entry in SPECIAL]
    assert any(network.subnet_of(each) for each in ranges if each.version == network.version)


@pytest.mark.parametrize(
    "address",
    [
        *(
            f"{prefix}{ipv4}"
            for prefix in ("::ffff:", "64:ff9b::", "::", "::ffff:0:")
            for ipv4 in ("10.0.0.1", "127.0.0.1")
        ),
        "2002:7f00:1::",  # 6to4 of 127.0.0.1
        "2002:a9fe:a9fe::1",  # 6to4 of 169.254.169.254
        "2002:0808:0808::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",  # Teredo of 127.0.0.1
        "::ffff:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "fec0::1",
        "4000::1",
        "1::1",
        "fe80::1%eth0",
    ],
)
def test_an_address_that_holds_another_one_is_no_way_around(address: str) -> None:
    """Neither mapped, translated nor tunnelled."""
    with pytest.raises(StepFailed, match="not a public address"):
        AllowList(["*"]).check_address("name.example.com", address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "192.0.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_public(address: str) -> None:
    """Also those of IPv4 that are written as one of IPv6."""
    AllowList(["*"]).check_address("name.example.com", address)


def test_one_bad_address_among_good_ones_is_enough(tmp_path: Path) -> None:
    """A name that has both is not asked at all."""
    http = _resolving("93.184.216.34", "127.0.0.1")
    outcome = http.execute(FakeContext(tmp_path, {"http": {"url": "http://both.example.com/"}}))
    assert (outcome.state, "127.0.0.1" in outcome.message) == (State.FATAL_ERROR, True)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::ffff:7f00:1]", "[::1]"])
def test_an_embedded_address_is_recognised(tmp_path: Path, server: Server, host: str) -> None:
    """Even where every name is allowed."""
    context = FakeContext(tmp_path, {"http": {"url": f"http://{host}:{server.port}/"}})
    assert Http(AllowList(["*"]), lambda: NOW).execute(context).state in {State.FATAL_ERROR, State.PLATFORM_ERROR}
    assert server.asked == []


def test_a_resolver_that_changes_its_answer_is_refused(tmp_path: Path, server: Server) -> None:
    """The address that was checked is the one that is connected to: there is no second look."""
    answers = iter([["203.0.113.7"], ["127.0.0.1"]])
    looked_up = []

    def flipping(host: str, _port: int) -> list[str]:
        looked_up.append(host)
        return next(answers)

    http = Http(AllowList(["flip.example.com", "203.0.113.0/24"]), lambda: NOW, flipping)
    context = FakeContext(tmp_path, {"http": {"url": f"http://flip.example.com:{server.port}/", "timeout_seconds": 1}})
    outcome = http.execute(context)
    assert outcome.state is State.PLATFORM_ERROR
    assert (looked_up, server.asked) == (["flip.example.com"], [])


def test_a_name_that_resolves_differently_at_a_redirect_is_refused(
    tmp_path: Path, server: Server, other: Server
) -> None:
    """Each hop is looked up and checked for itself."""
    server.replies["/"] = Reply(302, headers={"Location": f"http://second.example.com:{other.port}/"})
    names = {"first.example.com": "127.0.0.1", "second.example.com": "127.0.0.2"}
    http = Http(AllowList(["*.example.com", "127.0.0.1"]), lambda: NOW, lambda host, _port: [names[host]])
    outcome = http.execute(FakeContext(tmp_path, {"http": {"url": f"http://first.example.com:{server.port}/"}}))
    assert (outcome.state, other.asked) == (State.FATAL_ERROR, [])
    assert "127.0.0.2" in outcome.message
    assert server.asked[0][2]["host"] == f"first.example.com:{server.port}"


def test_a_range_of_the_settings_opens_the_own_network(tmp_path: Path, server: Server) -> None:
    """For names that are on the list as well."""
    http = Http(AllowList(["*.Example.com", "127.0.0.0/8"]), lambda: NOW, lambda _host, _port: ["127.0.0.1"])

    def ask(host: str) -> State:
        return http.execute(FakeContext(tmp_path, {"http": {"url": f"http://{host}:{server.port}/"}})).state

    assert [ask(host) for host in ("a.example.com", "A.B.EXAMPLE.com.")] == [State.DONE, State.DONE]
    assert [ask(host) for host in ("example.com", "evil-example.com", "example.com.evil.test")] == [
        State.FATAL_ERROR
    ] * 3


def test_an_address_is_allowed_as_such() -> None:
    """However it is written; a name of another alphabet is that of the wire."""
    allowed = AllowList(["::1", "[fd00::1]", "10.0.0.0/8", "bücher.example"])
    for host in ("::1", "0:0::1", "fd00::1", "10.9.9.9", "::ffff:10.9.9.9", "xn--bcher-kva.example", "BÜCHER.example"):
        allowed.check_host(host)
    for host in ("::2", "11.0.0.1", "::ffff:11.0.0.1", "bucher.example", "8.8.8.8"):
        with pytest.raises(StepFailed, match="not on the allow-list"):
            allowed.check_host(host)


def test_an_empty_map_is_a_body(ask: Ask, server: Server) -> None:
    """Of JSON."""
    ask(server.url, method="POST", body={})
    assert server.asked[0][3] == b"{}"


def test_the_next_address_is_tried(tmp_path: Path, server: Server) -> None:
    """If the first one does not answer."""
    http = Http(AllowList(["a.test", "127.0.0.0/8"]), lambda: NOW, lambda _host, _port: ["127.0.0.9", "127.0.0.1"])
    context = FakeContext(tmp_path, {"http": {"url": f"http://a.test:{server.port}/"}})
    assert http.execute(context).state is State.DONE


def test_a_name_that_nobody_knows_is_trouble_of_the_platform(tmp_path: Path) -> None:
    """It may be known later."""

    def unknown(_host: str, _port: int) -> list[str]:
        raise OSError("Name or service not known")

    http = Http(AllowList(["*"]), lambda: NOW, unknown)
    outcome = http.execute(FakeContext(tmp_path, {"http": {"url": "http://nowhere.test/"}}))
    assert (outcome.state, "not known" in outcome.message) == (State.PLATFORM_ERROR, True)


def test_a_resolver_that_never_answers_has_a_deadline(tmp_path: Path) -> None:
    """The system's knows none."""
    never = threading.Event()

    def silent(_host: str, _port: int) -> list[str]:
        never.wait(30)
        return []

    http = Http(AllowList(["*"]), lambda: NOW, silent)
    context = FakeContext(tmp_path, {"http": {"url": "http://slow.test/", "timeout_seconds": 1}})
    outcome = http.execute(context)
    never.set()
    assert (outcome.state, outcome.message) == (State.PLATFORM_ERROR, "There was no complete response within 1 s.")


def test_redirects_are_followed_and_credentials_stay_behind(ask: Ask, server: Server, other: Server) -> None:
    """On the same host they go along; another one gets neither them nor headers of the user's own."""
    server.replies["/a"] = Reply(307, headers={"Location": "/b"})
    server.replies["/b"] = Reply(307, headers={"Location": f"http://user:pass@127.0.0.1:{other.port}/c"})
    other.replies["/c"] = Reply(200, b"there")
    outcome = ask(
        server.url + "/a",
        method="POST",
        body={"x": 1},
        auth={"token": "t"},
        headers={"X-Api-Key": "k", "Cookie": "s=1"},
    )
    assert (outcome.state, outcome.outputs["response_body"]) == (State.DONE, "there")
    first, second = (asked[2] for asked in server.asked)
    assert [headers["authorization"] for headers in (first, second)] == ["Bearer t", "Bearer t"]
    assert second["x-api-key"] == "k"
    ((method, _, third, body),) = other.asked
    assert (method, json.loads(body)) == ("POST", {"x": 1})
    assert not {"authorization", "x-api-key", "cookie", "idempotency-key"} & set(third)


def test_redirects_end(ask: Ask, server: Server) -> None:
    """After five."""
    server.replies["/"] = Reply(302, headers={"Location": "/"})
    outcome = ask(server.url + "/")
    assert (outcome.state, len(server.asked)) == (State.FATAL_ERROR, 6)


def test_a_redirect_leads_only_to_http(ask: Ask, server: Server) -> None:
    """Not to a file."""
    server.replies["/"] = Reply(302, headers={"Location": "file:///etc/passwd"})
    assert ask(server.url + "/").state is State.FATAL_ERROR


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_body_has_a_limit(ask: Ask, server: Server, encoding: str) -> None:
    """Packed or not."""
    body = b"x" * 1_000_001
    headers = {"Content-Encoding": encoding} if encoding else {}
    server.replies["/"] = Reply(200, gzip.compress(body) if encoding else body, headers)
    outcome = ask(server.url + "/")
    assert (outcome.state, "1,000,000 bytes" in outcome.message) == (State.FATAL_ERROR, True)
    assert "response_body" not in outcome.outputs


def test_a_body_that_is_packed_all_the_same_is_read(ask: Ask, server: Server) -> None:
    """What cannot be unpacked is told."""
    server.replies["/"] = Reply(200, gzip.compress("é".encode("latin-1")), {"Content-Encoding": "gzip"})
    server.replies["/"].headers["Content-Type"] = "text/plain; charset=latin-1"
    assert ask(server.url + "/").outputs["response_body"] == "é"
    server.replies["/"] = Reply(200, b"not packed", {"Content-Encoding": "gzip"})
    assert ask(server.url + "/").state is State.PLATFORM_ERROR
    server.replies["/"] = Reply(200, b"?", {"Content-Encoding": "br"})
    assert "br" in ask(server.url + "/").message


def test_bytes_that_are_not_text_do_no_harm(ask: Ask, server: Server) -> None:
    """Nor does a charset that nobody knows."""
    server.replies["/"] = Reply(200, b"\xff", {"Content-Type": "text/plain; charset=klingon"})
    assert ask(server.url + "/").outputs["response_body"] == "\N{REPLACEMENT CHARACTER}"


def test_the_time_is_limited(ask: Ask, server: Server) -> None:
    """Over everything together."""
    outcome = ask(server.url + "/slow", timeout_seconds=1)
    assert (outcome.state, outcome.message) == (State.PLATFORM_ERROR, "There was no complete response within 1 s.")


def test_an_interruption_ends_the_request(server: Server, tmp_path: Path) -> None:
    """Although the server has not answered."""
    context = FakeContext(tmp_path, {"http": {"url": server.url + "/slow"}})
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(Http(AllowList(["127.0.0.1"]), lambda: NOW).execute(context)))
    thread.start()
    while not server.asked:
        time.sleep(0.01)
    context.interruption.set()
    thread.join()
    assert ended[0].state is State.STOPPED


def test_a_closed_port_is_trouble_of_the_platform(ask: Ask) -> None:
    """It may open later."""
    assert ask("http://127.0.0.1:1/").state is State.PLATFORM_ERROR


def test_proxies_of_the_environment_are_not_used(ask: Ask, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would see everything, and reach everything."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ask(server.url).state is State.DONE


def test_the_log_holds_no_credentials(server: Server, tmp_path: Path) -> None:
    """Nor what stands in the query."""
    url = f"http://user:hush@127.0.0.1:{server.port}/path?key=hush"
    context = FakeContext(tmp_path, {"http": {"url": url, "headers": {"X-Key": "hush"}, "query": {"q": "hush"}}})
    outcome = Http(AllowList(["127.0.0.1"]), lambda: NOW).execute(context)
    assert outcome.state is State.DONE
    assert server.asked[0][2]["authorization"] == "Basic dXNlcjpodXNo"
    assert f"GET http://127.0.0.1:{server.port}/path" in context.text
    assert "hush" not in context.text + outcome.message + str(outcome.artifacts)


@pytest.fixture
def secure() -> Iterator[Server]:
    """Serve HTTPS with a certificate for api.example.test."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    yield from _serving(context)


def test_a_certificate_must_be_of_the_name_that_was_asked(
    secure: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the connection goes to an address: the right name passes, another one and an unknown issuer do not."""
    allowed = AllowList(["*.example.test", "127.0.0.1"])
    http = Http(allowed, lambda: NOW, lambda _host, _port: ["127.0.0.1"])

    def ask(host: str, **more: Any) -> State:
        config = {"url": f"https://{host}.example.test:{secure.port}/", **more}
        return http.execute(FakeContext(tmp_path, {"http": config})).state

    assert ask("api") is State.PLATFORM_ERROR
    assert ask("api", verify=False) is State.DONE
    monkeypatch.setattr("certifi.where", lambda: str(TLS / "server.pem"))
    assert ask("api") is State.DONE
    assert ask("other") is State.PLATFORM_ERROR


def test_there_is_nothing_to_end(tmp_path: Path) -> None:
    """A request ends with its call."""
    Http(AllowList([]), lambda: NOW).terminate(FakeContext(tmp_path))
