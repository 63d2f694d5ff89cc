"""GraphQL on a real server: the same façade, the same rights."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import GraphQLError, get_introspection_query, parse
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.engines import DONE, Playground
from tests.servers import Site, services_on, site_on
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from calve.access import ANONYMOUS, Principal, PrincipalKind, Role
from calve.api.app import FixedPrincipal
from calve.api.graphql import server
from calve.api.graphql.limits import LOG, check_size
from calve.api.limits import BODY
from calve.app import captures_on, open_lake
from calve.engine import Outcome, RunStatus, StepContext
from calve.settings import GraphqlSettings, load
from calve.testing import PyIcebergWriter

COST = GraphqlSettings().cost
TWO = "Workflow: {id: team.w, n: 1, jobs: [{job: {id: a, type: NoOp}}, {job: {id: b, type: NoOp}}], dag: sequential}"
OTHER = "Workflow: {id: other.w, jobs: [{job: {id: a, type: NoOp}}]}"
ASKING = "Workflow: {id: team.ask, jobs: [{job: {id: ask, type: Approval, approval: {message: Go?}}}]}"
PUSH = "mutation($text: String!) { push(definition: $text) { workflowId versionId author } }"


_NAMED = (
    "fragment F on Instance { steps { stepId status } runs { status } } "
    "{ workflows(first: 100) { items { instances { items { ...F ... on Instance { status } } } } } }"
)


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Serve a playground."""
    with site_on(playground) as site:
        yield site


def ask(site: Site, query: str, **variables: Any) -> Any:
    """Ask something; fail if it is refused."""
    answer = _sent(site, query, variables)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def refusal(site: Site, query: str, **variables: Any) -> tuple[str, str]:
    """Ask something that is refused; return the code and the message."""
    error = _sent(site, query, variables)["errors"][0]
    return error["extensions"]["code"], error["message"]


def _sent(site: Site, query: str, variables: dict[str, Any]) -> Any:
    answer = site.client.post("/graphql", json={"query": query, "variables": variables})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_is_pushed_and_started_can_be_asked_about(site: Site) -> None:
    """From the definition down to the log of a step."""
    assert ask(site, PUSH, text=TWO)["push"] == {"workflowId": "team.w", "versionId": 1, "author": "local"}
    start = (
        'mutation($p: JSON) { start(workflowId: "team.w", params: $p, requestId: "r") { status instance { runId } } }'
    )
    assert ask(site, start, p={"n": 7})["start"] == {"status": "CREATED", "instance": {"runId": 1}}
    assert ask(site, start, p={"n": 7})["start"]["status"] == "DUPLICATED"
    site.playground.settle()
    found = ask(
        site,
        """{ workflow(id: "team.w") {
               id activeVersion latestVersion createTime
               version { author definition } versions { versionId }
               instances(statuses: [SUCCEEDED]) { next items {
                 instanceId status params document startTime runs { runId }
                 steps { stepId type status attemptId message log } } } } }""",
    )["workflow"]
    assert (found["id"], found["activeVersion"], found["version"]["author"]) == ("team.w", 1, "local")
    page = found["instances"]
    assert page["next"] is None
    [instance] = page["items"]
    assert (instance["status"], instance["params"]["n"]["evaluated_result"]) == ("SUCCEEDED", 7)
    assert [(step["stepId"], step["status"], step["log"]) for step in instance["steps"]] == [
        ("a", "SUCCEEDED", ""),
        ("b", "SUCCEEDED", ""),
    ]
    assert instance["runs"] == [{"runId": 1}]


@pytest.mark.parametrize("number", ["99999999999999999999", '"one"'])
def test_a_number_that_no_instance_can_have_is_refused(site: Site, number: str) -> None:
    """Rather than answered as a failure of the server."""
    code, message = refusal(site, f'{{ instance(workflowId: "team.w", instanceId: {number}) {{ status }} }}')
    assert (code, "is not an integer of 64 bits" in message) == ("request_invalid", True)


def test_of_a_log_its_end_is_given(site: Site) -> None:
    """One answer may hold those of many steps."""

    def write(context: StepContext) -> Outcome:
        context.log("beginning" + "x" * LOG + "end")
        return DONE

    site.playground.push("Workflow: {id: team.w, jobs: [{job: {id: a, type: Sleep}}]}")
    site.playground.script.parts["a"] = write
    site.playground.start("team.w")
    query = '{ instance(workflowId: "team.w", instanceId: 1) { steps { log } } }'
    log = ask(site, query)["instance"]["steps"][0]["log"]
    assert (len(log), log[-4:]) == (LOG, "end\n")


def test_lists_come_in_pages(site: Site) -> None:
    """Over all workflows."""
    for text in (TWO, OTHER):
        ask(site, PUSH, text=text)
        site.playground.start("team.w" if text is TWO else "other.w")
    first = ask(site, "{ workflows(first: 1) { next items { id } } }")["workflows"]
    assert first == {"next": "other.w", "items": [{"id": "other.w"}]}
    rest = ask(site, '{ workflows(after: "other.w") { next items { id } } }')["workflows"]
    assert rest == {"next": None, "items": [{"id": "team.w"}]}
    page = ask(site, "{ instances(first: 1) { next items { workflowId } } }")["instances"]
    more = ask(site, "query($c: String) { instances(after: $c) { next items { workflowId } } }", c=page["next"])
    assert {page["items"][0]["workflowId"], more["instances"]["items"][0]["workflowId"]} == {"team.w", "other.w"}
    assert refusal(site, "{ workflows(first: 201) { next } }")[0] == "request_invalid"
    assert refusal(site, '{ instances(after: "x") { next } }')[0] == "request_invalid"


def test_actions_are_mutations(site: Site) -> None:
    """Each is what it is over REST."""
    ask(site, PUSH, text=ASKING)
    act = (
        "mutation($do: Act!, $n: Long!, $step: String!) "
        '{ act(action: $do, workflowId: "team.ask", instanceId: $n, stepPath: $step, reason: "why") { instanceId } }'
    )
    for do, step, status in (
        ("STOP", "", RunStatus.STOPPED),
        ("KILL", "ask", RunStatus.FAILED),
        ("APPROVE", "ask", RunStatus.SUCCEEDED),
        ("SKIP", "ask", RunStatus.SUCCEEDED),
    ):
        run = site.playground.start("team.ask")
        ask(site, act, do=do, n=run.instance_id, step=step)
        site.playground.settle()
        assert site.playground.fresh(run).status is status
    assert refusal(site, act, do="STOP", n=1, step="")[0] == "action_refused"
    latest = (
        'mutation { restart(workflowId: "team.ask", instanceId: 2, latest: true, keep: []) { instance { runId } } }'
    )
    assert ask(site, latest)["restart"]["instance"]["runId"] == 2
    again = 'mutation { restart(workflowId: "team.ask", instanceId: 1, fromBeginning: true) { instance { runId } } }'
    assert ask(site, again)["restart"]["instance"]["runId"] == 2
    assert ask(site, 'mutation { deactivate(workflowId: "team.ask") { activeVersion } }') == {
        "deactivate": {"activeVersion": None}
    }
    assert ask(site, 'mutation { activate(workflowId: "team.ask", version: "1") { activeVersion } }') == {
        "activate": {"activeVersion": 1}
    }
    site.playground.engine.stop_all("team.ask")
    site.playground.settle()
    assert ask(site, 'mutation { delete(workflowId: "team.ask") }') == {"delete": True}


def test_operations_are_fields_too(site: Site) -> None:
    """They take the arguments of their REST route, with the same checks, and answer the same documents."""
    ask(site, PUSH, text=ASKING)
    run = site.playground.start("team.ask")
    limited = ask(site, 'mutation { setTagPermit(tag: "gold", maxAllowed: 3) }')["setTagPermit"]
    assert limited == site.get("/tag-permits/gold") == ask(site, '{ getTagPermit(tag: "gold") }')["getTagPermit"]
    listed = ask(site, '{ listWorkflowInstances(workflowId: "team.ask", first: 5, statuses: [IN_PROGRESS]) }')
    assert listed == {"listWorkflowInstances": site.get("/workflows/team.ask/instances?status=IN_PROGRESS")}
    plan = 'mutation($asked: JSON!) { planRestart(workflowId: "team.ask", instanceId: 1, request: $asked) }'
    assert refusal(site, plan, asked={"skip": [""]})[0] == "request_invalid"
    assert refusal(site, 'mutation { setTagPermit(tag: "gold", maxAllowed: 1001) }')[0] == "request_invalid"
    assert refusal(site, '{ getTagPermit(tag: "no tag") }')[0] == "request_invalid"
    ask(site, 'mutation { stopInstance(workflowId: "team.ask", instanceId: 1, reason: "late") }')
    site.playground.settle()
    assert site.playground.fresh(run).status is RunStatus.STOPPED


def test_signals_are_announced_and_traced(site: Site) -> None:
    """With what they started."""
    announced = ask(site, 'mutation { announce(name: "team.day", params: {day: 1}) }')["announce"]
    assert (announced["status"], announced["seq_id"]) == ("CREATED", 1)
    assert [one["name"] for one in ask(site, "{ signals { } }".replace(" { }", ""))["signals"]] == ["team.day"]
    assert ask(site, '{ signalLineage(name: "team.day") }')["signalLineage"]["started"] == []
    assert refusal(site, '{ signalLineage(name: "none") }')[0] == "signal_missing"
    assert refusal(site, '{ signalLineage(name: "team.day", seq: 7) }')[0] == "signal_missing"
    assert refusal(site, '{ signalLineage(name: "team.day", seq: -1) }')[0] == "request_invalid"


def test_mistakes_are_reported_with_their_codes(site: Site) -> None:
    """Those of the engine, and those of the query."""
    assert refusal(site, '{ workflow(id: "none") { id } }')[0] == "workflow_missing"
    assert refusal(site, PUSH, text="Workflow: {id: w, jobs: [{job: {id: a, type: Nope}}]}")[0] == "definition_invalid"
    assert refusal(site, "{ nothing }") == ("request_invalid", "Cannot query field 'nothing' on type 'Query'.")
    assert refusal(site, "{")[0] == "request_invalid"
    assert refusal(site, 'mutation { start(workflowId: "w", requestId: "") { status } }')[0] == "request_invalid"
    assert refusal(site, "{ captures }") == ("request_invalid", "This server has no lake.")
    for status, body in (
        (400, {"query": 1}),
        (400, {"query": ""}),
        (400, {"query": "subscription { events { seq } }"}),
        (400, {"query": "query A { __typename }", "operationName": "B"}),
        (400, {"query": "fragment F on Query { __typename }"}),
        (200, {"query": " "}),
        (200, {"query": "{ __typename } { __typename }"}),
    ):
        answer = site.client.post("/graphql", json=body)
        assert answer.status_code == status, body
        assert "request_invalid" in answer.text
    assert site.client.get("/graphql").status_code == 405


def test_a_bug_is_not_told(site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The log has it, the answer has not."""

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("secret thing")

    monkeypatch.setattr(type(site.playground.state), "workflows", broken)
    code, message = refusal(site, "{ workflows { next } }")
    assert (code, "secret" in message) == ("unexpected", False)
    assert "secret thing" in caplog.text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("{ workflow(id: 1) " + "{ instances { items { runs " * 4 + "{ runId }" + " } } }" * 4 + " }", "depth"),
        ("{" + " ".join(f"a{n}: workflows {{ next }}" for n in range(30)) + "}", "aliases"),
        ("{ workflows { next " + "next " * 2_000 + "} }", "token"),
        ("{ instances(first: 200) { items { steps { log } runs { steps { log } } } } }", str(COST)),
        ("query($n: Int) { instances(first: $n) { items { steps { stepId status } } } }", str(COST)),
        (
            _NAMED,
            str(COST),
        ),
    ],
)
def test_too_much_is_refused_before_anything_is_read(site: Site, query: str, words: str) -> None:
    """Deep, wide and costly queries."""
    code, message = refusal(site, query)
    assert code == "request_invalid"
    assert words in message.lower()


def test_fragments_that_name_each_other_are_refused(site: Site) -> None:
    """They would never end."""
    query = "fragment A on Workflows { ...B } fragment B on Workflows { ...A } { workflows { ...A } }"
    assert refusal(site, query)[0] == "request_invalid"
    assert refusal(site, "fragment A on Query { ...A } { ...A }") == ("request_invalid", "Fragment A contains itself.")


def _doubling(levels: int, inner: str = "id", *, on: str = "Workflow", through: str = "") -> str:
    """Return fragments that each spread the next one twice, beside each other or inside a field."""
    twice = (
        "{{ ...F{0} ...F{0} }}"
        if not through
        else "{{ " + through + " {{ ...F{0} }} b: " + through + " {{ ...F{0} }} }}"
    )
    parts = [f"fragment F{n} on {on} " + twice.format(n + 1) for n in range(levels)]
    return " ".join([*parts, f"fragment F{levels} on {on} {{ {inner} }}"])


BOMBS = {
    "spreads beside each other": _doubling(50) + " { workflows { items { ...F0 } } }",
    "spreads inside fields": _doubling(9, "status", on="Instance", through="runs")
    + ' { instance(workflowId: "w", instanceId: 1) { ...F0 } }',
    "spreads inside inline fragments": _doubling(40).replace("...F1 ", "... on Workflow { ...F1 } ")
    + " { workflows { items { ...F0 } } }",
    "a long chain": " ".join(f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(200))
    + " fragment F200 on Query { __typename } { ...F0 }",
    "of introspection": "{ __schema { types " + "{ fields { type " * 12 + "{ name }" + " } }" * 12 + " } }",
    "of introspection by fragments": _doubling(12, "name", on="__Type", through="ofType")
    + " { __schema { types { ...F0 } } }",
    "many spreads of one large fragment": "fragment F on Workflow { "
    + "id " * 400
    + "} { workflows { items { "
    + "...F " * 300
    + "} } }",
    "the same field again and again": "{ workflows { " + "next " * 1_900 + "} }",
    "the same fields inside each other": "{ " + "workflows { items { id } } " * 200 + "}",
    "aliases in fragments": _doubling(8, "a: id") + " { workflows { items { ...F0 } } }",
    "a negative length": "{ a: workflows(first: -99999) { items { versions { author } } } "
    "b: workflows(first: 200) { items { versions { author } instances { items { steps { log } } } } } }",
    "an endless number": "{ workflows(first: " + "9" * 5_000 + ") { items { versions { author definition } } } }",
    "brackets": "{ workflows(search: " + "[" * 900 + "]" * 900 + ") { next } }",
    "braces": "{ workflows " * 900 + "}" * 900,
    "directives": "{ workflows " + "@skip(if: false) " * 240 + "{ next } }",
}


@pytest.mark.parametrize("query", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_before_they_are_examined(site: Site, query: str) -> None:
    """Whatever a few hundred words stand for, it is counted and not expanded."""
    answer = site.client.post("/graphql", json={"query": query}).json()
    assert answer.get("data") is None
    assert answer.get("errors", [answer])[0].get("extensions", answer)["code"] == "request_invalid", answer


def test_what_fragments_stand_for_is_counted_without_expanding_them() -> None:
    """A million million fields, in a request of two thousand bytes."""
    document = parse(_doubling(40) + " { workflows { items { ...F0 } } }")
    with pytest.raises(GraphQLError, match="up to more than 1000000000 fields"):
        check_size(document, GraphqlSettings())


def test_clients_can_ask_for_the_whole_schema(site: Site) -> None:
    """As tools do, which need it."""
    assert ask(site, get_introspection_query())["__schema"]["queryType"] == {"name": "Query", "kind": "OBJECT"}


def test_lists_among_variables_are_not_endless(site: Site) -> None:
    """Nor do values that come twice count twice."""
    query = "query($s: [InstanceStatus!]) { instances(statuses: $s) { next } }"
    assert "maximum is 200" in refusal(site, query, s=["FAILED"] * 50_000)[1]
    assert ask(site, query, s=["FAILED"] * 200)["instances"]["next"] is None


def test_several_requests_at_once_are_no_request(site: Site) -> None:
    """A list would be a way around all limits."""
    assert site.client.post("/graphql", json=[{"query": "{ __typename }"}] * 100).status_code == 400


def test_many_costly_requests_of_one_caller_block_nobody(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither health, nor REST, nor GraphQL of other callers: one caller has not all threads."""
    begun, goes_on = threading.Semaphore(0), threading.Event()
    found = type(playground.state).workflows

    def slow(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("contains") == "slow":
            begun.release()
            goes_on.wait(60)
        return found(*args, **kwargs)

    monkeypatch.setattr(type(playground.state), "workflows", slow)
    with _named(playground) as site, ThreadPoolExecutor(47) as callers:
        mine, theirs = {"x-caller": "mine"}, {"x-caller": "theirs"}
        query = {"query": '{ workflows(search: "slow") { next } }'}
        asked = [
            callers.submit(httpx.post, f"{site.url}/graphql", json=query, headers=mine, timeout=90) for _ in range(47)
        ]
        try:
            assert begun.acquire(timeout=30)
            assert site.client.get("/health").status_code == 200
            assert site.client.get("/api/v3/workflows").status_code == 200
            other = site.client.post("/graphql", json={"query": "{ workflows { next } }"}, headers=theirs)
            assert other.json() == {"data": {"workflows": {"next": None}}}
            assert not any(one.done() for one in asked)
        finally:
            goes_on.set()
        assert {one.result().status_code for one in asked} == {200}


def test_a_query_ends_when_nobody_waits_for_it(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next field; what stands in line behind it does not even begin."""
    asked, goes_on, noticed = [0], threading.Event(), threading.Event()
    found, watch = type(playground.state).workflows, server._watch

    async def watching(*args: Any) -> None:
        await watch(*args)
        noticed.set()

    def slow(*args: Any, **kwargs: Any) -> Any:
        asked[0] += 1
        goes_on.wait(30)
        return found(*args, **kwargs)

    monkeypatch.setattr(type(playground.state), "workflows", slow)
    monkeypatch.setattr(server, "_watch", watching)
    query = {"query": "{" + " ".join(f"a{n}: workflows {{ next }}" for n in range(20)) + "}"}
    with site_on(playground) as site:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{site.url}/graphql", json=query, timeout=1)
        assert noticed.wait(30)
        goes_on.set()
        assert site.client.get("/health").status_code == 200
    assert asked == [1]


def test_a_query_that_takes_too_long_is_ended(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says which setting gives it more time."""
    found = type(playground.state).workflows

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.3)
        return found(*args, **kwargs)

    monkeypatch.setattr(type(playground.state), "workflows", slow)
    limits = GraphqlSettings(deadline=timedelta(seconds=0.2))
    query = {"query": "{" + " ".join(f"a{n}: workflows {{ next }}" for n in range(20)) + "}"}
    with site_on(playground, services_on(playground, graphql=limits)) as site:
        answer = site.client.post("/graphql", json=query)
        assert answer.status_code == 400
        assert "server.graphql.deadline" in answer.text


def test_settings_say_how_much_a_request_may_ask_for(playground: Playground) -> None:
    """Of each kind."""
    for limits, query, word in (
        (GraphqlSettings(depth=1), "{ workflows { items { id } } }", "depth"),
        (GraphqlSettings(cost=10), "{ workflows { items { id } } }", "maximum is 10"),
        (GraphqlSettings(fields=2), "{ workflows { items { id } } }", "names 3 fields"),
        (GraphqlSettings(aliases=0), "{ a: workflows { next } }", "aliases"),
        (GraphqlSettings(introspection=3), "{ __schema { types { name } } }", "of the schema"),
        (GraphqlSettings(tokens=3), "{ workflows { next } }", "token"),
    ):
        with site_on(playground, services_on(playground, graphql=limits)) as site:
            assert word in refusal(site, query)[1]


class _Named:
    """Trusts the name that a caller sends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope["headers"]).get(b"x-caller", b"me").decode()
        principal = Principal(name, PrincipalKind.USER, {"": Role.VIEWER})
        await FixedPrincipal(self._app, principal)(scope, receive, send)


def _named(playground: Playground) -> Any:
    return site_on(playground, middleware=[Middleware(_Named)])


def _as(playground: Playground, principal: Principal) -> Any:
    return site_on(playground, middleware=[Middleware(FixedPrincipal, principal=principal)])


def test_callers_see_only_what_they_may_read(playground: Playground) -> None:
    """Callers can do only what they may; by namespace, field by field."""
    for text in (TWO, OTHER):
        playground.push(text)
    runs = [playground.start("team.w"), playground.start("other.w")]
    viewer = Principal("v", PrincipalKind.USER, {"team": Role.VIEWER})
    with _as(playground, viewer) as site:
        assert ask(site, "{ workflows { items { id } } }")["workflows"]["items"] == [{"id": "team.w"}]
        assert ask(site, "{ instances { items { workflowId } } }")["instances"]["items"] == [{"workflowId": "team.w"}]
        forbidden = [
            '{ workflow(id: "other.w") { id } }',
            '{ instance(workflowId: "other.w", instanceId: 1) { status } }',
            '{ instances(workflowId: "other.w") { next } }',
            '{ signalLineage(name: "other.s") }',
            'mutation { start(workflowId: "team.w") { status } }',
            'mutation { restart(workflowId: "team.w", instanceId: 1) { status } }',
            'mutation { act(action: STOP, workflowId: "team.w", instanceId: 1) { status } }',
            'mutation { delete(workflowId: "team.w") }',
            'mutation { activate(workflowId: "team.w") { id } }',
            'mutation { deactivate(workflowId: "team.w") { id } }',
            'mutation { announce(name: "team.s") }',
            '{ getWorkflowOverview(workflowId: "other.w") }',
            'mutation { stopWorkflow(workflowId: "team.w") }',
            'mutation { setTagPermit(tag: "gold", maxAllowed: 3) }',
            "mutation { prune }",
            "{ listUsers }",
            f"mutation {{ push(definition: {json.dumps(TWO)}) {{ versionId }} }}",
        ]
        assert {refusal(site, query)[0] for query in forbidden} == {"forbidden"}
    assert len(runs) == len(playground.state.instances())


def test_signals_of_others_do_not_hide_one_s_own(playground: Playground) -> None:
    """However many newer ones there are that the caller may not see."""
    with site_on(playground) as site:
        for name in ("team.s", *(f"unseen.s{number}" for number in range(3))):
            ask(site, f'mutation {{ announce(name: "{name}") }}')
    viewer = Principal("v", PrincipalKind.USER, {"team": Role.VIEWER})
    with _as(playground, viewer) as site:
        assert [one["name"] for one in ask(site, "{ signals(first: 2) }")["signals"]] == ["team.s"]


def test_nobody_learns_the_schema_who_may_read_nothing(playground: Playground) -> None:
    """Neither by introspection nor by mistakes."""
    with _as(playground, ANONYMOUS) as site:
        assert site.client.post("/graphql", json={"query": "{ __schema { types { name } } }"}).status_code == 401
        with pytest.raises(InvalidStatus), connect(_socket(site)):
            pass
    with _as(playground, Principal("x", PrincipalKind.USER)) as site:
        assert site.client.post("/graphql", json={"query": "{ x }"}).status_code == 403


def _socket(site: Site) -> str:
    return site.url.replace("http", "ws") + "/graphql"


def _listen(site: Site, query: str, number: int) -> list[Any]:
    """Subscribe; return the first messages."""
    with connect(_socket(site), subprotocols=[Subprotocol("graphql-transport-ws")]) as socket:
        socket.send(json.dumps({"type": "connection_init"}))
        assert json.loads(socket.recv(30))["type"] == "connection_ack"
        socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}}))
        return [json.loads(socket.recv(30)) for _ in range(number)]


def test_events_are_listened_to(site: Site) -> None:
    """From the one that is known on; nothing else is asked over a socket."""
    ask(site, PUSH, text=TWO)
    site.playground.start("team.w")
    wanted = [event.seq for event in site.playground.state.events()]
    query = 'subscription { events(workflowId: "team.w", after: 0) { seq type stepId after } }'
    heard = _listen(site, query, len(wanted))
    assert [message["payload"]["data"]["events"]["seq"] for message in heard] == wanted
    [refused] = _listen(site, 'subscription { events(workflowId: "none", instanceId: 1) { seq } }', 1)
    assert "Workflow none has no instance 1" in json.dumps(refused)
    [wrong] = _listen(site, "{ workflows { next } }", 1)
    assert wrong["type"] == "error"


@pytest.mark.parametrize("query", [*BOMBS.values(), "#" * 200_000], ids=[*BOMBS, "comments"])
def test_bombs_over_a_websocket_are_refused_too(site: Site, query: str) -> None:
    """There they would hold up the loop that answers everybody."""
    text = query.replace("} {", "} subscription {")
    [refused] = _listen(site, text if query[0] != "{" else f"subscription {query}", 1)
    assert refused["type"] == "error"
    assert site.client.get("/health").status_code == 200


def test_captures_are_shown_to_who_may_read_their_workflow(playground: Playground, tmp_path: Path) -> None:
    """And checkpoints."""
    with open_lake(load(tmp_path, {})) as lake:
        writer = PyIcebergWriter(lake.settings)
        writer.create("db.events", {"id": "long", "day": "int"}, days=True)
        writer.append([{"id": 1, "day": 1}])
        captures = captures_on(lake, playground.store)
        for consumer in ("team.w/load", "other.w/load"):
            captures.commit(captures.capture(["db.events"], consumer).capture_id or "")
        viewer = Principal("v", PrincipalKind.USER, {"team": Role.VIEWER})
        services = services_on(playground, captures=captures)
        with site_on(playground, services, middleware=[Middleware(FixedPrincipal, principal=viewer)]) as site:
            found = ask(site, "{ captures checkpoints }")
    assert [one["consumer"] for one in found["captures"]] == ["team.w/load"]
    assert found["captures"][0]["status"] == "committed"
    assert [one["consumer"] for one in found["checkpoints"]] == ["team.w/load"]


def test_a_message_over_a_websocket_has_the_limit_of_a_body(site: Site) -> None:
    """Also if it comes compressed: that is not taken."""
    place = site.url.replace("http", "ws") + "/graphql"
    with connect(place, subprotocols=[Subprotocol("graphql-transport-ws")]) as channel:
        assert channel.response is not None
        assert "sec-websocket-extensions" not in channel.response.headers
        with pytest.raises(ConnectionClosed) as refused:
            _say(channel, "x" * (BODY + 1))
    assert refused.value.rcvd is not None
    assert refused.value.rcvd.code == 1009


def _say(channel: ClientConnection, text: str) -> None:
    channel.send(text)
    channel.recv(30)


def test_params_that_nothing_knows_are_refused(site: Site) -> None:
    """For a start and a restart."""
    site.push(TWO)
    start = 'mutation($params: JSON) { start(workflowId: "team.w", params: $params) { status } }'
    assert refusal(site, start, params={"m": 1}) == ("request_invalid", "Workflow team.w has no param m.")
    ask(site, start, params={"n": 2})
    site.playground.settle()
    restart = (
        'mutation($params: JSON) { restart(workflowId: "team.w", instanceId: 1, params: $params, fromBeginning: true)'
        " { status } }"
    )
    assert refusal(site, restart, params={"m": 1})[0] == "request_invalid"


def test_an_operation_holds_text_only(site: Site) -> None:
    """A NUL, which PostgreSQL knows no text with, and half of a surrogate pair."""
    for escape in (r"\u0000", r"\ud83d"):
        code, _ = refusal(site, f'{{ workflow(id: "{escape}") {{ id }} }}')
        assert code == "request_invalid"
