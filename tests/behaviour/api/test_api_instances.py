"""Instances and steps through REST, on a real server."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from tests.engines import BUSY, DONE, USER_ERROR, Playground, live
from tests.servers import Site, site_on

from calve.engine import Address, Changes, Outcome, StepContext

JOB = "Workflow:\n  id: w\n  day: '1'\n  run_strategy: parallel\n  jobs:\n    - job: {id: job, type: Sleep, limit: 1}\n"
LOOP = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {day: ['1', '2']}
        jobs:
          - job: {id: inner, type: Sleep}
"""


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server on an empty state database."""
    with site_on(playground) as site:
        yield site


def test_an_instance_is_started_and_seen(site: Site) -> None:
    """A start answers with the instance, which can be followed to its end."""
    site.push(JOB)
    started = site.start(run_params={"day": {"type": "STRING", "value": "2"}, "more": [1, 2]}, runtime_tags=["t"])
    assert (started["status"], started["workflow_instance_id"]) == ("CREATED", 1)
    site.playground.settle()
    seen = site.get("/workflows/w/instances/1")
    assert (seen["status"], seen["params"]["day"]["evaluated_result"]) == ("SUCCEEDED", "2")
    assert seen["params"]["more"]["evaluated_result"] == [1, 2]
    assert seen["initiator"] == {"type": "MANUAL", "user": "local", "depth": 0}
    assert seen == site.get("/workflows/w/instances/1/runs/1") == site.get("/workflows/w/instances/1/runs/latest")
    step = site.get("/workflows/w/instances/1/steps/job")
    assert step["status"] == "SUCCEEDED"
    assert site.get("/workflows/w/instances/1/steps") == site.get("/workflows/w/instances/1/runs/1/steps")
    assert site.get("/workflows/w/instances/1/runs/1/steps/job/attempts/1") == step
    assert site.get("/workflows/w/instances/1/runs/latest/steps/job/attempts/latest") == step
    site.get("/workflows/w/instances/1/runs/1/steps/job/attempts/2", 404)
    site.get("/workflows/w/instances/1/steps/nothing", 404)
    site.get("/workflows/w/instances/2", 404)
    site.start(run_params={"day": [1]}, status=400)


def test_a_request_starts_one_instance_however_often_it_comes(site: Site) -> None:
    """B.2-17: fifty clients with one request id get one instance, all of them HTTP 200."""
    site.push(JOB)
    gate = threading.Barrier(10)

    def ask(number: int) -> Any:
        if number < 10:
            gate.wait()
        return site.start(request_id="once")

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(ask, range(50)))
    assert {answer["workflow_instance_id"] for answer in answers} == {1}
    assert sorted({answer["status"] for answer in answers}) == ["CREATED", "DUPLICATED"]
    assert [answer["status"] for answer in answers].count("CREATED") == 1
    site.playground.settle()


def test_instances_start_together(site: Site) -> None:
    """At most ten, all or none."""
    site.push(JOB)
    started = site.post("/workflows/w/actions/start-batch", [{"request_id": "a"}, {"run_params": {"day": "2"}}])
    assert [one["workflow_instance_id"] for one in started["elements"]] == [1, 2]
    site.post("/workflows/w/actions/start-batch", [{}, {"run_params": {"day": [1]}}], 400)
    site.post("/workflows/w/actions/start-batch", [{}] * 11, 400)
    assert len(site.get("/workflows/w/instances")["elements"]) == 2
    site.playground.settle()


def test_instances_are_listed(site: Site) -> None:
    """Of a workflow by number, in both directions; of all workflows by age; by status."""
    site.push(JOB)
    for _ in range(3):
        site.start()
    site.playground.settle()
    site.push(JOB.replace("id: w", "id: v"))
    site.start("v")
    assert _numbers(site.get("/workflows/w/instances?first=2")) == [3, 2]
    assert _numbers(site.get("/workflows/w/instances?first=2&cursor=2")) == [1]
    assert _numbers(site.get("/workflows/w/instances?last=2")) == [2, 1]
    assert _numbers(site.get("/workflows/w/instances?last=2&cursor=1")) == [3, 2]
    assert _numbers(site.get("/workflows/w/instances?status=FAILED")) == []
    first = site.get("/instances?limit=3")
    second = site.get("/instances", params={"limit": 3, "cursor": first["page_info"]["end_cursor"]})
    found = [(one["workflow_id"], one["workflow_instance_id"]) for one in first["elements"] + second["elements"]]
    assert sorted(found) == [("v", 1), ("w", 1), ("w", 2), ("w", 3)]
    assert second["page_info"]["has_next_page"] is False
    assert _numbers(site.get("/instances?status=SUCCEEDED&status=FAILED&workflow_id=w")) == [3, 2, 1]
    site.get("/instances?cursor=nonsense", 400)
    site.get("/instances?status=NONSENSE", 400)
    site.playground.settle()


def _numbers(page: Any) -> list[int]:
    return [one["workflow_instance_id"] for one in page["elements"]]


def test_what_can_be_done_is_reported(site: Site) -> None:
    """Maestro's action maps."""
    assert site.get("/workflows/instances/action-map")["FAILED"] == ["RESTART", "UNBLOCK"]
    assert "RESTART" in site.get("/workflows/steps/instances/action-map")["SUCCEEDED"]


@pytest.mark.parametrize(("action", "ends"), [("stop", "STOPPED"), ("kill", "FAILED")])
def test_instances_are_stopped_and_killed(site: Site, action: str, ends: str) -> None:
    """One of them, a run of it, or all of a workflow; what is over refuses."""
    site.push(JOB)
    site.playground.script.parts["job"] = BUSY
    for _ in range(3):
        site.start()
    site.playground.settle()
    asked = site.put(f"/workflows/w/instances/1/actions/{action}", {"reason": "wrong"})
    assert (asked["completed"], asked["workflow_instance_status"]) == (False, "IN_PROGRESS")
    site.put(f"/workflows/w/instances/2/runs/1/actions/{action}")
    assert "[3]" in site.ask("PUT", f"/workflows/w/actions/{action}", 202)["message"]
    site.playground.settle()
    assert {one["status"] for one in site.get("/workflows/w/instances")["elements"]} == {ends}
    refused = site.put(f"/workflows/w/instances/1/actions/{action}", status=400)
    assert refused["code"] == "action_refused"


def test_a_failed_instance_is_unblocked(site: Site) -> None:
    """STRICT_SEQUENTIAL waits for that."""
    site.push(JOB.replace("parallel", "strict_sequential"))
    site.playground.script.parts["job"] = USER_ERROR
    for _ in range(3):
        site.start()
    for instance in (1, 2, 3):
        site.playground.settle()
        assert site.get(f"/workflows/w/instances/{instance}")["status"] == "IN_PROGRESS"
        site.put(f"/workflows/w/instances/{instance}/actions/kill")
        site.playground.settle()
        path = ("/instances/1", "/instances/2/runs/1", "")[instance - 1]
        site.put(f"/workflows/w{path}/actions/unblock")


def test_an_instance_is_restarted(site: Site) -> None:
    """From what is incomplete, from the beginning, or from a step, with other params."""
    site.push(JOB)
    site.start()
    site.playground.settle()
    site.post("/workflows/w/instances/1/actions/restart", {"restart_policy": "RESTART_FROM_INCOMPLETE"}, 400)
    again = site.post("/workflows/w/instances/1/actions/restart", {"restart_policy": "RESTART_FROM_BEGINNING"})
    assert again["workflow_run_id"] == 2
    site.playground.settle()
    body = {"step_run_params": {"limit": {"type": "LONG", "value": 7}}}
    third = site.post("/workflows/w/instances/1/steps/job/actions/restart", body)
    assert third["workflow_run_id"] == 3
    site.playground.settle()
    assert site.get("/workflows/w/instances/1/steps/job")["params"]["limit"]["evaluated_result"] == 7
    runs = site.get("/workflows/w/instances/1/runs?first=2")
    assert [run["workflow_run_id"] for run in runs["elements"]] == [3, 2]


def test_an_instance_continues_with_the_newest_version(site: Site) -> None:
    """What would happen can be asked first, of an instance or a step of it."""
    site.push(JOB)
    site.start()
    site.playground.settle()
    asked = {"latest": True}
    plan = site.post("/workflows/w/instances/1/actions/plan-restart", asked)
    assert plan["refusal"].startswith("All steps of w instance 1 are complete, and version 1 changes none of them.")
    site.push(JOB.replace("limit: 1", "limit: 2"))
    plan = site.post("/workflows/w/instances/1/actions/plan-restart", asked)
    assert plan == {
        "workflow_version_id": 1,
        "restart_version_id": 2,
        "steps": [{"step_id": "job", "fate": "RUNS_AGAIN", "reason": "changed: limit", "obstacle": ""}],
        "refusal": "",
        "repeats": [],
    }
    kept = site.post("/workflows/w/instances/1/actions/plan-restart", {**asked, "keep": ["job"]})
    assert kept["steps"][0]["fate"] == "KEPT"
    of_step = site.post("/workflows/w/instances/1/steps/job/actions/plan-restart", asked)
    assert of_step["steps"] == plan["steps"]
    again = site.post("/workflows/w/instances/1/actions/restart", asked)
    assert (again["workflow_run_id"], again["workflow_version_id"]) == (2, 2)
    site.playground.settle()
    third = site.post("/workflows/w/instances/1/steps/job/actions/restart", asked)
    assert (third["workflow_run_id"], third["workflow_version_id"]) == (3, 2)


def test_steps_are_stopped_skipped_and_bypassed(site: Site) -> None:
    """With blocking, once it has taken effect."""
    site.push(JOB)
    site.playground.script.parts["job"] = BUSY
    for _ in range(2):
        site.start()
    site.playground.settle()
    late = site.put("/workflows/w/instances/1/steps/job/actions/stop?blocking=false", {"reason": "late"})
    assert late["step_runtime_state"]["status"] == "RUNNING"
    assert late["timeline_event"]["reason"] == "late"
    site.playground.settle()
    assert site.get("/workflows/w/instances/1/steps/job")["status"] == "STOPPED"
    site.put("/workflows/w/instances/2/steps/job/actions/bypass?blocking=false", status=400)
    with live(site.playground):
        killed = site.put("/workflows/w/instances/2/steps/job/actions/kill")
        assert killed["step_runtime_state"]["status"] == "FATALLY_FAILED"
    skipped = site.put("/workflows/w/instances/1/steps/job/actions/skip?blocking=false")
    assert skipped["workflow_run_id"] == 2
    site.playground.settle()
    assert site.get("/workflows/w/instances/1/steps/job")["status"] == "SKIPPED"


def test_a_wait_for_an_effect_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An action that nobody carries out in time is answered as pending."""
    monkeypatch.setattr("calve.operations.steps.wait_for_effect.__defaults__", (0.1,))
    site.push(JOB)
    site.playground.script.parts["job"] = BUSY
    site.start()
    site.playground.settle()
    assert site.put("/workflows/w/instances/1/steps/job/actions/stop", status=408)["code"] == "action_pending"
    site.playground.settle()


def test_an_approval_is_given_or_refused(site: Site) -> None:
    """By whoever asks, with a comment."""
    site.push(JOB.replace("type: Sleep, limit: 1", "type: Approval, approval: {message: 'May I?'}"))
    for _ in range(2):
        site.start()
    site.playground.settle()
    site.put("/workflows/w/instances/1/steps/job/actions/approve?blocking=false", {"comment": "yes"})
    site.put("/workflows/w/instances/2/steps/job/actions/reject?blocking=false", {"comment": "no"})
    site.playground.settle()
    assert site.get("/workflows/w/instances/1")["status"] == "SUCCEEDED"
    assert site.get("/workflows/w/instances/2")["status"] == "FAILED"


def test_steps_inside_of_loops_have_paths(site: Site) -> None:
    """Also under the name of the loop's iterations, as Maestro has it."""
    site.push(LOOP)
    site.start()
    site.playground.settle()
    inner = site.get("/workflows/w/instances/1/steps/loop/2/inner")
    assert inner["status"] == "SUCCEEDED"
    assert site.client.get("/api/v3/workflows/w/instances/1/steps/loop%2F2%2Finner").json() == inner
    nodes = [{"workflow_id": "w", "instance_id": 1}, {"instance_id": 2, "step_id": "inner"}]
    name = site.client.request("GET", "/api/v3/workflows/instances/inline-workflow-id", json=nodes).text
    assert name == inner["workflow_id"]
    way = site.get(f"/workflows/{name}/instances/2/inline-path")
    assert [(node["workflow_id"], node["instance_id"]) for node in way] == [("w", 1), (name, 2)]
    assert way[0]["step_id"] == "loop"
    assert site.get(f"/workflows/{name}/instances/2")["status"] == "SUCCEEDED"
    site.get("/workflows/w/instances/1/inline-path", 400)
    site.get("/workflows/w/instances/1/steps/loop/9/inner", 404)
    site.get("/workflows/w/instances/1/steps/loop/%2E%2E/inner", 400)


def test_breakpoints_pause_attempts(site: Site) -> None:
    """Set, listed, taken away; one attempt or all go on."""
    site.push(JOB)
    assert site.post("/workflows/steps/breakpoints", {"workflow_id": "w", "step_id": "job"})["step_id"] == "job"
    for _ in range(2):
        site.start()
    site.playground.settle()
    where = {"workflowId": "w", "stepId": "job"}
    assert len(site.get("/workflows/steps/breakpoints", params=where)) == 1
    paused = site.get("/workflows/steps/breakpoints/paused-step-attempts", params=where)
    assert [one["workflow_instance_id"] for one in paused] == [1, 2]
    path = "/workflows/steps/breakpoints/w/instances/1/runs/1/steps/job/attempts/1/actions/resume"
    asked = site.put(f"{path}?blocking=false")
    assert (asked["step_id"], asked["step_attempt_id"], asked["step_runtime_state"]["status"]) == ("job", 1, "PAUSED")
    site.playground.settle()
    assert site.get("/workflows/w/instances/1")["status"] == "SUCCEEDED"
    gone = site.delete("/workflows/steps/breakpoints", params=where)
    assert "[1]" in gone["timeline_event"]["message"]
    site.playground.settle()
    assert site.get("/workflows/w/instances/2")["status"] == "SUCCEEDED"
    site.delete("/workflows/steps/breakpoints", params=where | {"resume": "false"})
    site.post("/workflows/steps/breakpoints", {"workflow_id": "w", "step_id": "nothing"}, 404)


def test_a_paused_attempt_that_continues_is_answered_as_it_stands_then(site: Site) -> None:
    """Once it has left its pause; one that is not paused is not resumed."""
    site.push(JOB)
    site.post("/workflows/steps/breakpoints", {"workflow_id": "w", "step_id": "job"})
    site.playground.script.parts["job"] = BUSY
    site.start()
    site.playground.settle()
    path = "/workflows/steps/breakpoints/w/instances/1/runs/1/steps/job/attempts/{}/actions/resume"
    with live(site.playground):
        resumed = site.put(path.format(1))
    assert resumed["step_runtime_state"]["status"] != "PAUSED"
    assert resumed["timeline_event"]["action"] == "RESUME"
    site.playground.settle()
    site.put(path.format(1), status=400)
    site.put(path.format(2), status=404)


def test_the_work_of_a_step_hands_over_its_outputs(site: Site) -> None:
    """While it runs, by the attempt's id."""
    site.push(JOB)
    site.playground.script.parts["job"] = BUSY
    site.start()
    site.playground.settle()
    uuid = site.get("/workflows/w/instances/1/steps/job")["step_instance_uuid"]
    site.put("/output-data", {"step_instance_uuid": uuid, "artifacts": {"job": {"id": 7}}})
    assert site.get("/workflows/w/instances/1/steps/job")["artifacts"]["job"] == {"id": 7}
    site.put("/output-data", {"step_instance_uuid": "nothing"}, 404)
    site.put("/workflows/w/instances/1/actions/kill")
    site.playground.settle()
    site.put("/output-data", {"step_instance_uuid": uuid, "artifacts": {}}, 400)


def test_logs_are_read_whole_or_followed(site: Site) -> None:
    """A followed log ends when the attempt does."""
    site.push(JOB)
    begun = threading.Event()
    free = threading.Event()

    def write(context: StepContext) -> Outcome:
        context.log("one\n")
        begun.set()
        free.wait(30)
        context.log("two\n")
        return DONE

    site.playground.script.parts["job"] = write
    site.start()
    path = "/api/v3/workflows/w/instances/1/steps/job/logs"
    with live(site.playground):
        assert begun.wait(30)
        with site.client.stream("GET", path, params={"follow": True}) as answer:
            free.set()
            assert "".join(answer.iter_text()) == "one\ntwo\n"
    assert site.client.get(path, params={"attempt": 1}).text == "one\ntwo\n"
    site.get("/workflows/w/instances/1/steps/job/logs?attempt=2", 404)


@pytest.mark.parametrize("name", ["run_parms", "runParams", "Run_Params"])
def test_a_misspelt_field_starts_nothing(site: Site, name: str) -> None:
    """What was meant would be missing; fields of Maestro's that we have no use for are let pass."""
    site.push(JOB)
    path = "/workflows/w/versions/active/actions/start"
    refused = site.post(path, {name: {"day": "2"}}, status=400)
    assert f"there is no {name!r}: did you mean 'run_params'?" in refused["message"]
    assert site.get("/workflows/w/instances")["elements"] == []
    site.post(path, {"correlation_id": "c", "request_time": 1, "run_params": {"day": "2"}})


def test_params_that_nothing_knows_are_warned_of(site: Site) -> None:
    """As Maestro's clients expect, the instance starts; a client that wants it can have them refused."""
    site.push(JOB)
    started = site.start(run_params={"dya": "2", "day": "3"})
    assert started["warnings"] == [
        {
            "code": "unknown_param",
            "message": "Workflow w has no param dya.",
            "hint": "Did you mean day?",
            "param": "dya",
        }
    ]
    assert "warnings" not in site.start(run_params={"day": "3"})
    refused = site.start(run_params={"dya": "2"}, refuse_unknown_params=True, status=400)
    assert refused["code"] == "request_invalid"
    batch = [{"run_params": {"dya": "2"}}, {}]
    answers = site.post("/workflows/w/actions/start-batch", batch)["elements"]
    assert [len(answer.get("warnings", ())) for answer in answers] == [1, 0]
    site.playground.settle()
    again = site.post("/workflows/w/instances/1/steps/job/actions/restart", {"step_run_params": {"lmit": 2}})
    assert again["warnings"][0]["message"] == "Step job of workflow w has no param lmit."
    site.playground.settle()
    strict = {"restart_policy": "RESTART_FROM_BEGINNING", "run_params": {"dya": 1}, "refuse_unknown_params": True}
    site.post("/workflows/w/instances/2/actions/restart", strict, 400)


NOT_TEXT = (r"\ud83d", r"\udc00", r"\u0000", r"\uD83D\ud83d")


@pytest.mark.parametrize("escape", NOT_TEXT)
def test_what_is_not_text_is_refused_with_its_place(site: Site, escape: str) -> None:
    """Wherever a body holds it: in a value or a key, of a start, an action, a signal, a permit, a tag, a password."""
    site.push(JOB)
    site.playground.script.parts["job"] = BUSY
    site.start()
    site.playground.settle()
    v3 = "/api/v3"
    doors = [
        ("POST", f"{v3}/workflows/w/versions/active/actions/start", '{"run_params": {"day": "%s"}}', "run_params.day"),
        ("POST", f"{v3}/workflows/w/versions/active/actions/start", '{"run_params": {"%s": 1}}', "run_params"),
        (
            "POST",
            f"{v3}/workflows/w/versions/active/actions/start",
            '{"run_params": {"day": {"type": "STRING", "value": "%s"}}}',
            "run_params.day.value",
        ),
        ("POST", f"{v3}/workflows/w/versions/active/actions/start", '{"runtime_tags": ["%s"]}', "runtime_tags[0]"),
        ("POST", f"{v3}/workflows/w/actions/start-batch", '[{"run_params": {"day": ["%s"]}}]', "[0].run_params.day[0]"),
        ("PUT", f"{v3}/workflows/w/instances/1/actions/stop", '{"reason": "%s"}', "reason"),
        ("PUT", f"{v3}/workflows/w/instances/1/steps/job/actions/approve", '{"comment": "%s"}', "comment"),
        ("POST", f"{v3}/signals", '{"name": "s", "params": {"a": "%s"}}', "params.a"),
        ("POST", f"{v3}/signals", '{"name": "s", "payload": {"a": "%s"}}', "payload.a"),
        ("POST", "/graphql", '{"query": "{ workflows { items { id } } }", "variables": {"a": "%s"}}', "variables.a"),
    ]
    for method, place, body, where in doors:
        answer = site.client.request(method, place, content=body % escape, headers={"content-type": "application/json"})
        assert answer.status_code == 400, (place, body, answer.text)
        assert f"{where} holds \\u" in answer.text.replace("\\\\", "\\"), answer.text
    raw = b'{"run_params": {"day": "\xed\xa0\xbd"}}'
    place = f"{v3}/workflows/w/versions/active/actions/start"
    assert site.client.post(place, content=raw, headers={"content-type": "application/json"}).status_code == 400
    assert len(site.get("/workflows/w/instances")["elements"]) == 1
    site.playground.engine.stop_all("w")
    site.playground.settle()


def test_paths_and_queries_hold_text(site: Site) -> None:
    """A NUL there is refused on every database."""
    for place in (
        "/workflows?search=%00",
        "/workflows/%00/overview",
        "/instances?workflow_id=%00",
        "/signals?name=%00",
    ):
        assert site.client.get(f"/api/v3{place}").status_code in {400, 404}, place


def test_what_is_stored_and_not_text_is_still_shown(site: Site) -> None:
    """Instances, their steps, events: the answer is JSON that escapes it."""
    site.push(JOB)
    site.start()
    site.playground.settle()
    run = site.playground.state.instances(workflow_id="w")[0]
    bad = {**run.params, "day": {**run.params["day"], "result": "\ud83d", "value": "\ud83d"}}
    site.playground.state.commit(Changes(runs=[replace(run, params=bad)]))
    answer = site.client.get("/api/v3/workflows/w/instances/1")
    assert answer.status_code == 200
    assert b'"evaluated_result":"\\ud83d"' in answer.content
    query = '{ workflow(id: "w") { instances { items { params } } } }'
    answer = site.client.post("/graphql", json={"query": query})
    assert answer.status_code == 200, answer.text


ASKING = """
Workflow:
  id: {}
  run_strategy: parallel
  jobs: [{{job: {{id: ok, type: Approval, approval: {{message: Go?, approvers: [ann]}}}}}}]
"""


def test_open_approvals_are_listed_in_pages(site: Site) -> None:
    """With the question and where to answer it; one that is answered is listed no more."""
    site.push(ASKING.format("w"))
    site.push(ASKING.format("other"))
    for workflow_id in ("w", "w", "other"):
        site.start(workflow_id)
    site.playground.settle()
    first = site.get("/approvals?limit=2")
    rest = site.get(f"/approvals?cursor={first['page_info']['end_cursor']}")
    found = [*first["elements"], *rest["elements"]]
    assert (first["page_info"]["has_next_page"], rest["page_info"]["has_next_page"]) == (True, False)
    assert [(one["workflow_id"], one["workflow_instance_id"]) for one in found] == [("w", 1), ("w", 2), ("other", 1)]
    assert (found[0]["path"], found[0]["question"], found[0]["approvers"]) == ("ok", "Go?", ["ann"])
    (one,) = site.get("/approvals?workflow_id=other")["elements"]
    link = one["links"]["reject"].removeprefix("/api/v3")
    site.put(f"{link}?blocking=false", headers={"user": "ann"}, status=400)
    site.playground.engine.reject(Address("other", 1, path=("ok",)), by="ann")
    site.playground.settle()
    assert site.get("/approvals?workflow_id=other")["elements"] == []
    site.get("/approvals?last=2", 400)
    site.get("/approvals?cursor=%00", 400)


def test_an_instance_names_what_failed_and_what_waits(site: Site) -> None:
    """In the instance, in its runs, and in the step itself."""

    def act(context: StepContext) -> Outcome:
        return USER_ERROR if context.place.iterations[-1].number == 2 else DONE

    site.playground.script.parts["inner"] = act
    site.push(LOOP)
    site.start()
    site.playground.settle()
    (wait,) = site.get("/workflows/w/instances/1")["waiting"]
    assert (wait["path"], wait["reason"], wait["message"]) == ("loop/2/inner", "RETRY", "wrong input")
    assert (wait["step_attempt_id"], wait["max_attempts"]) == (1, 3)
    step = site.get("/workflows/w/instances/1/steps/loop/2/inner")
    assert step["waiting"]["next_attempt_time"] == wait["next_attempt_time"] == step["next_attempt_time"]
    for _ in range(2):
        site.playground.advance(3_600)
    found = site.get("/workflows/w/instances/1/runs/1")
    assert [(one["path"], one["message"]) for one in found["failures"]] == [("loop/2/inner", "wrong input")]
    assert found["waiting"] == []
