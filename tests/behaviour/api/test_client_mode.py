"""The same commands, and the client, against a real server: what is asked here happens there."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.engines import DONE, FATAL_ERROR, USER_ERROR, Playground, live
from tests.servers import Site, site_on

from calve.cli import entry
from calve.client import Client
from calve.engine import Outcome, RunStatus, StepContext
from calve.errors import ActionRefused, DefinitionInvalid, ParamError, RequestInvalid, WaitedTooLong, WorkflowMissing
from calve.web import add_pages

TWO = """
Workflow:
  id: w
  n: 1
  jobs:
    - job: {id: a, type: NoOp}
    - job: {id: b, type: Shell, shell: {script: "true"}, retry_policy: {error_retry_limit: 0}}
  dag: sequential
"""
ASKING = "Workflow: {id: asking, jobs: [{job: {id: ask, type: Approval, approval: {message: Go?}}}]}"
LOOP = """
Workflow:
  id: looping
  jobs:
    - foreach: {id: loop, ranges: {i: {from: 0, to: 3}}, jobs: [{job: {id: inside, type: NoOp}}]}
"""


@dataclass
class There:
    """A server, and commands that ask it."""

    site: Site
    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def playground(self) -> Playground:
        """What is behind the server."""
        return self.site.playground

    def calve(self, *arguments: str, code: int = 0) -> str:
        """Run a command; return what it has printed, on both ways."""
        self.capsys.readouterr()
        result = entry.run(list(arguments))
        said = self.capsys.readouterr()
        assert result == code, said.out + said.err
        return said.out + said.err

    def json(self, *arguments: str) -> Any:
        """Run a command for programs."""
        return json.loads(self.calve(*arguments, "--json"))

    def push(self, text: str) -> None:
        """Push a definition by command."""
        (self.folder / "pushed.yaml").write_text(text)
        self.calve("push", "pushed.yaml")


@pytest.fixture
def there(
    playground: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[There]:
    """Serve a playground, and stand in an empty folder whose commands ask that server."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with site_on(playground) as site:
        monkeypatch.setenv("CALVE_URL", site.url)
        yield There(site, folder, capsys)
    assert not (folder / ".calve").exists(), "a command made state here, though a server was named"


@pytest.fixture
def client(there: There) -> Iterator[Client]:
    """Give a client of that server."""
    with Client(there.site.url) as client:
        yield client


def test_a_run_is_submitted_as_in_the_talk(there: There) -> None:
    """It prints how to follow it, and does not wait; a link only where there is a page."""
    there.push(TWO)
    submitted = "Workflow run has been successfully submitted."
    assert there.calve("run", "w", "n=5") == f"{submitted} Follow it with: calve status w 1\n"
    there.playground.settle()
    found = there.json("status", "w", "1")
    assert (found["status"], found["params"]["n"]["evaluated_result"]) == ("SUCCEEDED", 5)
    assert "view_url" not in there.json("run", "w")


def test_a_run_links_to_its_page(
    playground: Playground, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server has pages; ``calve ui`` prints where they begin."""
    monkeypatch.chdir(tmp_path)
    with site_on(playground, extend=add_pages) as site:
        monkeypatch.setenv("CALVE_URL", site.url)
        there = There(site, tmp_path, capsys)
        there.push(TWO)
        assert there.calve("run", "w", "--no-wait").endswith(f"View at {site.url}/workflows/w/instances/1\n")
        assert there.json("run", "w", "--no-wait")["view_url"] == f"{site.url}/workflows/w/instances/2"
        assert there.calve("ui", "--print") == f"{site.url}\n"
        assert there.json("ui") == {"url": site.url}


def test_the_ui_is_not_opened_where_there_is_none(there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without pages, or no server at all, is an error that says what to do."""
    assert "calve up" in there.calve("ui", "--print", code=1)
    monkeypatch.setenv("CALVE_URL", "http://127.0.0.1:9")
    assert "No server with a web UI answers at http://127.0.0.1:9." in there.calve("ui", "--print", code=1)


def test_a_run_is_followed_to_its_end(there: There) -> None:
    """With the lines, the summary and the exit code of a run at home."""
    there.playground.script.parts["b"] = [FATAL_ERROR, DONE]
    there.push(TWO)
    with live(there.playground):
        said = there.calve("run", "w", "--wait", code=1)
        assert "View at" not in said
        assert "b FATALLY_FAILED" in said
        assert "no way" in said
        assert "→ calve restart w 1" in said
        assert "w 1 run 2 SUCCEEDED" in there.calve("restart", "w", "1", "--wait")
        assert there.json("run", "w", "--wait")["status"] == "SUCCEEDED"
        assert "w 1 run 2 SUCCEEDED" in there.calve("status", "w", "1", "--watch")


def test_an_instance_continues_with_the_newest_version(there: There) -> None:
    """What succeeded is kept; the plan is shown here."""
    there.playground.script.parts["b"] = [FATAL_ERROR, DONE]
    there.push(TWO)
    with live(there.playground):
        there.calve("run", "w", "--wait", code=1)
        there.push(TWO.replace('"true"', '"echo fixed"'))
        assert [step["fate"] for step in there.json("restart", "w", "1", "--latest", "--dry-run")["steps"]] == [
            "KEPT",
            "RUNS_AGAIN",
        ]
        said = there.calve("restart", "w", "1", "--latest", "--keep", "a", "--wait")
        assert "  a  kept        SUCCEEDED, kept as asked" in said
        assert "w 1 run 2 SUCCEEDED" in said
        assert there.json("restart", "w", "1", "--latest", "--step", "b", "--no-wait")["workflow_version_id"] == 2


def test_a_file_is_pushed_and_run(there: There) -> None:
    """Its scripts are read here, and travel with the definition."""
    (there.folder / "x.sh").write_text("echo x")
    text = TWO.replace('"true"', '"$S3{x.sh}"')
    (there.folder / "w.yaml").write_text(text)
    assert there.json("push", "w.yaml")["pushed"][0]["workflow_version_id"] == 1
    there.calve("run", "w.yaml")
    version = there.playground.state.version("w", 2)
    assert version is not None
    assert "echo x" in json.dumps(version.definition)


def test_templates_of_the_server_are_known(there: There) -> None:
    """Though the file is read here, where they are not."""
    (there.folder / "w.yaml").write_text("Workflow: {id: w, jobs: [{job: {id: a, type: nap}}]}")
    assert "there is no step type nap" in there.calve("push", "w.yaml", code=1)
    about = {"owner": "ann", "status": "alpha", "support": "us"}
    there.site.post("/job-templates", {**about, "definition": {"job_type": "nap", "step_type": "Sleep"}})
    assert there.calve("push", "w.yaml") == "w version 1\n"
    there.calve("run", "w.yaml")


def test_lists_are_those_of_the_server(there: There) -> None:
    """By workflow and status."""
    assert "calve run WORKFLOW" in there.calve("status")
    there.push(TWO)
    there.push(ASKING)
    for name in ("w", "asking"):
        there.playground.start(name)
    assert [one["workflow_id"] for one in there.json("status")] == ["asking", "w"]
    assert [one["workflow_id"] for one in there.json("instances", "--status", "SUCCEEDED")] == ["w"]
    assert "asking" in there.calve("instances", "asking", "--limit", "1")
    assert "Workflow none does not exist." in there.calve("status", "none", code=1)
    assert "ask" in there.calve("status", "asking", "1")


def test_actions_happen_there(there: There) -> None:
    """Each with the answer it has at home."""
    there.push(ASKING)
    run = there.playground.start("asking")
    assert there.calve("approve", "asking", "1", "ask", "--comment", "yes") == "approve: asking 1\n"
    there.playground.settle()
    assert there.playground.fresh(run).status is RunStatus.SUCCEEDED
    for action, status in (("stop", RunStatus.STOPPED), ("kill", RunStatus.FAILED)):
        run = there.playground.start("asking")
        assert f"{action}: asking" in there.calve(action, "asking", "--reason", "late")
        there.playground.settle()
        assert there.playground.fresh(run).status is status
    run = there.playground.start("asking")
    there.calve("skip", "asking", str(run.instance_id), "ask")
    there.playground.settle()
    assert there.playground.fresh(run).status is RunStatus.SUCCEEDED
    assert "error" in there.calve("stop", "asking", "1", code=1)
    there.calve("stop", "asking")
    there.calve("delete", "asking", "--yes")
    assert there.playground.state.workflow("asking") is None


def test_breakpoints_and_limits_are_set_there(there: There) -> None:
    """And taken away."""
    there.push(TWO)
    there.calve("pause", "w", "a")
    run = there.playground.start("w")
    assert "resume: w 1" in there.calve("resume", "w", "a")
    there.playground.settle()
    assert there.playground.fresh(run).status is RunStatus.SUCCEEDED
    assert "no breakpoint" in there.calve("resume", "w", "a", code=1)
    assert "There is no breakpoint at w." in there.calve("resume", "w", code=1)
    there.calve("pause", "w", "b", "--instance", "2")
    run = there.playground.start("w")
    there.calve("resume", "w", "b", "--instance", "2")
    there.playground.settle()
    assert there.playground.fresh(run).status is RunStatus.SUCCEEDED
    there.calve("permits", "set", "slow", "4")
    assert there.json("permits") == [{"tag": "slow", "max_allowed": 4, "held": 0}]
    there.calve("permits", "delete", "slow")
    assert "has no limit" in there.calve("permits", "delete", "slow", code=1)


def test_steps_inside_of_others_are_reached_by_their_path(there: There) -> None:
    """Their logs, their attempts, and a restart from them."""
    there.push(LOOP)
    there.playground.start("looping")
    said = there.json("logs", "looping", "1", "loop/2/inside")
    assert (said["step_id"], said["log"]) == ("inside", "")
    assert there.json("logs", "looping", "1", "loop/2/inside", "--attempt", "1")["step_attempt_id"] == 1
    assert "has not started" in there.calve("logs", "looping", "1", "none", code=1)
    assert there.json("restart", "looping", "1", "--step", "loop/2/inside")["workflow_run_id"] == 2
    there.playground.settle()
    assert there.json("restart", "looping", "1", "--from-beginning")["workflow_run_id"] == 3
    refused = there.calve("restart", "looping", "1", "--step", "loop", "-p", "x=1", code=1)
    assert "cannot be changed while the instance runs" in refused


def test_signals_are_announced_there(there: There) -> None:
    """And shown with what they did."""
    assert "No signal was announced yet" in there.calve("signal", "list")
    assert there.calve("signal", "announce", "team/day", "day=1", "--payload", "by=me") == "team/day 1\n"
    assert "announced before" in there.calve("signal", "announce", "team/day", "day=1")
    assert there.json("signal", "announce", "team/day", "--request-id", "r")["seq_id"] == 2
    said = there.calve("signal", "show", "team/day", "1")
    assert "payload: by=me" in said
    assert "sent by: a user or program" in said
    assert [one["seq_id"] for one in there.json("signal", "list", "team/day", "--limit", "1")] == [2]
    assert "error" in there.calve("signal", "show", "none", code=1)


def test_versions_are_activated_there(there: There) -> None:
    """And none is, if so asked."""
    there.push(TWO)
    there.push(TWO)
    assert there.calve("activate", "w", "--version", "1") == "w: version 1 is active\n"
    assert there.calve("deactivate", "w") == "w: no version is active\n"
    record = there.playground.state.workflow("w")
    assert record is not None
    assert record.active_version is None


def test_commands_that_need_the_project_report_it(there: There) -> None:
    """Rather than work on an empty lake here."""
    assert "works on the project's own files" in there.calve("sql", "SELECT 1", code=1)


def test_a_server_that_is_not_there_is_said(there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its address."""
    monkeypatch.setenv("CALVE_URL", "http://127.0.0.1:9")
    assert "http://127.0.0.1:9 does not answer" in there.calve("status", code=1)


def test_the_client_pushes_starts_and_waits(there: There, client: Client) -> None:
    """And reads all that there is to read."""
    client.push(TWO)
    with live(there.playground):
        started = client.start("w", {"n": 2}, request_id="r")
        assert client.start("w", request_id="r")["status"] == "DUPLICATED"
        ended = client.wait("w", started["workflow_instance_id"], timeout=60)
        assert ended["status"] == "SUCCEEDED"
        batch = client.start_batch("w", [{"n": 3}, {"n": 4}])
        assert [one["workflow_instance_id"] for one in batch] == [2, 3]
        for one in batch:
            client.wait("w", one["workflow_instance_id"], timeout=60)
    assert client.version("w")["workflow"]["id"] == "w"
    assert [one["workflow_id"] for one in client.workflows()] == ["w"]
    assert [one["workflow_instance_id"] for one in client.instances("w")] == [3, 2, 1]
    assert len(client.runs("w", 1)) == 1
    assert [one["step_id"] for one in client.steps("w", 1)] == ["a", "b"]
    assert client.step("w", 1, "b")["status"] == "SUCCEEDED"
    client.deactivate("w")
    with pytest.raises(WorkflowMissing):
        client.start("w")
    client.activate("w", 1)
    assert client.start("w")["status"] == "CREATED"


def test_events_come_in_order_and_continue_where_they_were_left(there: There, client: Client) -> None:
    """Whoever keeps the number of the last one misses none and sees none twice."""
    client.push(TWO)
    for _ in range(2):
        there.playground.start("w")
    all_of_it = client.past_events("w", 1) + client.past_events("w", 2)
    seen = [event["seq"] for event in islice(client.events(after=0), 5)]
    more = [event["seq"] for event in islice(client.events(after=seen[-1]), len(all_of_it) - 5)]
    assert [*seen, *more] == [event["seq"] for event in all_of_it]


def test_errors_are_those_of_the_engine(there: There, client: Client) -> None:
    """By class."""
    client.push(TWO)
    client.push(ASKING)
    calls: list[tuple[type[Exception], Callable[[], Any]]] = [
        (WorkflowMissing, lambda: client.start("none")),
        (WorkflowMissing, lambda: client.wait("w", 7)),
        (ParamError, lambda: client.start("w", {"n": "text"})),
        (DefinitionInvalid, lambda: client.push("Workflow: {id: w, jobs: [{job: {id: a, type: Nope}}]}")),
    ]
    for kind, call in calls:
        with pytest.raises(kind):
            call()
    there.playground.start("w")
    with pytest.raises(ActionRefused):
        client.stop("w", 1)
    there.playground.start("asking")
    with pytest.raises(WaitedTooLong):
        client.wait("asking", 1, timeout=0.1)


def test_a_param_that_nothing_knows_is_refused_there(there: There, client: Client) -> None:
    """By the command line and by the client, and nothing is started."""
    there.site.push(TWO)
    assert "Workflow w has no param m." in there.calve("run", "w", "m=2", code=1)
    for ask in (lambda: client.start("w", {"m": 2}), lambda: client.start_batch("w", [{}, {"m": 2}])):
        with pytest.raises(RequestInvalid, match="Workflow w has no param m") as refused:
            ask()
        assert refused.value.remedy == "It declares n."
    assert list(client.instances("w")) == []
    client.start("w", {"n": 2})
    there.playground.settle()
    assert "has no param m." in there.calve("restart", "w", "1", "--from-beginning", "-p", "m=2", code=1)
    assert "has no param shel." in there.calve("restart", "w", "1", "--step", "b", "--step-param", "b.shel=2", code=1)
    with pytest.raises(RequestInvalid, match="Workflow w has no param m"):
        client.restart("w", 1, restart_policy="RESTART_FROM_BEGINNING", run_params={"m": 1})


def test_a_failing_iteration_is_named_by_a_server_too(there: There) -> None:
    """With its cause, and a log that can be read by the command that is printed."""

    def act(context: StepContext) -> Outcome:
        context.log("loading")
        return FATAL_ERROR if context.place.iterations[-1].number == 2 else DONE

    there.playground.script.parts["inside"] = act
    there.push(LOOP.replace("NoOp", "Sleep"))
    with live(there.playground):
        said = there.calve("run", "looping", "--wait", code=1)
    where = "loop/2/inside FATALLY_FAILED: no way\n"
    assert f"{where}  | loading\n  → calve logs looping 1 loop/2/inside\n" in said
    assert f"{where}  → calve logs looping 1 loop/2/inside\n" in there.calve("status", "looping", "1")
    assert there.calve("logs", "looping", "1", "loop/2/inside") == "loading\n"
    (failure,) = there.json("status", "looping", "1")["failures"]
    assert httpx.get(f"{there.site.url}{failure['links']['log']}").text == "loading\n"


def test_approvals_of_a_server_are_listed_and_answered(there: There) -> None:
    """By the commands that are printed with them."""
    there.push(ASKING)
    there.calve("run", "asking")
    there.playground.settle()
    said = there.calve("approvals")
    assert "asking 1 ask asks, since" in said
    assert "  Go?\n" in said
    assert "ask asks: Go?" in there.calve("status", "asking", "1")
    command = next(line for line in said.splitlines() if "calve approve" in line)
    there.calve(*command.partition("calve ")[2].split())
    there.playground.settle()
    assert there.json("approvals", "asking") == []
    assert "No step waits for approval" in there.calve("approvals")
    there.calve("approvals", "nope", code=1)


def test_a_retry_is_reported_by_a_server(there: There) -> None:
    """With its cause and its time."""
    there.playground.script.parts["b"] = USER_ERROR
    there.push(TWO.replace("error_retry_limit: 0", "error_retry_limit: 2"))
    there.calve("run", "w")
    there.playground.settle()
    said = there.calve("status", "w", "1")
    assert "b USER_FAILED: wrong input\n  That was attempt 1 of 3. The next attempt is at " in said
