"""``calve run``, ``restart``, ``push`` and the commands around them, in this process."""

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from calve.app import Project, open_project, worker_thread
from calve.cli import entry, live_views
from calve.cli.live_views import every, wondering
from calve.cli.session import Session
from calve.cli.state import State
from calve.engine import RunStatus, StepStatus, Worker, WorkerRecord
from calve.engine.decisions import Transactions
from calve.operations import Caller, Operations
from calve.settings import load

QUICK = "Workflow: {id: w, n: 1, jobs: [{job: {id: a, type: NoOp, x: $n}}]}"
ASKING = "Workflow: {id: w, jobs: [{job: {id: ask, type: Approval, approval: {message: Go?}}}]}"
STRICT = ASKING.replace("jobs:", "run_strategy: STRICT_SEQUENTIAL, jobs:")
LOOP = """
Workflow:
  id: w
  jobs:
    - foreach: {id: loop, ranges: {i: {from: 0, to: 3}}, jobs: [{job: {id: a, type: NoOp}}]}
    - subworkflow: {id: sub, workflow_id: inner}
"""
INNER = "Workflow: {id: inner, jobs: [{job: {id: a, type: NoOp}}]}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with the definition of a quick workflow."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(QUICK)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    """The engine of that folder, to look at."""
    with open_project(load(folder, {})) as project:
        yield project


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def _asking(folder: Path, capsys: pytest.CaptureFixture[str], text: str = ASKING) -> None:
    """Start an instance that waits for a person, and let it come there."""
    (folder / "ask.yaml").write_text(text)
    assert entry.run(["push", "ask.yaml"]) == 0
    assert entry.run(["run", "w", "--no-wait"]) == 0
    _moved(folder)
    capsys.readouterr()


def _moved(folder: Path) -> None:
    """Let a worker do what is due."""
    with open_project(load(folder, {})) as project:
        tools = project.engine.tools
        worker = tools.new_id()
        tools.state.register(WorkerRecord(worker, "test", 1, tools.clock(), tools.clock(), 1))
        while tasks := tools.state.claim(worker, tools.clock(), runs=10, steps=0):
            for task in tasks:
                Transactions(tools).decide(task)
        tools.state.retire(worker)


def test_a_file_that_is_not_there_is_not_taken_for_a_workflow_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """Its name is most likely misspelt."""
    assert entry.run(["run", "x.yaml"]) == 1
    assert "There is no file and no workflow named x.yaml." in capsys.readouterr().err


def test_a_workflow_that_is_not_there_is_not_stopped_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor killed."""
    for action in ("stop", "kill"):
        assert entry.run([action, "v"]) == 1
        assert "Workflow v does not exist." in capsys.readouterr().err


def test_a_file_is_pushed_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The last word on standard output is how it ended."""
    assert entry.run(["run", "w.yaml", "n=2", "-p", "n=3"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("w 1 SUCCEEDED in ")
    assert said.err.startswith("w version 1\n")
    assert entry.run(["status", "w", "1", "--json"]) == 0
    assert _json(capsys)["params"]["n"]["evaluated_result"] == 3


def test_only_json_is_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is on standard error."""
    assert entry.run(["run", "w.yaml", "--json", "--request-id", "r"]) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["status"], said.err) == ("SUCCEEDED", "")
    assert entry.run(["run", "w", "--json", "--request-id", "r", "--no-wait"]) == 0
    assert _json(capsys)["status"] == "DUPLICATED"


def test_the_steps_are_drawn_on_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loops as counts, subworkflows with their instance."""
    (folder / "inner.yaml").write_text(INNER)
    (folder / "loop.yaml").write_text(LOOP)
    assert entry.run(["push", "inner.yaml", "loop.yaml"]) == 0
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    assert entry.run(["run", "w"]) == 0
    assert "3/3" in screen.getvalue()
    assert "inner 1 SUCCEEDED" in screen.getvalue()
    assert "w 1 SUCCEEDED" in capsys.readouterr().out


def test_a_run_that_nobody_carries_out_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    """After a while, unless it waits for its turn."""
    now = 0
    session = Mock(now=lambda: now)
    created = {"workflow_id": "w", "workflow_instance_id": 1, "status": "CREATED"}
    show = wondering(session, lambda _: None)
    show(created)
    now = 6_000
    show({**created, "is_queued": True})
    show({**created, "status": "IN_PROGRESS"})
    assert capsys.readouterr().err == ""
    show(created)
    show(created)
    assert capsys.readouterr().err.count("w 1 has not started. Is a worker running?") == 1


def test_a_word_that_is_not_a_param_is_reported_where_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    """As an argument, or behind -p."""
    assert entry.run(["run", "w", "day"]) == 2
    assert "Invalid value for '[NAME=VALUE]...': 'day' is not of the form NAME=VALUE" in capsys.readouterr().err
    assert entry.run(["run", "w", "-p", "day"]) == 2
    assert "Invalid value for '-p' / '--param': 'day'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "none"], "Workflow none does not exist."),
        (["run", "w", "--version", "9"], "w has no version 9."),
        (["run", "sub/none.yaml"], "cannot be read"),
        (["run", "two.py"], "defines several workflows: one, two."),
        (["push", "w.yaml", "w.yaml"], "w is defined more than once: w.yaml."),
        (["status", "none"], "Workflow none does not exist."),
        (["status", "w", "7"], "Workflow w has no instance 7."),
        (["logs", "w", "1", "b"], "w instance 1 step b has not started, or does not exist."),
        (["logs", "w", "1", "a", "--attempt", "4"], "has no attempt 4."),
        (["stop", "w", "1"], "w instance 1"),
        (["restart", "w", "1"], "All steps of w instance 1 are complete."),
        (["resume", "w", "a"], "There is no breakpoint at step a of w."),
        (["resume", "w"], "There is no breakpoint at w."),
        (["pause", "w", "b"], "w has no step b."),
        (["delete", "w"], "--yes"),
        (["permits", "delete", "none"], "The tag none has no limit."),
        (["permits", "set", "tag", "5000"], "between 0 and 1000"),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence, with exit code 1."""
    workflows = [f"with Workflow('{name}'):\n    noop('a')" for name in ("one", "two")]
    (folder / "two.py").write_text("\n".join(["from calve.dsl import Workflow, noop", *workflows]))
    assert entry.run(["run", "w.yaml"]) == 0
    capsys.readouterr()
    assert entry.run(arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "w", "word"],
        ["restart", "w", "1", "--step", "a", "--from-beginning"],
        ["restart", "w", "1", "--step-param", "x=1"],
        ["status", "w", "--watch"],
        ["stop", "w", "--step", "a"],
        ["kill", "w", "--step", "a"],
        ["resume", "w", "--instance", "1"],
        ["worker", "--lease", "soon"],
    ],
)
def test_what_makes_no_sense_is_wrong_usage(arguments: list[str]) -> None:
    """With exit code 2."""
    assert entry.run(["push", "w.yaml"]) == 0
    assert entry.run(arguments) == 2


def test_a_definition_that_is_wrong_is_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its problems are shown, as JSON to programs."""
    (folder / "bad.yaml").write_text(QUICK.replace("NoOp", "NoOpp"))
    assert entry.run(["run", "bad.yaml"]) == 1
    assert "did you mean NoOp?" in capsys.readouterr().out
    assert entry.run(["push", "bad.yaml", "--json"]) == 1
    said = _json(capsys)
    assert (said["ok"], said["problems"][0]["file"]) == (False, "bad.yaml")


def test_a_version_can_be_kept_for_later(capsys: pytest.CaptureFixture[str]) -> None:
    """An inactive version runs only by its number."""
    assert entry.run(["push", "w.yaml", "--inactive"]) == 0
    assert capsys.readouterr().out == "w version 1 (not active)\n"
    assert entry.run(["run", "w"]) == 1
    assert entry.run(["run", "w", "--version", "1"]) == 0


def test_nobody_to_do_the_work_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not if a process is there that does it."""
    assert entry.run(["push", "w.yaml"]) == 0
    assert entry.run(["run", "w", "--no-wait"]) == 0
    assert "calve up" in capsys.readouterr().err
    with open_project(load(folder, {})) as project, project.store.hold_scheduler():
        assert entry.run(["run", "w", "--no-wait"]) == 0
    assert capsys.readouterr().err == ""


def test_lists_show_running_and_ended_instances(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And say how to begin where there is nothing."""
    assert entry.run(["status"]) == 0
    assert "calve run WORKFLOW" in capsys.readouterr().err
    assert entry.run(["run", "w.yaml"]) == 0
    _asking(folder, capsys)
    assert entry.run(["status", "--json"]) == 0
    assert [item["status"] for item in _json(capsys)] == ["IN_PROGRESS", "SUCCEEDED"]
    assert entry.run(["instances", "--status", "succeeded"]) == 0
    assert "SUCCEEDED" in capsys.readouterr().out
    assert entry.run(["status", "w", "2"]) == 0
    assert "ask" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "status"), [("stop", RunStatus.STOPPED), ("kill", RunStatus.FAILED)], ids=["stop", "kill"]
)
def test_all_instances_of_a_workflow_are_ended(
    folder: Path, project: Project, capsys: pytest.CaptureFixture[str], command: str, status: RunStatus
) -> None:
    """Or only one step of one of them."""
    _asking(folder, capsys)
    assert entry.run([command, "w", "--json"]) == 0
    assert [item["workflow_instance_id"] for item in _json(capsys)["instances"]] == [1]
    _moved(folder)
    found = project.engine.state.run("w", 1)
    assert found is not None
    assert found.status is status
    assert entry.run([command, "w"]) == 0
    assert capsys.readouterr().out == f"{command}: there is no instance to act on\n"
    assert entry.run(["restart", "w", "1", "--no-wait", "--json"]) == 0
    _moved(folder)
    assert entry.run([command, "w", "1", "--step", "ask", "--reason", "why"]) == 0
    _moved(folder)
    attempt = project.engine.state.newest_attempt("w", 1, "ask")
    assert attempt is not None
    assert "why" in attempt.timeline[-1]["message"]


def test_a_step_is_skipped_and_decided_about(
    folder: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the engine refuses is an error."""
    for command, status in (
        (["skip"], StepStatus.SKIPPED),
        (["approve", "--comment", "yes"], StepStatus.SUCCEEDED),
        (["reject"], StepStatus.FATALLY_FAILED),
    ):
        _asking(folder, capsys)
        instance = project.engine.state.instances(workflow_id="w")[0].instance_id
        assert entry.run([command[0], "w", str(instance), "ask", *command[1:]]) == 0
        _moved(folder)
        attempt = project.engine.state.newest_attempt("w", instance, "ask")
        assert attempt is not None
        assert attempt.status is status
    assert entry.run(["bypass", "w", "1", "ask"]) == 1


def test_a_failed_instance_is_unblocked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody needs to do anything for that."""
    _asking(folder, capsys, STRICT)
    assert entry.run(["reject", "w", "1", "ask"]) == 0
    _moved(folder)
    capsys.readouterr()
    assert entry.run(["unblock", "w", "1"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("unblock: w 1\n", "")


def test_a_breakpoint_holds_one_instance_or_all(
    folder: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is taken away by name, or with all others."""
    (folder / "ask.yaml").write_text(ASKING)
    assert entry.run(["push", "ask.yaml"]) == 0
    assert entry.run(["pause", "w", "ask", "--instance", "1", "--json"]) == 0
    for _ in range(2):
        assert entry.run(["run", "w", "--version", "1", "--no-wait"]) == 0
    _moved(folder)
    attempt = project.engine.state.newest_attempt("w", 1, "ask")
    assert attempt is not None
    assert attempt.status is StepStatus.PAUSED
    capsys.readouterr()
    assert entry.run(["resume", "w", "ask", "--instance", "1", "--json"]) == 0
    assert _json(capsys)["action"] == "resume"
    assert project.engine.state.breakpoints("w") == []
    assert entry.run(["pause", "w", "ask"]) == 0
    assert entry.run(["resume", "w", "ask"]) == 0
    assert project.engine.state.breakpoints("w") == []


def test_permits_are_set_shown_and_lifted(capsys: pytest.CaptureFixture[str]) -> None:
    """For people and for programs."""
    assert entry.run(["permits", "set", "slow", "4"]) == 0
    assert capsys.readouterr().out == "slow: at most 4 at once\n"
    assert entry.run(["permits"]) == 0
    assert "slow" in capsys.readouterr().out
    assert entry.run(["permits", "--json"]) == 0
    assert _json(capsys) == [{"tag": "slow", "max_allowed": 4, "held": 0}]
    assert entry.run(["permits", "delete", "slow", "--json"]) == 0
    assert _json(capsys) == {"tag": "slow", "max_allowed": None}
    assert entry.run(["permits", "set", "slow", "1"]) == 0
    assert entry.run(["permits", "delete", "slow"]) == 0
    assert "slow: no limit" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_workflow_is_deleted(more: list[str]) -> None:
    """With all that it has done."""
    assert entry.run(["run", "w.yaml"]) == 0
    assert entry.run(["delete", "w", "--yes", *more]) == 0
    assert entry.run(["status", "w"]) == 1


def test_a_step_without_a_log_reports_it(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has an empty log, and the attempt."""
    assert entry.run(["run", "w.yaml"]) == 0
    capsys.readouterr()
    assert entry.run(["logs", "w", "1", "a", "-f"]) == 0
    assert capsys.readouterr().err == "a has written nothing.\n"
    assert entry.run(["logs", "w", "1", "a", "--json"]) == 0
    said = _json(capsys)
    assert (said["step_id"], said["log"]) == ("a", "")


def test_an_instance_is_watched_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that is over already."""
    assert entry.run(["run", "w.yaml"]) == 0
    capsys.readouterr()
    assert entry.run(["status", "w", "1", "--watch"]) == 0
    assert capsys.readouterr().err.splitlines()[-1].endswith("w 1 SUCCEEDED")


def test_a_workflow_that_is_deleted_meanwhile_is_followed_no_further(project: Project) -> None:
    """It is shown as it was."""
    assert entry.run(["run", "w.yaml"]) == 0
    session = Session(Operations(Caller(project, State().principal)), project)
    run = session.operations.instance("w", 1)
    project.engine.delete("w")
    assert live_views.follow(session, run, lambda _: None, each=lambda: None) is run
    with live_views.shown(session, is_quiet=False) as show:
        show({**run, "status": "IN_PROGRESS"})


def test_an_error_of_the_work_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than let it wait for ever."""

    def broken(_: Worker) -> None:
        raise OSError("no more threads")

    monkeypatch.setattr(Worker, "run", broken)
    monkeypatch.setattr(worker_thread, "_TRY", 0.0)
    assert entry.run(["run", "w.yaml"]) == 70
    assert "no more threads" in capsys.readouterr().err
    assert entry.run(["worker"]) == 70


def test_something_is_done_at_once_and_then_once_in_a_while() -> None:
    """However often it is asked for."""
    done: list[int] = []
    maybe = every(3600, lambda: done.append(1))
    maybe()
    maybe()
    assert done == [1]


def test_a_param_that_nothing_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest one, and nothing is started: of a file, of a workflow, and of a restart."""
    for arguments in (["w.yaml", "m=2"], ["w", "-p", "N_=2"], ["w", "m=2", "--no-wait"]):
        assert entry.run(["run", *arguments]) == 1
        said = capsys.readouterr()
        assert "error: Workflow w has no param " in said.err
        assert "  → " in said.err
        if arguments[0].endswith(".yaml"):
            assert entry.run(["run", "w"]) == 1, "the file was pushed"
            capsys.readouterr()
            assert entry.run(["push", "w.yaml"]) == 0
    assert entry.run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == []
    assert entry.run(["run", "w", "n=2"]) == 0
    for given in (["-p", "nn=2"], ["--step-param", "a.xx=2"]):
        capsys.readouterr()
        assert entry.run(["restart", "w", "1", "--from-beginning", *given]) == 1
        assert "Did you mean" in capsys.readouterr().err


def test_a_param_that_nothing_knows_is_not_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    """A typo would show the default."""
    assert entry.run(["render", "w.yaml", "-p", "nn=2"]) == 1
    assert "Workflow w has no param nn." in capsys.readouterr().err


def test_a_workflow_that_would_wait_for_itself_is_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither pushed nor started."""
    (folder / "itself.yaml").write_text("Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: w}}]}")
    for command in ("push", "run"):
        assert entry.run([command, "itself.yaml"]) == 1
        said = capsys.readouterr().err
        assert "would wait for itself: w → w" in said
        assert "sync: false" in said


@pytest.mark.parametrize(("given", "place"), [('"\\ud83d"', "n"), ('["\\udc00"]', "n[0]"), ('{"a": "\\u0000"}', "n.a")])
def test_a_param_that_is_not_text_is_refused(given: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its place; nothing is started."""
    for command in (["run", "w.yaml", f"n={given}"], ["run", "w.yaml", "-p", f"n={given}"], ["render", "w.yaml"]):
        assert entry.run([*command, "-p", f"n={given}"]) == 1
        assert f"error: {place} holds \\u" in capsys.readouterr().err


def test_an_argument_that_is_not_utf_8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Python gives its bytes as halves of surrogate pairs."""
    assert entry.run(["stop", "w", "1", "--reason", "\udcff"]) == 1
    assert "Argument 5 is not UTF-8" in capsys.readouterr().err


def test_what_is_stored_and_not_text_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An instance from before it was refused can be looked at, for people and for programs, and run again."""
    (folder / "old.yaml").write_text("Workflow: {id: w, n: planted, jobs: [{job: {id: a, type: NoOp, x: $n}}]}")
    assert entry.run(["run", "old.yaml"]) == 0
    with closing(sqlite3.connect(folder / ".calve" / "state.db")) as connection:
        for table in ("run", "attempt"):
            connection.execute(f"UPDATE {table} SET params = replace(params, 'planted', '\\ud83d')")
        connection.execute("UPDATE attempt SET timeline = ?", (json.dumps([{"message": "\ud83d", "timestamp": 1}]),))
        connection.commit()
    capsys.readouterr()
    for arguments in (["status", "w", "1"], ["instances"], ["status", "w", "1", "--json"]):
        assert entry.run(arguments) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["params"]["n"]["evaluated_result"] == "\ud83d"
    assert entry.run(["restart", "w", "1", "--from-beginning", "-p", "n=mended"]) == 0
    assert entry.run(["status", "w", "1", "--json"]) == 0
    assert '"evaluated_result": "mended"' in capsys.readouterr().out


def test_push_says_how_long_instances_are_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, with the first version of a workflow; not if they are kept for ever."""
    assert entry.run(["push", "w.yaml"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "w version 1\n",
        "Instances are kept for 90 days; set retention.instances to change it.\n",
    )
    assert entry.run(["push", "w.yaml"]) == 0
    assert capsys.readouterr().err == ""
    assert entry.run(["push", "w.yaml", "--json"]) == 0
    assert _json(capsys)["instances_kept_seconds"] == 90 * 86_400
    (folder / "w.yaml").write_text(QUICK.replace("id: w,", "id: v,"))
    (folder / "calve.toml").write_text('[retention]\ninstances = "36h"\n')
    assert entry.run(["push", "w.yaml"]) == 0
    assert "kept for 1 d 12 h;" in capsys.readouterr().err
    for never in ('"never"', "0", '"0"'):
        (folder / "calve.toml").write_text(f"[retention]\ninstances = {never}\n")
        (folder / "w.yaml").write_text(QUICK.replace("id: w,", f"id: w{ord(never[0])}{len(never)},"))
        assert entry.run(["push", "w.yaml"]) == 0
        assert capsys.readouterr().err == ""


NESTED = """
Workflow:
  id: nested
  jobs:
    - foreach:
        id: parts
        ranges: {i: {from: 1, to: 4}}
        jobs:
          - subworkflow: {id: sub, workflow_id: broken, '!i<long>': i}
"""
BROKEN = """
Workflow:
  id: broken
  i: 1
  jobs:
    - job:
        id: load
        type: Shell
        retry_policy: {error_retry_limit: 0}
        shell: {script: 'echo loading; if [ ${i} = 2 ]; then echo "no part ${i}" >&2; exit 3; fi'}
"""


def test_the_deepest_failure_comes_up_with_a_log_that_can_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a subworkflow in a loop; the command that is printed works."""
    (folder / "broken.yaml").write_text(BROKEN)
    (folder / "nested.yaml").write_text(NESTED)
    assert entry.run(["push", "broken.yaml"]) == 0
    assert entry.run(["run", "nested.yaml"]) == 1
    said = capsys.readouterr().out
    cause = "parts/2/sub/load FATALLY_FAILED: The program ended with exit code 3.\n  no part 2\n"
    assert f"{cause}  | loading\n  | no part 2\n  → calve logs nested 1 parts/2/sub/load" in said
    assert entry.run(["status", "nested", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"{cause}  → calve logs nested 1 parts/2/sub/load\n\n→ calve restart nested 1" in shown
    assert "3/3, 1 failed  parts/2/sub/load: The program ended with exit code 3. no part 2" in shown
    assert entry.run(["logs", "nested", "1", "parts/2/sub/load"]) == 0
    assert capsys.readouterr().out == "loading\nno part 2\n"
    assert entry.run(["status", "nested", "1", "--run", "1"]) == 0
    assert "calve restart" not in capsys.readouterr().out, "it may not be the latest"


def test_open_approvals_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the question, who may answer and how; of one workflow, or of all."""
    assert entry.run(["approvals"]) == 0
    assert capsys.readouterr().err == "No step waits for approval.\n"
    _asking(folder, capsys)
    assert entry.run(["approvals"]) == 0
    said = capsys.readouterr().out
    assert "w 1 ask asks, since" in said
    assert "  Go?\n  May decide: anyone who may run w. Approved: 0 of 1.\n  → calve approve w 1 ask\n" in said
    assert entry.run(["approvals", "w", "--limit", "1", "--json"]) == 0
    (one,) = _json(capsys)
    assert (one["workflow_id"], one["workflow_instance_id"], one["path"], one["question"]) == ("w", 1, "ask", "Go?")
    assert entry.run(["status", "w", "1"]) == 0
    assert "ask asks: Go?\n" in capsys.readouterr().out
    assert entry.run(["approve", "w", "1", "ask"]) == 0
    _moved(folder)
    capsys.readouterr()
    assert entry.run(["approvals", "w", "--json"]) == 0
    assert _json(capsys) == []
    assert entry.run(["approvals", "nope"]) == 1
    assert "nope" in capsys.readouterr().err
