"""Maestro's own Python client, ``maestro-sdk``, against a real server with a real worker: every method and command."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import maestro  # type: ignore[import-untyped]
import pytest
import yaml
from maestro import Foreach, Job, MaestroClient, Subworkflow, While, Workflow
from tests.access_setup import AccessSetup
from tests.engines import BUSY, Playground, live, wait_for
from tests.servers import Site, site_on

from calve.api.access import guarded
from calve.store import Store

SAID_BY_CLI = re.compile(r"^\[\d\d:\d\d:\d\d\]: ", re.MULTILINE)


@pytest.fixture
def site(playground: Playground, store: Store) -> Iterator[Site]:
    """Give a server on this machine, where nobody has to sign in, and a worker beside it."""
    entrance = AccessSetup(store.access).control(required=False)
    with site_on(playground, **guarded(entrance)) as site, live(playground):
        yield site


@pytest.fixture
def client(site: Site) -> MaestroClient:
    """Give Maestro's client of that server."""
    return MaestroClient(base_url=site.url, user="tester")


def described() -> Any:
    """Return a workflow with all that Maestro's Python DSL can say of one."""
    return (
        Workflow(id="sample")
        .name("Sample")
        .description("All that there is.")
        .owner("tester")
        .run_strategy("parallel")
        .concurrency(3)
        .timeout("1h")
        .criticality("high")
        .tags("gold")
        .tag("daily")
        .param("text", "a")
        .param("number", 5)
        .param("share", 0.5)
        .param("is_on", True)
        .param("words", ["a", "b"])
        .param("numbers", [1, 2])
        .param("shares", [0.5])
        .param("switches", [True, False])
        .param("nothing", [])
        .param("pairs", {"a": "b"})
        .param("mixed", {"a": "b", "n": 1})
        .param("few<array<double>>", [1])
        .param("changing<long>(mutable)", 1)
        .param_expr("said", "text + number")
        .param_expr("sum<long>", "number + 1")
        .job(
            Job(id="first", type="NoOp")
            .name("First")
            .description("Begins.")
            .failure_mode("ignore_failure")
            .tag("bronze")
            .timeout("10 min")
            .param("own", 1)
            .param_expr("own_sum<long>", "own + sum")
            .transition("IF number > 3 THEN child", "OTHERWISE never")
        )
        .job(Job(id="never", type="NoOp"))
        .job(
            Subworkflow(id="child")
            .workflow_id("sample.child")
            .sync(sync=True)
            .explicit_params(explicit_params=True)
            .param("given", "${text}")
            .transition("each")
        )
        .job(
            Foreach(id="each")
            .concurrency(2)
            .loop_param("i", [1, 2])
            .loop_param_expr("k<array<long>>", "Util.intsBetween(0, 2, 1)")
            .jobs(Job(id="one", type="NoOp"), Job(id="two", type="NoOp"))
            .dag("sequential")
            .transition("again")
        )
        .job(
            While(id="again")
            .condition("left > 0")
            .loop_param("left", 2)
            .job(Job(id="less", type="NoOp").param_expr("left<long>", "left - 1"))
            .dag({"less": []})
        )
    )


def child() -> Any:
    """Return the workflow that the other one starts."""
    return Workflow(id="sample.child").owner("tester").param("given", "").job(Job(id="inner", type="NoOp"))


def steps_of(wf: Any, *jobs: Any) -> str:
    """Return a small workflow as YAML."""
    return str(wf.owner("tester").jobs(*jobs).to_yaml())


def finished(client: MaestroClient, workflow_id: str, instance_id: int = 1) -> Any:
    """Wait until an instance is over, as the client sees it; return it."""
    ends = {"SUCCEEDED", "FAILED", "STOPPED"}
    wait_for(lambda: client.get_instance(workflow_id, instance_id)["status"] in ends, 60)
    return client.get_instance(workflow_id, instance_id)


def values(params: Any, *names: str) -> dict[str, Any]:
    """Return what params were evaluated to."""
    return {name: params[name]["evaluated_result"] for name in names}


def test_what_its_dsl_says_is_kept_and_runs(client: MaestroClient, tmp_path: Path) -> None:
    """Checked, pushed from a file, started, and read back: each kind of param, job and transition means the same."""
    assert client.push_yaml(child().to_yaml())["metadata"]["version_author"] == "tester"
    file = tmp_path / "sample.yaml"
    described().to_yaml(file)
    assert client.validate(file)["message"] == "the workflow definition is valid."
    pushed = client.push(file)
    version = client.get_workflow("sample")
    assert pushed == {**version, "workflow_definition": version}
    assert pushed["properties_snapshot"]["run_strategy"] == {"rule": "PARALLEL", "workflow_concurrency": 3}
    kinds = {name: param["type"] for name, param in pushed["workflow"]["params"].items()}
    assert kinds == {
        "text": "STRING",
        "number": "LONG",
        "share": "DOUBLE",
        "is_on": "BOOLEAN",
        "words": "STRING_ARRAY",
        "numbers": "LONG_ARRAY",
        "shares": "DOUBLE_ARRAY",
        "switches": "BOOLEAN_ARRAY",
        "nothing": "STRING_ARRAY",
        "pairs": "STRING_MAP",
        "mixed": "MAP",
        "few": "DOUBLE_ARRAY",
        "changing": "LONG",
        "said": "STRING",
        "sum": "LONG",
    }
    started = client.start("sample", run_params={"text": {"value": "z", "type": "STRING"}})
    assert (started["workflow_instance_id"], started["status"]) == (1, "CREATED")
    done = finished(client, "sample")
    assert done["status"] == "SUCCEEDED"
    assert values(done["params"], "said", "sum", "few") == {"said": "z5", "sum": 6, "few": [1.0]}
    assert done["initiator"] == {"type": "MANUAL", "user": "tester", "depth": 0}
    assert done["aggregated_info"]["workflow_instance_status"] == "SUCCEEDED"
    views = done["aggregated_info"]["step_aggregated_views"]
    assert {step_id: view["status"] for step_id, view in views.items()} == {
        "first": "SUCCEEDED",
        "never": "UNSATISFIED",
        "child": "SUCCEEDED",
        "each": "SUCCEEDED",
        "again": "SUCCEEDED",
    }
    assert values(client.get_instance("sample", 1, step_id="first")["params"], "own_sum") == {"own_sum": 7}
    assert values(client.get_instance("sample.child", 1)["params"], "given") == {"given": "z"}
    assert client.get_instance("sample", 1, step_id="each/4/two")["status"] == "SUCCEEDED"
    assert client.get_instance("sample", 1, step_id="again")["artifacts"]["maestro_while"]["last_iteration"] == 2


def test_what_is_asked_for_can_be_named_in_all_its_ways(client: MaestroClient) -> None:
    """A version by number or word, an instance by run, a step by attempt."""
    for _ in range(2):
        client.push_yaml(child().to_yaml())
    assert client.get_workflow("sample.child", version="1")["is_latest"] is False
    newest = client.get_workflow("sample.child", version="latest", enriched=True)
    assert newest["metadata"]["workflow_version_id"] == 2
    assert values(newest["enriched_extras"]["workflow_params"], "given") == {"given": ""}
    assert "enriched_extras" not in client.get_workflow("sample.child", enriched=False)
    client.start("sample.child", version="1", initiator={"type": "manual"})
    assert finished(client, "sample.child")["workflow_version_id"] == 1
    assert client.get_instance("sample.child", 1, run_id=1)["status"] == "SUCCEEDED"
    attempt = client.get_instance("sample.child", 1, run_id=1, step_id="inner", attempt_id=1)
    assert attempt["runtime_state"]["status"] == "SUCCEEDED"


def test_everything_can_be_stopped(client: MaestroClient, playground: Playground) -> None:
    """A step, an instance, and all instances of a workflow."""
    playground.script.parts["wait"] = BUSY
    client.push_yaml(steps_of(Workflow(id="waiting").run_strategy("parallel"), Job(id="wait", type="Sleep")))
    for _ in range(3):
        client.start("waiting")
    wait_for(lambda: [_status(client, number) for number in (1, 2, 3)] == ["RUNNING"] * 3)
    stopped = client.stop("waiting", 1, "wait")
    assert stopped["step_runtime_state"]["status"] == "STOPPED"
    assert client.stop("waiting", 2)["timeline_event"]["action"] == "STOP"
    finished(client, "waiting", 2)
    assert client.stop("waiting")["message"] == "STOP requested for [1] instances."
    assert [finished(client, "waiting", number)["status"] for number in (1, 2, 3)] == ["STOPPED"] * 3
    assert client.stop("waiting", 3)["message"] == "waiting instance 3 is STOPPED: STOP is not possible."


def _status(client: MaestroClient, instance_id: int) -> Any:
    views = client.get_instance("waiting", instance_id)["aggregated_info"]["step_aggregated_views"]
    return views["wait"]["status"]


def test_mistakes_come_back_in_maestros_form(client: MaestroClient) -> None:
    """The client looks at no status code: it prints the body, and asks its ``status`` whether nothing was found."""
    for answer in (
        client.get_workflow("none"),
        client.get_instance("none", 1),
        client.start("none"),
        client.stop("none"),
        client.stop("none", 1, "step"),
    ):
        assert (answer["status"], answer["code"], answer["errors"]) == ("NOT_FOUND", "workflow_missing", [])
    wrong = client.push_yaml("Workflow: {id: w, owner: t, jobs: [{job: {id: j, type: None of it}}]}")
    assert (wrong["status"], wrong["errors"]) == ("BAD_REQUEST", ["there is no step type None of it"])
    assert client.validate_yaml("jobs: []")["status"] == "BAD_REQUEST"
    client.push_yaml(child().to_yaml())
    assert client.start("sample.child", run_params={"given": {"value": [1], "type": "STRING"}})["code"] == "param_error"
    refused = client.start("sample.child", initiator={"type": "time"})
    assert "only the engine uses the other initiators" in json.dumps(refused)


def test_empty_tags_and_transitions_say_nothing(client: MaestroClient) -> None:
    """It writes them for every job; a workflow without jobs is refused, as by Maestro."""
    text = steps_of(Workflow(id="bare"), Job(id="a", type="NoOp"), Foreach(id="b").job(Job(id="c", type="NoOp")))
    assert text.count("tags: []") == 4
    pushed = client.push_yaml(text)
    assert pushed["workflow"]["steps"][0] == {"step": {"id": "a", "type": "NoOp"}}
    assert client.push_yaml(Workflow(id="none").to_yaml())["errors"] == ["steps cannot be empty"]


def test_its_version_of_a_subworkflow_is_a_param_as_in_maestro(client: MaestroClient) -> None:
    """It is written by a name that chooses nothing; what is pushed is taken, and the answer warns."""
    client.push_yaml(child().to_yaml())
    text = steps_of(Workflow(id="pinned"), Subworkflow(id="s").workflow_id("sample.child").version("1"))
    pushed = client.push_yaml(text)
    params = pushed["workflow"]["steps"][0]["subworkflow"]["params"]
    assert params["workflow_version"] == {"type": "STRING", "value": "1"}
    (warning,) = pushed["warnings"]
    assert (warning["code"], warning["hint"]) == ("version_is_param", "write version")
    assert client.validate_yaml(text)["warnings"] == [warning]


def test_its_ranges_cannot_be_sent_as_it_writes_them(client: MaestroClient, site: Site) -> None:
    """It writes Python's tuples and then refuses to send them; so do we, and take the same range without the tag."""
    text = steps_of(Workflow(id="ranged"), Foreach(id="each").range("i", 0, 4, 2).job(Job(id="a", type="NoOp")))
    with pytest.raises(yaml.YAMLError, match="python/tuple"):
        client.push_yaml(text)
    assert site.push(text, 400)["errors"] == ["the tag !!python/tuple is not allowed"]
    pushed = client.push_yaml(text.replace("!!python/tuple", ""))
    loop = pushed["workflow"]["steps"][0]["foreach"]["params"]["loop_params"]["value"]
    assert loop["i"] == {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, 4, 2);"}


def test_it_gets_in_only_where_nobody_has_to_sign_in(playground: Playground, store: Store) -> None:
    """It has no way to show a token; it is told so."""
    with site_on(playground, **guarded(AccessSetup(store.access).control())) as site:
        refused = MaestroClient(site.url, "tester").get_workflow("w")
    assert (refused["status"], refused["code"]) == ("UNAUTHORIZED", "unauthenticated")


# Its commands. They are run from a copy, because 0.1.4 has one line that Python 3.11 cannot read.


@contextmanager
def commands(url: str, folder: Path) -> Iterator[Any]:
    """Give a function that runs ``maestro`` with arguments, and returns what it prints."""
    copy = shutil.copytree(Path(maestro.__file__).parent, folder / "lib" / "maestro")
    watch = copy / "client" / "watch.py"
    watch.write_text(watch.read_text().replace('"%H:%M:%S"', "'%H:%M:%S'"))

    def run(*arguments: str) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "maestro.cli.cli", "--base-url", url, "--user", "tester", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(copy.parent)},  # noqa: TID251 - handed on
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert said.returncode == 0, said.stdout + said.stderr
        return said.stdout

    yield run


def test_its_commands_work(site: Site, playground: Playground, tmp_path: Path) -> None:
    """Each of them, to the end of an instance that is watched, and to one that is stopped."""
    described().to_yaml(tmp_path / "sample.yaml")
    child().to_yaml(tmp_path / "child.yaml")
    (tmp_path / "waiting.yaml").write_text(steps_of(Workflow(id="waiting"), Job(id="wait", type="Sleep")))
    playground.script.parts["wait"] = BUSY
    with commands(site.url, tmp_path) as run:
        assert json.loads(run("validate", "sample.yaml"))["action"] == "VALIDATE"
        for file in ("child.yaml", "sample.yaml", "waiting.yaml"):
            assert json.loads(run("push", file))["metadata"]["workflow_version_id"] == 1
        given = json.dumps({"text": {"value": "q", "type": "STRING"}})
        started = json.loads(run("start", "sample", "--version", "1", "--params", given))
        assert started["workflow_instance_id"] == 1
        watched = SAID_BY_CLI.sub("", run("watch", "sample", "1", "--poll-interval", "1"))
        assert {"first -> SUCCEEDED", "never -> UNSATISFIED", "again -> SUCCEEDED"} <= set(watched.splitlines())
        assert watched.splitlines()[-1] == "* Workflow instance [sample][1] is completed with status [SUCCEEDED]"
        assert "x Workflow instance [sample][7] not found" in run("watch", "sample", "7")
        assert json.loads(run("get-workflow", "sample", "--version", "latest"))["is_latest"] is True
        assert values(json.loads(run("get-instance", "sample", "1"))["params"], "said") == {"said": "q5"}
        first = ("get-instance", "sample", "1", "first", "--run-id", "1", "--attempt-id", "1")
        assert json.loads(run(*first))["step_attempt_id"] == 1
        run("start", "waiting", "--initiator", '{"type": "manual"}')
        assert json.loads(run("stop", "waiting", "1", "wait"))["step_id"] == "wait"
        assert "STOPPED" in run("watch", "waiting", "1", "--poll-interval", "1")
        run("start", "waiting")
        assert json.loads(run("stop", "waiting", "2"))["workflow_instance_id"] == 2
        assert json.loads(run("stop", "waiting"))["action"] == "STOP"
        assert json.loads(run("get-instance", "none", "1"))["status"] == "NOT_FOUND"
