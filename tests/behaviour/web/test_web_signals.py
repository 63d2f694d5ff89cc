"""The pages of signals, triggers, approvals, breakpoints, workers, tag permits and job templates."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.pages import Parsed, answer_of
from tests.servers import services_on

from calve.api import create_app
from calve.triggers import Scheduler, TimeTriggers, TriggerType
from calve.web import add_pages
from calve.web.pages.signals import waits_for

EVIL = "<img/src=x>\"'"
WORKFLOW = """
Workflow:
  id: demo.flow
  jobs:
    - job: {id: hold, type: NoOp}
    - job: {id: ask, type: Approval, approval: {message: "<script>alert(1)</script>?", approvers: [ann, local]}}
    - job: {id: other, type: Approval, approval: {message: "And this?", approvers: [ann]}}
    - job: {id: send, type: NoOp, signal_outputs: {definitions: [{name: demo.ready, params: {day: 20260301}}]}}
  dag: []
"""
JSON = {"accept": "application/json"}
TWINS = {
    "/signals": "/signals",
    "/signals?name=demo.ready": "/signals?name=demo.ready",
    "/signals/demo.ready/instances/1": "/signals/demo.ready/instances/1/lineage",
    "/triggers": "/triggers",
    "/triggers?view=calendar": "/triggers/upcoming",
    "/approvals": "/approvals",
    "/breakpoints": "/breakpoints",
    "/workers": "/workers",
    "/tag-permits": "/tag-permits",
    "/job-templates": "/job-templates?version=*",
    "/job-templates/incremental": "/job-templates/incremental",
}


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at a server with one of each."""
    with TestClient(create_app(services_on(playground), extend=add_pages), follow_redirects=False) as client:
        client.post("/api/v3/workflows/yaml", content=WORKFLOW, headers={"content-type": "application/yaml"})
        client.post("/api/v3/workflows/steps/breakpoints", json={"workflow_id": "demo.flow", "step_id": "hold"})
        client.post("/api/v3/tag-permits", json={"tag": "warehouse", "max_allowed": 2})
        client.post("/api/v3/workflows/demo.flow/versions/active/actions/start", json={})
        playground.settle()
        client.post("/api/v3/signals", json={"name": "demo.other", "params": {"text": EVIL}})
        client.headers.update({"accept": "text/html"})
        yield client


def test_a_job_template_is_shown_as_yaml(client: TestClient) -> None:
    """As definitions of workflows are."""
    (code,) = answer_of(client.get("/job-templates/incremental")).all("pre", class_="code")
    assert "job_type: incremental\n" in code.text


def test_the_number_of_a_signal_is_a_number(client: TestClient) -> None:
    """Another word does not lead to the latest one."""
    assert client.get("/signals/demo.ready/instances/latest").status_code == 200
    assert client.get("/signals/demo.ready/instances/one").status_code == 400


def _actions(page: Parsed) -> set[str]:
    """Return which operations a page offers."""
    found = (one.partition("?")[0].removeprefix("/actions/") for one in page.links if one.startswith("/actions/"))
    return set(found)


@pytest.mark.parametrize("path", TWINS)
def test_a_page_is_its_rest_document_too(client: TestClient, path: str) -> None:
    """The same address as JSON is what REST answers."""
    answer_of(client.get(path))
    twin, rest = client.get(path, headers=JSON).json(), client.get(f"/api/v3{TWINS[path]}", headers=JSON).json()
    if path == "/workers":
        twin.pop("now"), rest.pop("now")
    assert twin == rest


def test_a_signal_names_who_sent_it(client: TestClient) -> None:
    """As a link to the step; its params are text, whatever they hold."""
    page = answer_of(client.get("/signals"))
    assert "/workflows/demo.flow/instances/1?step=send" in page.links
    assert EVIL in page.one("main").text
    assert (
        "/workflows/demo.flow/instances/1?step=send" in answer_of(client.get("/signals/demo.ready/instances/1")).links
    )
    assert "No signal has this name" in answer_of(client.get("/signals?name=nothing")).one("main").text


def test_the_calendar_shows_what_starts_next(client: TestClient, playground: Playground) -> None:
    """Hour by hour over all workflows; what starts often in an hour is counted, and what is disabled is left out."""
    assert "No time trigger" in answer_of(client.get("/triggers?view=calendar")).one("main").text
    for name, cron in (("demo.often", "*/10 * * * *"), ("demo.daily", "0 23 * * *"), ("demo.off", "0 23 * * *")):
        playground.push(
            f"Trigger: {{cron: '{cron}'}}\nWorkflow: {{id: {name}, jobs: [{{job: {{id: a, type: NoOp}}}}]}}"
        )
    client.post("/actions/change_properties", data={"workflow_id": "demo.off", "time_trigger_disabled": "true"})
    Scheduler(
        playground.tools, playground.store.triggers, {TriggerType.TIME: TimeTriggers()}, clock=playground.clock
    ).turn()
    page = answer_of(client.get("/triggers?view=calendar"))
    rows = [" ".join(row.text.split()) for row in page.all("tr")[1:]]
    assert rows[:2] == [
        "2023-11-14 22:00 22:20 demo.often ×4",
        "2023-11-14 23:00 23:00 demo.daily, 23:00 demo.often ×6",
    ]
    assert len(rows) == 25
    assert not any("demo.off" in row.replace("demo.often", "") for row in rows)
    assert "/workflows/demo.often?tab=triggers" in page.links


def test_only_those_who_are_asked_see_the_buttons_of_an_approval(client: TestClient) -> None:
    """The question is text; what one may not decide has no button."""
    page = answer_of(client.get("/approvals"))
    assert "<script>alert(1)</script>?" in page.one("main").text
    decided = {one for one in page.links if one.startswith(("/actions/approve_step", "/actions/reject_step"))}
    assert len(decided) == 2
    assert all("step_id=ask" in one for one in decided)


@pytest.mark.parametrize("operation", ["approve_step", "reject_step"])
def test_a_decision_takes_a_comment(client: TestClient, playground: Playground, operation: str) -> None:
    """Its field stands in the form itself, not among more options; the step keeps what was written."""
    page = answer_of(client.get("/approvals"))
    (link,) = [one for one in page.links if one.startswith(f"/actions/{operation}?")]
    form = answer_of(client.get(link))
    assert form.one("input", name="comment").attributes["type"] == "text"
    assert "comment" not in " ".join(one.text.lower() for one in form.all("details"))
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.all("input", type="hidden")}
    fields |= {"comment": "four eyes", "blocking": "false"}
    assert client.post(f"/actions/{operation}", data=fields).status_code == 303
    playground.settle()
    assert "four eyes" in client.get("/api/v3/workflows/demo.flow/instances/1/steps/ask", headers=JSON).text


def test_a_paused_step_is_resumed(client: TestClient, playground: Playground) -> None:
    """And its breakpoint removed."""
    page = answer_of(client.get("/breakpoints"))
    assert _actions(page) == {"add_breakpoint", "resume_step", "delete_breakpoint"}
    form = {"workflow_id": "demo.flow", "step_id": "hold", "instance_id": "0", "next": "/breakpoints"}
    answer = client.post("/actions/delete_breakpoint", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/breakpoints")
    playground.settle()
    after = client.get("/breakpoints", headers=JSON).json()
    assert after == {"breakpoints": [], "paused": []}
    assert "calve pause WORKFLOW STEP" in answer_of(client.get("/breakpoints")).one("main").text


def test_a_limit_is_lifted(client: TestClient) -> None:
    """By its button; the empty page says how to set one."""
    assert _actions(answer_of(client.get("/tag-permits"))) == {"set_tag_permit", "delete_tag_permit"}
    client.post("/actions/delete_tag_permit", data={"tag": "warehouse"})
    assert "calve permits set TAG 4" in answer_of(client.get("/tag-permits")).one("main").text


def test_a_trigger_says_what_it_waits_for() -> None:
    """A time, signals with those that have come, or changes of tables."""
    cron = {"type": "time", "definition": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, "state": {}}
    state = {"waiting": {"a": [[1, {}]]}}
    signal = {"type": "signal", "definition": {"definitions": {"a": {}, "b": {}}}, "state": state}
    change = {"type": "incremental", "definition": {"source_tables": ["db.t"]}, "state": {}}
    assert [waits_for(one) for one in (cron, signal, change)] == [
        "30 2 * * * Europe/Berlin",
        "a (has come), b",
        "changes of db.t",
    ]
