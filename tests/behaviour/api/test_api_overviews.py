"""Lists and overviews of many workflows and instances through REST, on both databases, for two callers."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import BUSY, DONE, FATAL_ERROR, Playground
from tests.servers import Site, site_on

from calve.api.access import guarded
from calve.definition.params import InitiatorType
from calve.engine import RUN_EVENT, STEP_EVENT, Breakpoint, Initiator, Outcome, State, WorkerRecord
from calve.engine.decisions import quarantine
from calve.operations.overviews import texts_of
from calve.store.engine import filters
from calve.triggers import Scheduler, TimeTriggers, TriggerType

pytestmark = pytest.mark.each_store

JOB = """
Trigger: {{cron: '0 * * * *'}}
Workflow:
  id: {id}
  owner: {owner}
  tags: [{tag}]
  jobs:
    - job: {{id: load, type: Sleep}}
"""


@pytest.fixture
def site(playground: Playground, access: AccessSetup) -> Iterator[Site]:
    """Give a server where everybody has to sign in."""
    with site_on(playground, **guarded(access.control())) as site:
        yield site


@pytest.fixture
def ann(access: AccessSetup) -> dict[str, str]:
    """Give the header of someone who may read what is below sales."""
    return bearer(access.token("viewer@sales"))


@pytest.fixture
def root(access: AccessSetup) -> dict[str, str]:
    """Give the header of someone who may read everything."""
    return bearer(access.token("viewer"))


def push(playground: Playground, workflow_id: str, owner: str = "ann", tag: str = "gold", template: str = JOB) -> None:
    """Push a workflow."""
    playground.push(template.format(id=workflow_id, owner=owner, tag=tag))


def ids(page: dict[str, Any]) -> list[str]:
    """Return the workflows of a page."""
    return [one["workflow_id"] for one in page["elements"]]


def test_workflows_are_listed_by_owner_and_tag(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """A tag of the version counts, and one that the workflow was given later; a param of the same text does not."""
    play = site.playground
    push(play, "sales.a")
    push(play, "sales.b", owner="bob", tag="silver")
    push(play, "ops.c", owner="gold")
    play.engine.tag("sales.b", "late")
    assert ids(site.get("/workflows", headers=root)) == ["ops.c", "sales.a", "sales.b"]
    assert ids(site.get("/workflows?tag=gold", headers=root)) == ["ops.c", "sales.a"]
    assert ids(site.get("/workflows?tag=gold", headers=ann)) == ["sales.a"]
    assert ids(site.get("/workflows?tag=late", headers=root)) == ["sales.b"]
    assert ids(site.get("/workflows?owner=gold", headers=root)) == ["ops.c"]
    assert ids(site.get("/workflows?owner=ann&tag=silver", headers=root)) == []
    assert ids(site.get("/workflows?owner=load", headers=root)) == []
    (row,) = site.get("/workflows?search=S.B", headers=ann)["elements"]
    assert (row["owner"], row["tags"], row["is_paused"], row["last_run_time"]) == (
        "bob",
        ["silver", "late"],
        False,
        None,
    )
    play.engine.deactivate("sales.b")
    (row,) = site.get("/workflows?search=s.b", headers=ann)["elements"]
    assert row["is_paused"] is True


def test_workflows_are_listed_by_their_last_runs(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """The one that was started last comes first, those never started last, by id; pages go on where one ended."""
    play = site.playground
    for name in ("sales.a", "sales.b", "sales.c", "sales.d", "ops.e"):
        push(play, name)
    for name in ("sales.b", "ops.e", "sales.c"):
        play.advance(60)
        play.start(name)
    assert ids(site.get("/workflows?sort=last_run", headers=root)) == [
        "sales.c",
        "ops.e",
        "sales.b",
        "sales.a",
        "sales.d",
    ]
    found, cursor = [], ""
    for _ in range(4):
        page = site.get("/workflows", headers=ann, params={"sort": "last_run", "limit": 1, "cursor": cursor})
        found += ids(page)
        cursor = page["page_info"]["end_cursor"]
    assert found == ["sales.c", "sales.b", "sales.a", "sales.d"]
    assert page["page_info"]["has_next_page"] is False
    for bad in ("x", "1.", ".a", "1" * 19 + ".a"):
        site.get("/workflows", headers=ann, params={"sort": "last_run", "cursor": bad}, status=400)


def test_a_list_of_workflows_holds_runs_and_triggers(site: Site, ann: dict[str, str]) -> None:
    """The newest 20 instances of each, as their latest runs leave them, and when the next trigger fires."""
    play = site.playground
    push(play, "sales.a")
    push(play, "sales.b")
    Scheduler(play.tools, play.store.triggers, {TriggerType.TIME: TimeTriggers()}).turn()
    for _ in range(22):
        play.start("sales.a")
    play.script.parts["load"] = FATAL_ERROR
    run = play.start("sales.b")
    play.script.parts.clear()
    play.restart(run)
    first, second = site.get("/workflows?include=runs,triggers", headers=ann)["elements"]
    assert [one["workflow_instance_id"] for one in first["runs"]] == list(range(22, 2, -1))
    (latest,) = second["runs"]
    assert (latest["workflow_run_id"], latest["status"]) == (2, "SUCCEEDED")
    assert latest["end_time"] >= latest["start_time"] >= latest["create_time"]
    (trigger,) = first["triggers"]
    assert first["next_fire_time"] == trigger["next_time"] > play.clock()
    assert "runs" not in site.get("/workflows", headers=ann)["elements"][0]
    site.get("/workflows?include=lag", headers=ann, status=400)


DEEP = """
Workflow:
  id: sales.deep
  jobs:
    - foreach:
        id: loop
        loop_params: {n: [1, 2]}
        jobs:
          - subworkflow: {id: sub, workflow_id: ops.child}
"""
ASKING = "Workflow: {id: sales.ask, jobs: [{job: {id: ok, type: Approval, approval: {message: Go?}}}]}"


def test_failed_instances_are_listed_by_cause(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """Same workflow and first line of the error are one row; what was restarted, or is not readable, is left out."""
    play = site.playground
    for name in ("sales.a", "sales.b", "ops.c"):
        push(play, name)
    play.script.parts["load"] = Outcome(State.FATAL_ERROR, message="no disk\nat line 3")
    first = play.start("sales.a")
    play.advance(60)
    play.start("sales.a")
    play.start("ops.c")
    play.script.parts["load"] = Outcome(State.FATAL_ERROR, message="no disk")
    again = play.start("sales.b")
    play.advance(60)
    newest = play.start("sales.a")
    play.script.parts["load"] = Outcome(State.FATAL_ERROR, message="no table")
    play.start("sales.a")
    play.script.parts.clear()
    play.restart(again)
    seen = site.get("/attention", headers=ann)
    rows = {(one["workflow_id"], one["error"]): one for one in seen["failed"]["elements"]}
    assert {key: one["count"] for key, one in rows.items()} == {("sales.a", "no disk"): 3, ("sales.a", "no table"): 1}
    row = rows["sales.a", "no disk"]
    assert (row["workflow_instance_id"], row["path"], row["status"]) == (newest.instance_id, "load", "FAILED")
    assert (row["since"], row["until"]) == (first.ended_at, newest.ended_at)
    assert (seen["failed"]["count"], seen["failed"]["has_more"]) == (4, False)
    assert site.get("/attention", headers=root)["failed"]["count"] == 5


def test_a_failed_step_is_named_however_deep_it_lies(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """Its instance is that of the outermost workflow; whoever may not read the subworkflow sees the step around it."""
    play = site.playground
    push(play, "ops.child")
    play.push(DEEP)
    play.script.parts["load"] = FATAL_ERROR
    play.start("sales.deep")
    (row,) = site.get("/attention", headers=root)["failed"]["elements"]
    assert (row["workflow_id"], row["path"], row["error"]) == ("sales.deep", "loop/1/sub/load", "no way")
    (row,) = site.get("/attention", headers=ann)["failed"]["elements"]
    assert (row["workflow_id"], row["path"]) == ("sales.deep", "loop/1/sub")


def test_late_triggers_and_long_runs_need_attention(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """A time trigger that did not fire, and an instance that takes more than 1.5 times as long as usual."""
    play = site.playground
    push(play, "sales.a")
    push(play, "ops.b")
    Scheduler(play.tools, play.store.triggers, {TriggerType.TIME: TimeTriggers()}).turn()
    for seconds in (10, 20, 30):
        play.script.parts["load"] = [Outcome(State.CONTINUE, poll_after=seconds), DONE]
        play.script._said.clear()
        play.start("sales.a")
        play.advance(seconds)
    play.script.parts["load"] = BUSY
    late = play.start("sales.a")
    play.start("ops.b")
    play.clock.now += 45_000
    assert site.get("/attention", headers=root)["late"]["count"] == 0
    play.clock.now += 1_000
    (row,) = site.get("/attention", headers=root)["late"]["elements"]
    assert (row["kind"], row["workflow_id"], row["workflow_instance_id"]) == ("run", "sales.a", late.instance_id)
    assert (row["duration"], row["usual_duration"]) == (46_000, 30_000)
    play.clock.now += 2 * 3_600_000
    kinds = [(one["kind"], one["workflow_id"]) for one in site.get("/attention", headers=ann)["late"]["elements"]]
    assert kinds == [("trigger", "sales.a"), ("run", "sales.a")]
    assert site.get("/attention", headers=root)["late"]["count"] == 3
    play.engine.stop_all("sales.a")
    play.engine.stop_all("ops.b")
    play.settle()


def test_what_waits_for_people_needs_attention(site: Site, ann: dict[str, str], access: AccessSetup) -> None:
    """Approval steps with their question, attempts at breakpoints, and what was set aside."""
    play = site.playground
    play.push(ASKING)
    play.start("sales.ask")
    push(play, "sales.a")
    play.engine.pause(Breakpoint("sales.a", "load"))
    play.start("sales.a")
    push(play, "sales.b")
    run = play.begin("sales.b").run
    (task,) = play.claim()
    play.state.commit(quarantine(play.tools, task, "2 workers died while they held it"))
    waiting = site.get("/attention", headers=ann)["waiting"]
    kinds = {one["kind"]: one for one in waiting["elements"]}
    assert (waiting["count"], set(kinds)) == (3, {"approval", "breakpoint", "set_aside"})
    assert (kinds["approval"]["question"], kinds["approval"]["path"]) == ("Go?", "ok")
    assert (kinds["breakpoint"]["workflow_id"], kinds["breakpoint"]["path"]) == ("sales.a", "load")
    assert (kinds["set_aside"]["workflow_id"], kinds["set_aside"]["workflow_instance_id"]) == (
        "sales.b",
        run.instance_id,
    )
    others = bearer(access.token("viewer@ops"))
    assert site.get("/attention", headers=others)["waiting"] == {"count": 0, "has_more": False, "elements": []}
    for name in ("sales.a", "sales.ask"):
        play.engine.stop_all(name)
    play.settle()


LAKE = """
Workflow:
  id: sales.lake
  owner: Zoe
  jobs:
    - job:
        id: read_orders
        type: Sleep
        sleep_seconds: 1
        note: "100% of the größe"
    - foreach:
        id: every
        loop_params: {n: [1]}
        jobs:
          - subworkflow: {id: sub, workflow_id: sales.inner}
"""


def found(site: Site, headers: dict[str, str], q: str, **more: Any) -> dict[str, list[tuple[str, str]]]:
    """Return what a search finds: titles, and what matched."""
    elements = site.get("/search", headers=headers, params={"q": q, **more})["elements"]
    return {one["title"]: [(each["field"], each["value"]) for each in one["matches"]] for one in elements}


def test_workflows_are_found_by_what_their_definitions_hold(site: Site, ann: dict[str, str]) -> None:
    """By id, owner, tag, step, subworkflow and any text, whatever its case; those found by id come first."""
    play = site.playground
    push(play, "sales.a", owner="ann", tag="inner_tag")
    push(play, "sales.inner")
    push(play, "ops.inner")
    play.push(LAKE)
    assert found(site, ann, "INNER") == {
        "sales.inner": [("id", "sales.inner")],
        "sales.a": [("tag", "inner_tag")],
        "sales.lake": [("subworkflow", "sales.inner")],
    }
    assert found(site, ann, "orders") == {"sales.lake": [("step", "read_orders")]}
    assert found(site, ann, "zoe") == {"sales.lake": [("owner", "Zoe")]}
    assert found(site, ann, "100% of the größe") == {"sales.lake": [("text", "100% of the größe")]}
    assert found(site, ann, "nothing like that") == {}
    pages: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = site.get("/search", headers=ann, params={"q": "inner", "limit": 1, "cursor": cursor})
        pages += [one["title"] for one in page["elements"]]
        cursor = page["page_info"]["end_cursor"] if page["page_info"]["has_next_page"] else None
    assert pages == ["sales.inner", "sales.a", "sales.lake"]


def test_an_instance_is_found_by_workflow_and_number(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """A part of the workflow's id is enough; the result has the path of its page."""
    play = site.playground
    for name in ("sales.a", "ops.a"):
        push(play, name)
        play.start(name)
    (row,) = site.get("/search", headers=ann, params={"q": "sales.a 1"})["elements"]
    assert (row["kind"], row["path"], row["status"]) == ("instance", "/workflows/sales.a/instances/1", "SUCCEEDED")
    assert set(found(site, ann, "a #1")) == {"sales.a 1"}
    assert set(found(site, root, "a/1")) == {"sales.a 1", "ops.a 1"}
    assert found(site, root, "sales.a 2") == {}


def test_a_search_tells_tables_and_shows_long_texts_in_part() -> None:
    """A text below source_tables or targets is a table, wherever the step has it."""
    written = {"params": {"source_tables": {"value": ["db.orders"], "type": "STRING_ARRAY"}, "n": 1}, "id": "x"}
    assert ("table", "db.orders") in list(texts_of(written))
    assert ("step", "x") in list(texts_of(written))


PARAMS = "Workflow: {id: sales.p, day: '20260101', n: 1, jobs: [{job: {id: load, type: Sleep}}]}"


def numbers(site: Site, headers: dict[str, str], path: str, **params: Any) -> list[int]:
    """Return the numbers of the instances in a list, over all of its pages."""
    seen, cursor = [], ""
    while True:
        page = site.get(path, headers=headers, params={**params, "cursor": cursor, "limit": 2})
        seen += [one["workflow_instance_id"] for one in page["elements"]]
        cursor = page["page_info"]["end_cursor"]
        if not page["page_info"]["has_next_page"]:
            return seen


@pytest.mark.parametrize("path", ["/instances", "/workflows/sales.p/instances"])
def test_instances_are_listed_by_what_they_were_started_with(
    site: Site, ann: dict[str, str], access: AccessSetup, path: str
) -> None:
    """By time, tag, initiator, version and params; whoever may not read the workflow sees none of them."""
    play = site.playground
    play.push(PARAMS)
    start = play.clock()
    for number in range(1, 7):
        if number == 5:
            play.push(PARAMS)
        given = {"n": number} if number % 2 else {}
        user = Initiator(user="ann") if number == 3 else Initiator(type=InitiatorType.TIME)
        play.start("sales.p", params=given, tags=("gold", f"t{number}") if number > 3 else (), initiator=user)
        play.advance(60)
    ask = partial(numbers, site, ann, path)
    assert ask(**{"from": start + 60_000, "to": start + 180_000}) == [3, 2]
    moment = datetime.fromtimestamp((start + 240_000) / 1_000, UTC).replace(tzinfo=None).isoformat()
    assert ask(**{"from": moment}) == [6, 5]
    assert ask(tag="gold") == [6, 5, 4]
    assert ask(tag="t4") == [4]
    assert ask(initiator="ann") == ask(initiator="MANUAL") == [3]
    assert ask(initiator="time") == [6, 5, 4, 2, 1]
    assert ask(version=2) == [6, 5]
    assert ask(param="n=1") == [6, 4, 2, 1]
    assert ask(param=["n=5", "day=20260101"]) == [5]
    assert ask(param="n=7") == ask(param="m=1") == []
    assert ask(version=2, status="FAILED") == []
    site.get(path, headers=ann, params={"param": "n"}, status=400)
    site.get(path, headers=ann, params={"from": "yesterday"}, status=400)
    others = bearer(access.token("viewer@ops"))
    if path == "/instances":
        assert numbers(site, others, path, tag="gold") == []
        assert numbers(site, ann, path, tag="gold", workflow_id="sales.p") == [6, 5, 4]
        site.get(path, headers=others, params={"tag": "gold", "workflow_id": "sales.p"}, status=403)
    else:
        site.get(path, headers=others, params={"tag": "gold"}, status=403)


def test_a_rare_instance_is_looked_for_in_parts(
    site: Site, ann: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may be empty, and say where to look on."""
    monkeypatch.setattr(filters, "SCANNED", 3)
    play = site.playground
    play.push(PARAMS)
    play.start("sales.p", tags=("rare",))
    for _ in range(7):
        play.advance(1)
        play.start("sales.p")
    for path in ("/instances", "/workflows/sales.p/instances"):
        first = site.get(path, headers=ann, params={"tag": "rare"})
        assert (first["elements"], first["page_info"]["has_next_page"]) == ([], True)
        assert numbers(site, ann, path, tag="rare") == [1]


def test_workers_and_the_queue_are_shown(site: Site, ann: dict[str, str], root: dict[str, str]) -> None:
    """Which are alive and what they run, as far as the caller may read it; what waits; what was set aside."""
    play = site.playground
    for name in ("sales.a", "ops.b", "sales.c"):
        push(play, name)
    play.begin("sales.c")
    (task,) = play.claim()
    play.state.commit(quarantine(play.tools, task, "2 workers died while they held it"))
    for name in ("sales.a", "ops.b"):
        play.begin(name)
    play.state.register(WorkerRecord("other", "elsewhere", 2, 1, 1, 8, version="9.9"))
    assert site.get("/queue", headers=root)["tasks"]["run"] | {"oldest": 0} == {
        "ready": 2,
        "later": 0,
        "claimed": 0,
        "retried": 0,
        "oldest": 0,
    }
    held = play.state.claim("other", play.clock(), runs=2, steps=0)
    seen = site.get("/workers", headers=root)
    assert (seen["alive"], seen["slots"], seen["running"]) == (2, 108, 2)
    assert seen["last_heartbeat"] <= seen["now"]
    (other,) = [one for one in seen["elements"] if one["uuid"] == "other"]
    assert (other["host"], other["version"], other["slots"], other["running"]) == ("elsewhere", "9.9", 8, 2)
    assert {one["workflow_id"] for one in other["tasks"]} == {"sales.a", "ops.b"}
    (other,) = [one for one in site.get("/workers", headers=ann)["elements"] if one["uuid"] == "other"]
    assert ("host" in other, [one["workflow_id"] for one in other["tasks"]]) == (False, ["sales.a"])
    queue = site.get("/queue", headers=ann)
    assert (queue["tasks"]["run"]["claimed"], queue["set_aside"]["count"]) == (2, 1)
    assert queue["set_aside"]["elements"][0]["workflow_id"] == "sales.c"
    assert seen["scheduler"] == {"late_since": None, "last_heartbeat": None, "is_silent": False}
    play.state.release(held)
    play.state.retire("other")
    play.settle()


def test_events_are_filtered_by_kind_and_step(site: Site, ann: dict[str, str]) -> None:
    """As a page and as a stream."""
    play = site.playground
    play.push("Workflow: {id: sales.w, jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep}}]}")
    play.start("sales.w")
    place: dict[str, Any] = {"workflow_id": "sales.w", "instance_id": 1}
    events = site.get("/events", headers=ann, params=place)["elements"]
    for asked in ({"kind": RUN_EVENT}, {"step": "b"}, {"kind": [RUN_EVENT, STEP_EVENT], "step": "a"}):
        kinds = {asked["kind"]} if asked.get("kind") == RUN_EVENT else {RUN_EVENT, STEP_EVENT}
        wanted = [one for one in events if one["type"] in kinds and asked.get("step") in {None, one.get("step_id")}]
        assert wanted
        assert site.get("/events", headers=ann, params={**place, **asked})["elements"] == wanted
    accept = {**ann, "accept": "text/event-stream"}
    with site.client.stream("GET", "/api/v3/events", headers=accept, params={**place, "step": "b"}) as stream:
        lines = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(lines)["step_id"] == "b"


SOURCES = """
Workflow:
  id: sales.w
  day: '1'
  n: 1
  jobs:
    - job: {id: load, type: Sleep, sleep_seconds: 1, size: 3, text: "${day} ${n}"}
"""


def test_params_of_steps_tell_where_they_come_from(site: Site, ann: dict[str, str]) -> None:
    """From the definition, from the run, from a restart, or from calve itself; literal or evaluated."""
    play = site.playground
    play.push(SOURCES)
    play.script.parts["load"] = FATAL_ERROR
    run = play.start("sales.w", params={"day": "2"})
    path = "/workflows/sales.w/instances/1"
    seen = site.get(path, headers=ann)
    assert {name: seen["params"][name]["source"] for name in ("day", "n")} == {"day": "LAUNCH", "n": "DEFINITION"}
    play.script.parts.clear()
    play.engine.restart(play.address(run), params={"n": 7}, step_params={"load": {"size": 5}})
    play.settle()
    restarted = site.get(path, headers=ann)
    assert restarted["params"]["n"]["source"] == "RESTART"
    attempt = site.get(f"{path}/runs/latest/steps/load/attempts/latest", headers=ann)
    sources = {name: attempt["params"][name]["source"] for name in ("size", "text", "sleep_seconds")}
    assert sources == {"size": "RESTART", "text": "DEFINITION", "sleep_seconds": "DEFINITION"}
    assert attempt["params"]["text"]["evaluated_result"] == "2 7"


def test_instances_in_rare_statuses_are_listed(site: Site, ann: dict[str, str]) -> None:
    """Those that run, that failed, that were stopped, and any of them together."""
    play = site.playground
    play.push("Workflow: {id: sales.w, run_strategy: parallel, jobs: [{job: {id: load, type: Sleep}}]}")
    play.start("sales.w")
    play.script.parts["load"] = FATAL_ERROR
    play.start("sales.w")
    play.script.parts["load"] = BUSY
    stopped = play.start("sales.w")
    play.engine.stop(play.address(stopped))
    play.settle()
    play.start("sales.w")
    for statuses, expected in (
        (["IN_PROGRESS"], [4]),
        (["CREATED", "IN_PROGRESS"], [4]),
        (["FAILED"], [2]),
        (["FAILED", "TIMED_OUT"], [2]),
        (["STOPPED"], [3]),
        (["STOPPED", "FAILED"], [3, 2]),
        (["SUCCEEDED"], [1]),
    ):
        assert numbers(site, ann, "/instances", status=statuses) == expected
    play.engine.stop_all("sales.w")
    play.settle()
