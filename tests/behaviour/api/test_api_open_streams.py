"""Streams and WebSockets: how many there may be, how they hear of news, and when they end by themselves."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from tests.access_setup import HOUR, LOCAL, PASSWORD, AccessSetup, bearer
from tests.engines import BUSY, Playground
from tests.servers import Site, services_on, site_on
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from calve.access import Role
from calve.api import Streams, responses, streams
from calve.api.access import guarded

STREAM = {"accept": "text/event-stream"}
JOB = "Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: job, type: Sleep}}]}"
PROTOCOL = [Subprotocol("graphql-transport-ws")]
SUBSCRIBE = json.dumps({"id": "1", "type": "subscribe", "payload": {"query": "subscription { events { seq } }"}})


@pytest.fixture
def site(playground: Playground, access: AccessSetup, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give a server where everybody has to sign in, and is asked for again at once."""
    for module in (responses, streams):
        monkeypatch.setattr(module, "RECHECK", 0.1)
    with site_on(playground, **guarded(access.control())) as site:
        yield site


@pytest.fixture
def small(playground: Playground, access: AccessSetup) -> Iterator[Site]:
    """Give a server where each may have two streams, and all together three."""
    services = services_on(playground, streams=Streams(3, 2))
    with site_on(playground, services, **guarded(access.control())) as site:
        yield site


@contextmanager
def streamed(site: Site, headers: dict[str, str], path: str = "/events") -> Iterator[Iterator[str]]:
    """Open a stream, and give its lines."""
    with site.client.stream("GET", f"/api/v3{path}", headers=STREAM | headers) as answer:
        assert answer.status_code == 200, answer.read()
        yield answer.iter_lines()


def refused(site: Site, headers: dict[str, str]) -> httpx.Response:
    """Ask for a stream that is refused."""
    with site.client.stream("GET", "/api/v3/events", headers=STREAM | headers) as answer:
        assert answer.status_code != 200
        answer.read()
        return answer


@contextmanager
def socket_on(site: Site, headers: dict[str, str]) -> Iterator[Any]:
    """Open a WebSocket, and begin to speak GraphQL."""
    url = site.url.replace("http", "ws") + "/graphql"
    with connect(url, subprotocols=PROTOCOL, additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "connection_init"}))
        assert json.loads(socket.recv(10))["type"] == "connection_ack"
        yield socket


def test_the_number_of_streams_is_limited_per_caller_and_in_total(small: Site, access: AccessSetup) -> None:
    """The next one is told when to try again; when one ends, another may begin."""
    ann, bob = (
        bearer(access.token("viewer")),
        bearer(access.accounts.create_token("bob", {"": Role.VIEWER}, LOCAL, life=None)[0]),
    )
    with ExitStack() as first:
        with ExitStack() as second:
            streams = [stack.enter_context(streamed(small, ann)) for stack in (first, second)]
            assert all(next(lines).startswith("retry:") for lines in streams)
            answer = refused(small, ann)
            assert (answer.status_code, answer.json()["code"]) == (429, "too_many_streams")
            assert int(answer.headers["retry-after"]) > 0
            with streamed(small, bob):
                answer = refused(small, bob | {"accept": "text/event-stream, application/problem+json"})
                assert (answer.status_code, answer.json()["code"]) == (503, "streams_exhausted")
                assert int(answer.headers["retry-after"]) > 0
                with pytest.raises(InvalidStatus) as error, socket_on(small, bob):
                    pass
                assert error.value.response.status_code == 503
        until = time.monotonic() + 20
        while opened(small, ann) != 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert opened(small, ann) == 200


def opened(site: Site, headers: dict[str, str]) -> int:
    """Return the status with which a stream begins."""
    with site.client.stream("GET", "/api/v3/events", headers=STREAM | headers) as answer:
        return answer.status_code


def test_subscriptions_are_counted_too(small: Site, access: AccessSetup) -> None:
    """Beside their WebSocket; the error says so."""
    with socket_on(small, bearer(access.token("viewer"))) as socket:
        socket.send(SUBSCRIBE)
        socket.send(SUBSCRIBE.replace('"1"', '"2"'))
        said = json.loads(socket.recv(10))
        assert said["id"] == "2"
        assert said["payload"]["errors"][0]["extensions"]["code"] == "too_many_streams"


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_streams_end_with_their_token(site: Site, access: AccessSetup, playground: Playground, end: str) -> None:
    """Streams of events, and WebSockets, within moments; others go on, and nobody has made a mistake."""
    playground.script.parts["job"] = BUSY
    playground.push(JOB)
    playground.start()
    token, known = access.accounts.create_token("short", {"": Role.VIEWER}, LOCAL, life=HOUR)
    other = bearer(access.token("viewer"))
    with (
        streamed(site, bearer(token)) as events,
        socket_on(site, bearer(token)) as socket,
        streamed(site, other) as going_on,
    ):
        assert next(events).startswith("retry:")
        socket.send(SUBSCRIBE)
        if end == "revoked":
            access.accounts.revoke_token(known.token_id, LOCAL)
        else:
            access.now += 2 * HOUR
        assert not [line for line in events if line.startswith("data:")]
        with pytest.raises(ConnectionClosed):
            socket.recv(20)
        assert socket.close_code == 4_401
        assert next(going_on).startswith("retry:")
        playground.begin()
        assert any(line.startswith("data:") for line in going_on)
    assert access.authenticator.backoff._tries == {}


def test_a_log_that_is_followed_ends_with_the_session(site: Site, access: AccessSetup, playground: Playground) -> None:
    """When its user is disabled, or signs out."""
    playground.script.parts["job"] = BUSY
    playground.push(JOB)
    playground.start()
    access.accounts.add_user("ann", PASSWORD, {"": Role.VIEWER}, LOCAL)
    site.client.post("/api/v3/access/sign-in", json={"name": "ann", "password": PASSWORD})
    with streamed(site, {}, "/workflows/w/instances/1/steps/job/logs?follow=true") as lines:
        access.accounts.disable("ann", LOCAL)
        assert list(lines) == []


def test_a_stream_ends_when_its_caller_loses_a_permission(site: Site, access: AccessSetup) -> None:
    """A caller who reconnects has their current roles; while these are unknown, the stream continues."""
    access.accounts.add_user("ann", PASSWORD, {"": Role.EDITOR}, LOCAL)
    site.client.post("/api/v3/access/sign-in", json={"name": "ann", "password": PASSWORD})
    with streamed(site, {}) as lines:
        assert next(lines).startswith("retry:")
        access.accounts.set_grants("ann", {"sales": Role.VIEWER}, LOCAL)
        assert not [line for line in lines if line.startswith("data:")]


def test_many_streams_hear_what_happens(playground: Playground) -> None:
    """Each of them all of it, one after the other."""
    playground.push(JOB)
    with site_on(playground) as site, ExitStack() as stack:
        opened = [stack.enter_context(streamed(site, {})) for _ in range(5)]
        for lines in opened:
            assert next(lines).startswith("retry:")
        for _ in range(2):
            started = site.start()["workflow_instance_id"]
            for lines in opened:
                told = json.loads(next(line for line in lines if line.startswith("data:")).removeprefix("data: "))
                assert told["workflow_instance_id"] == started
    playground.settle()
