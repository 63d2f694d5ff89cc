"""Workflows through REST, on a real server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engines import Playground
from tests.servers import Site, site_on

from calve.api import WebServices
from calve.triggers import Scheduler, TimeTriggers, TriggerType

JOB = """
Workflow:
  id: w
  day: '20260101'
  jobs:
    - job: {id: job, type: Sleep}
"""
MAESTRO: dict[str, Any] = {
    "properties": {"owner": "tester", "run_strategy": "sequential", "step_concurrency": 2},
    "is_active": True,
    "git_info": {"branch": "main", "sha": "abc"},
    "workflow": {
        "id": "sample-dag-test-1",
        "name": "Test workflow 01",
        "params": {"foo": {"value": "bar", "type": "STRING"}},
        "steps": [
            {"step": {"id": "job.1", "type": "NoOp", "transition": {"successors": {"job.2": "true"}}}},
            {"step": {"id": "job.2", "type": "NoOp"}},
        ],
    },
}


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server on an empty state database."""
    with site_on(playground) as site:
        yield site


def test_a_definition_becomes_a_version(site: Site) -> None:
    """A push answers with the version, as Maestro does, in JSON as in YAML."""
    pushed = site.push(JOB)
    assert pushed["metadata"]["workflow_version_id"] == 1
    assert pushed["is_active"] is True
    version = site.get("/workflows/w/versions/latest")
    assert pushed == {**version, "workflow_definition": version}
    sample = site.post("/workflows", MAESTRO)
    assert sample["workflow"]["id"] == "sample-dag-test-1"
    assert sample["metadata"]["git_info"]["branch"] == "main"
    assert sample["metadata"]["version_author"] == "local"
    assert sample["properties_snapshot"]["step_concurrency"] == 2
    assert site.start("sample-dag-test-1")["workflow_instance_id"] == 1
    site.playground.settle()
    assert site.get("/workflows/sample-dag-test-1/instances/1")["status"] == "SUCCEEDED"


def test_a_version_is_enriched_with_what_is_known_before_it_runs(site: Site) -> None:
    """Its params with the defaults, those of its steps, and when it starts next; nothing of that unless asked for."""
    site.push("Trigger: {cron: '0 * * * *'}\n" + JOB.replace("type: Sleep", "type: Sleep, day_after: '${day}!'"))
    path = "/workflows/w/versions/active"
    assert "enriched_extras" not in site.get(path)
    extras = site.get(f"{path}?enriched=true")["enriched_extras"]
    assert {"day", "TARGET_RUN_DATE"} <= set(extras["workflow_params"])
    assert extras["step_params"]["job"]["day_after"]["evaluated_result"] == "20260101!"
    assert "next_execution_times" not in extras
    triggers = site.playground.store.triggers
    Scheduler(site.playground.tools, triggers, {TriggerType.TIME: TimeTriggers()}).turn()
    extras = site.get(f"{path}?enriched=True")["enriched_extras"]
    (due,) = [one.due_at for one in triggers.triggers()]
    assert (extras["next_execution_time"], extras["next_execution_times"]) == (due, [due])
    with site_on(site.playground, WebServices(site.playground.engine)) as bare:
        assert "next_execution_time" not in bare.get(f"{path}?enriched=true")["enriched_extras"]


def test_a_broken_definition_changes_nothing(site: Site) -> None:
    """B.4-38: the answer is 400 with line and column; the old version stays active."""
    site.push(JOB)
    problem = site.push("Workflow:\n  id: w\n  jobs:\n    - job: {id: [", 400)
    assert problem["code"] == "definition_invalid"
    assert problem["context"]["problems"][0]["line"] >= 4
    assert site.put("/workflows/actions/validate", {"workflow": {"id": "w"}}, 400)["code"] == "definition_invalid"
    assert site.get("/workflows/w/versions/active")["metadata"]["workflow_version_id"] == 1


def test_a_definition_is_checked_without_being_kept(site: Site) -> None:
    """Both forms of it."""
    assert site.put("/workflows/actions/validate", MAESTRO)["action"] == "VALIDATE"
    site.ask("PUT", "/workflows/actions/validate/yaml", 200, content=JOB)
    assert site.get("/workflows")["elements"] == []


def test_workflows_are_listed_and_searched(site: Site) -> None:
    """Page by page, by id."""
    for workflow_id in ("a.one", "a.two", "b.one"):
        site.push(JOB.replace("id: w", f"id: {workflow_id}"))
    first = site.get("/workflows", params={"limit": 2})
    assert [one["workflow_id"] for one in first["elements"]] == ["a.one", "a.two"]
    assert first["page_info"]["has_next_page"] is True
    second = site.get("/workflows", params={"limit": 2, "cursor": first["page_info"]["end_cursor"]})
    assert [one["workflow_id"] for one in second["elements"]] == ["b.one"]
    assert second["page_info"]["has_next_page"] is False
    assert [one["workflow_id"] for one in site.get("/workflows?search=ONE")["elements"]] == ["a.one", "b.one"]
    site.get("/workflows?limit=201", 400)
    site.get("/workflows?limit=5&first=5", 400)
    site.get("/workflows?last=5", 400)


def test_versions_are_listed_in_both_directions(site: Site) -> None:
    """As Maestro's clients ask for them, by first or last and the number of a version."""
    for _ in range(4):
        site.push(JOB)
    page = site.get("/workflows/w/versions/pagination?first=2")
    assert _versions(page) == [4, 3]
    assert _versions(site.get("/workflows/w/versions/pagination?first=2&cursor=3")) == [2, 1]
    assert _versions(site.get("/workflows/w/versions/pagination?last=2")) == [2, 1]
    assert _versions(site.get("/workflows/w/versions/pagination?last=1&cursor=2")) == [3]
    site.get("/workflows/w/versions/pagination?cursor=x", 400)
    site.get("/workflows/w/versions/9", 404)
    site.get("/workflows/w/versions/nonsense", 400)


def _versions(page: Any) -> list[int]:
    return [one["metadata"]["workflow_version_id"] for one in page["elements"]]


def test_a_workflow_is_seen_at_a_glance(site: Site) -> None:
    """Its versions, its instances by status, who pushed what."""
    site.push(JOB)
    site.start()
    overview = site.get("/workflows/w/overview")
    assert overview["nonterminal_instances"] == {"CREATED": 1, "IN_PROGRESS": 0, "PAUSED": 0}
    assert (overview["failed_instances"], overview["latest_instance_id"]) == (0, 1)
    timeline = site.get("/workflows/w/timeline")
    assert timeline["timeline_events"][0]["author"] == "local"
    site.get("/workflows/nothing/overview", 404)
    site.playground.settle()


def test_versions_are_activated_and_workflows_deleted(site: Site) -> None:
    """A workflow without an active version starts only by number; a deleted one is gone."""
    site.push(JOB)
    site.push(JOB)
    assert site.put("/workflows/w/versions/1/actions/activate")["workflow_version_id"] == 1
    assert site.put("/workflows/w/actions/deactivate")["workflow_version_id"] == 1
    site.start(status=404)
    assert site.start(version="2")["workflow_version_id"] == 2
    assert site.delete("/workflows/w", 400)["code"] == "request_invalid"
    site.playground.settle()
    site.delete("/workflows/w")
    site.get("/workflows/w/overview", 404)


def test_properties_change_without_a_push(site: Site) -> None:
    """Tags by a path of their own; only the newest properties are kept."""
    site.push(JOB)
    changed = site.post("/workflows/w/properties", {"owner": "ann", "step_concurrency": 3, "unknown": 1})
    assert (changed["owner"], changed["step_concurrency"]) == ("ann", 3)
    reset = site.post("/workflows/w/properties", {"reset_step_concurrency": True})
    assert "step_concurrency" not in reset
    tagged = site.post("/workflows/w/properties/tag", {"name": "gold", "why": "sold"})
    assert tagged["tags"][0]["namespace"] == "PLATFORM"
    assert tagged["tags"][0]["attributes"]["why"] == "sold"
    assert site.get("/workflows/w/properties-snapshot/latest") == tagged
    site.get("/workflows/w/properties-snapshot/17", 404)
    assert site.delete("/workflows/w/properties/tag/gold")["tags"] == []
    site.post("/workflows/w/properties", {"step_concurrency": 0}, 400)


def test_errors_have_two_forms(site: Site) -> None:
    """Maestro's body, and that of RFC 9457 where the caller takes it; nothing else is ever answered."""
    missing = site.get("/workflows/nothing/versions/active", 404)
    assert (missing["status"], missing["code"]) == ("NOT_FOUND", "workflow_missing")
    headers = {"accept": "application/problem+json"}
    answer = site.client.get("/api/v3/workflows/nothing/versions/active", headers=headers)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["type"]) == (404, "urn:calve:error:workflow_missing")
    assert problem["detail"] == missing["message"]
    nothing = site.get("/nothing", 404)
    assert (nothing["code"], nothing["remedy"]) == ("not_found", "Routes: /api/v3/openapi.json")
    page = site.client.get("/workflows/w/instances/1")  # what calve run prints
    assert (page.status_code, page.json()["code"]) == (404, "not_found")
    assert "/api/v3/workflows/w/instances/1" in page.json()["remedy"]
    form = site.client.post("/api/v3/tag-permits", content=b"{}", headers={"content-type": "text/plain"})
    assert (form.status_code, "content-type: application/json" in form.json()["remedy"]) == (400, True)
    path = site.put("/workflows/w/versions/zz/actions/activate", None, 400)
    assert (path["message"].partition(":")[0], path["remedy"]) == ("path.version", "")
    assert site.put("/workflows", {}, 405)["code"] == "method_not_allowed"
    assert site.post("/tag-permits", {"tag": "x"}, 400)["code"] == "request_invalid"
    broken = site.client.post("/api/v3/tag-permits", content="{", headers={"content-type": "application/json"})
    assert broken.status_code == 400
    assert json.loads(broken.text)["status"] == "BAD_REQUEST"


def test_tags_are_limited(site: Site) -> None:
    """Maestro's tag permits."""
    assert site.post("/tag-permits", {"tag": "gold", "max_allowed": 3})["held"] == 0
    assert site.get("/tag-permits/gold")["max_allowed"] == 3
    assert [permit["tag"] for permit in site.get("/tag-permits")] == ["gold"]
    site.delete("/tag-permits/gold")
    site.delete("/tag-permits/gold", 404)


OLDER = """
Workflow:
  id: w
  day: '1'
  old: 1
  limit: 2
  jobs:
    - job: {id: keep, type: NoOp}
    - job: {id: change, type: Sleep, sleep_seconds: 1}
    - foreach:
        id: loop
        loop_params: {n: [1]}
        jobs:
          - job: {id: gone, type: NoOp}
          - job: {id: inner, type: Sleep}
"""


def test_two_versions_are_compared(site: Site) -> None:
    """As text, and by steps and params, those inside loops too."""
    site.push(OLDER)
    newer = OLDER.replace("day: '1'", "day: '2'").replace("  old: 1\n", "  new: 1\n")
    newer = newer.replace("sleep_seconds: 1", "sleep_seconds: 2").replace("id: gone", "id: come")
    site.push(newer.replace("id: keep, type: NoOp", "id: keep, type: NoOp, description: x"))
    found = site.get("/workflows/w/versions/1/diff/latest")
    assert (found["from"]["workflow_version_id"], found["to"]["workflow_version_id"]) == (1, 2)
    steps = {one["name"]: (one["change"], one.get("fields")) for one in found["steps"]}
    assert steps == {
        "keep": ("changed", ["description"]),
        "change": ("changed", ["sleep_seconds"]),
        "come": ("added", None),
        "gone": ("removed", None),
    }
    params = {one["name"]: one["change"] for one in found["params"]}
    assert params == {"day": "changed", "new": "added", "old": "removed"}
    assert found["diff"].startswith("--- w version 1\n+++ w version 2\n@@")
    assert "description: x" in "".join(line for line in found["diff"].splitlines() if line.startswith("+ "))
    same = site.get("/workflows/w/versions/1/diff/1")
    assert (same["diff"], same["steps"], same["params"]) == ("", [], [])
    site.get("/workflows/w/versions/1/diff/3", status=404)
