"""Workflows as a user runs them: real commands in processes of their own, real programs as steps."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from calve.cli import entry
from calve.engine import Attempt, Run, RunStatus, StepStatus
from calve.store import Store, open_store

NEVER = "retry_policy: {error_retry_limit: 0}"
HERE = "@here@"
"""Stands for the project's folder in scripts."""
PATIENCE = 60
"""How long a test waits for something, in seconds; what it asserts is that it happens."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output, parsed."""
        return json.loads(self.out.splitlines()[-1])


@dataclass
class Project:
    """A folder that commands run in, and a look at its state from outside."""

    folder: Path
    store: Store
    url: str
    """Where the state is."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def calve(self, *arguments: str) -> Result:
        """Run a command to its end, in this process: starting one takes longer than most commands do."""
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = entry.run(["-C", str(self.folder), *arguments])
        return Result(code, out.getvalue(), err.getvalue())

    def process(self, *arguments: str) -> Result:
        """Run a command to its end, in a process of its own."""
        return finished(self.spawn(*arguments))

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        process = subprocess.Popen(
            [sys.executable, "-m", "calve", *arguments, *(["--port", "0"] if arguments[0] == "up" else [])],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def push(self, *jobs: str, name: str = "w", head: str = "") -> None:
        """Push a workflow whose steps follow each other."""
        lines = "\n".join(f"    - {job}" for job in jobs)
        text = f"Workflow:\n  id: {name}\n{head}  jobs:\n{lines}\n  dag: sequential\n"
        (self.folder / f"{name}.yaml").write_text(text.replace(HERE, str(self.folder)))
        result = self.calve("push", str(self.folder / f"{name}.yaml"))
        assert result.code == 0, result.out + result.err

    def run(self, instance: int = 1, workflow: str = "w") -> Run | None:
        """Return the latest run of an instance."""
        return self.store.engine.run(workflow, instance)

    def attempt(self, step: str, instance: int = 1) -> Attempt | None:
        """Return the newest attempt of a step."""
        return self.store.engine.newest_attempt("w", instance, step)

    def wait_for_run(self, status: RunStatus, instance: int = 1) -> None:
        """Wait until an instance has come to a status."""
        wait_for(lambda: (found := self.run(instance)) is not None and found.status is status)

    def wait_for_step(self, step: str, status: StepStatus, instance: int = 1) -> None:
        """Wait until a step has come to a status."""
        wait_for(lambda: (found := self.attempt(step, instance)) is not None and found.status is status)

    def wait_for_file(self, name: str) -> None:
        """Wait until a step has written a file."""
        wait_for((self.folder / name).exists)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)


def finished(process: subprocess.Popen[str]) -> Result:
    """Wait for a command's end."""
    out, err = process.communicate(timeout=PATIENCE)
    return Result(process.returncode, out, err)


def shell(step: str, script: str, *more: str) -> str:
    """Return a step that runs a line of shell in the project's folder."""
    rest = "".join(f", {part}" for part in more)
    return f"job: {{id: {step}, type: Shell, shell: {{script: {json.dumps(f'cd {HERE}; {script}')}}}{rest}}}"


@contextmanager
def opened(folder: Path, url: str) -> Iterator[Project]:
    """Give a project; whatever it has started is gone afterwards."""
    with open_store(url) as store:
        project = Project(folder, store, url)
        yield project
        for process in project.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Give an empty project with its state in SQLite."""
    (tmp_path / ".calve").mkdir()
    with opened(tmp_path, f"sqlite:///{tmp_path}/.calve/state.db") as project:
        yield project


def test_outputs_of_a_step_are_used_by_a_later_one(project: Project) -> None:
    """Push, run with a param as the talk writes it, look at the status and the log."""
    project.push(
        shell("extract", """echo '{"rows": 7}' > "$$CALVE_OUTPUT" """, "'rows<long>': 0"),
        shell("load", "echo query $my_query, rows ${extract__rows}"),
        head="  my_query: SELECT 0\n",
    )
    ran = project.process("run", "w", "my_query=SELECT 1")
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.startswith("w 1 SUCCEEDED in ")
    assert [line.split("  ", 1)[1] for line in ran.err.splitlines()] == [
        "w 1 IN_PROGRESS",
        "extract RUNNING",
        "extract SUCCEEDED",
        "load RUNNING",
        "load SUCCEEDED",
        "w 1 SUCCEEDED",
    ]
    assert project.calve("logs", "w", "1", "load").out == "query SELECT 1, rows 7\n"
    status = project.calve("status", "w", "1", "--json").json
    assert status["status"] == "SUCCEEDED"
    assert status["params"]["my_query"]["evaluated_result"] == "SELECT 1"
    assert status["runtime_overview"]["step_overview"]["SUCCEEDED"]["cnt"] == 2
    assert [step["step_id"] for step in status["steps"]] == ["extract", "load"]


def test_a_failed_step_is_shown_with_its_last_lines(project: Project) -> None:
    """The exit code is 1, and the summary says what to look at and what to do."""
    project.push(shell("load", "echo loading; echo it broke >&2; exit 3", NEVER))
    ran = project.process("run", "w")
    assert ran.code == 1
    assert "load FATALLY_FAILED: The program ended with exit code 3." in ran.out
    assert "  | it broke" in ran.out
    assert "calve logs w 1 load" in ran.out
    assert "calve restart w 1" in ran.out
    assert project.calve("run", "w", "--json").json["status"] == "FAILED"
    failed = project.calve("instances", "w", "--status", "FAILED", "--json").json
    assert [item["workflow_instance_id"] for item in failed] == [2, 1]


def test_a_step_is_tried_again_and_each_attempt_has_its_log(project: Project) -> None:
    """As its retry policy says."""
    policy = "retry_policy: {error_retry_limit: 1, backoff: {type: FIXED_BACKOFF, error_retry_backoff_in_secs: 1}}"
    project.push(shell("flaky", "echo once more; test -f here || { touch here; exit 1; }", policy))
    ran = project.calve("run", "w")
    assert ran.code == 0, ran.out + ran.err
    assert "flaky SUCCEEDED (attempt 2)" in ran.err
    assert "flaky USER_FAILED: The program ended with exit code 1." in ran.err
    assert project.calve("logs", "w", "1", "flaky", "--attempt", "1").out == "once more\n"
    refused = project.calve("logs", "w", "1", "flaky", "--attempt", "9")
    assert (refused.code, "It has 1, 2." in refused.err) == (1, True)


def test_an_instance_is_stopped_from_another_process(project: Project) -> None:
    """The one that carries it out ends with it; what the program had started is gone."""
    project.push(shell("long", "touch begun; sleep 600"))
    running = project.spawn("run", "w")
    project.wait_for_file("begun")
    second = project.calve("worker")
    assert second.code == 1
    assert f"Process {running.pid}" in second.err
    assert project.calve("stop", "w", "1", "--reason", "lunch").out == "stop: w 1\n"
    ended = finished(running)
    assert ended.code == 1
    assert "w 1 STOPPED" in ended.out
    assert "lunch" in ended.out


def test_what_is_incomplete_is_restarted(project: Project) -> None:
    """What has succeeded is not run again."""
    project.push(shell("first", "echo x >> first"), shell("second", "test -f mended", NEVER))
    assert project.calve("run", "w").code == 1
    (project.folder / "mended").touch()
    again = project.calve("restart", "w", "1")
    assert again.code == 0, again.out + again.err
    assert again.out.startswith("w 1 run 2 SUCCEEDED")
    assert (project.folder / "first").read_text() == "x\n"
    assert project.calve("restart", "w", "1", "--from-beginning").code == 0
    assert (project.folder / "first").read_text() == "x\nx\n"
    assert project.calve("status", "w", "1", "--run", "1", "--json").json["status"] == "FAILED"


def test_a_step_is_restarted_with_other_params_and_another_one_skipped(project: Project) -> None:
    """From the step on that is named."""
    project.push(shell("first", "echo $day > day", "day: 1"), shell("second", "exit 1", NEVER))
    assert project.calve("run", "w").code == 1
    again = project.calve("restart", "w", "1", "--step", "first", "--step-param", "first.day=2", "--skip", "second")
    assert again.code == 0, again.out + again.err
    assert (project.folder / "day").read_text() == "2\n"


def test_a_step_that_runs_is_skipped(project: Project) -> None:
    """The steps after it go on."""
    project.push(shell("long", "touch begun; sleep 600"), shell("after", "touch reached"))
    running = project.spawn("run", "w")
    project.wait_for_file("begun")
    assert project.calve("skip", "w", "1", "long").code == 0
    assert finished(running).code == 0
    assert (project.folder / "reached").exists()


def test_a_step_pauses_until_it_is_resumed(project: Project) -> None:
    """At its breakpoint, before it begins."""
    project.push(shell("first", "true"), shell("second", "touch reached"))
    assert project.calve("pause", "w", "second").code == 0
    running = project.spawn("run", "w")
    project.wait_for_step("second", StepStatus.PAUSED)
    assert not (project.folder / "reached").exists()
    assert project.calve("resume", "w").out == "resume: w 1\n"
    assert finished(running).code == 0
    assert "There is no breakpoint" in project.calve("resume", "w").err


def test_a_foreach_is_shown_as_a_count(project: Project) -> None:
    """And what failed in it, by its path."""
    loop = "foreach: {id: loop, ranges: {i: {from: 0, to: 5}}, jobs: [%s]}"
    project.push(loop % f"{{{shell('job', 'echo number $i; test $i != 3', NEVER)}}}")
    ran = project.calve("run", "w")
    assert ran.code == 1
    assert "loop/4/job FATALLY_FAILED" in ran.out
    assert project.calve("logs", "w", "1", "loop/4/job").out == "number 3\n"
    assert "5/5, 1 failed" in project.calve("status", "w", "1").out
    (step,) = project.calve("status", "w", "1", "--json").json["steps"]
    assert step["iterations"] == {"done": 5, "active": 0, "failed": 1, "total": 5}


def test_an_approval_is_given_from_another_process(project: Project) -> None:
    """And a second one is refused."""
    project.push("job: {id: publish, type: Approval, approval: {message: Publish?}}", shell("after", "touch reached"))
    running = project.spawn("run", "w")
    project.wait_for_step("publish", StepStatus.RUNNING)
    assert project.calve("approve", "w", "1", "publish", "--comment", "fine").code == 0
    assert finished(running).code == 0
    assert project.calve("reject", "w", "1", "publish").code == 1
    rejecting = project.spawn("run", "w")
    project.wait_for_step("publish", StepStatus.RUNNING, instance=2)
    assert project.calve("reject", "w", "2", "publish", "--comment", "no").code == 0
    assert "no" in finished(rejecting).out


def test_control_c_stops_the_instance(project: Project) -> None:
    """Cleanly: it is STOPPED, and the program is gone."""
    project.push(shell("long", "touch begun; trap 'touch told; exit 1' TERM; sleep 600 & wait"))
    running = project.spawn("run", "w")
    project.wait_for_file("begun")
    running.send_signal(signal.SIGINT)
    ended = finished(running)
    assert ended.code == 130
    assert "w 1 STOPPED" in ended.out
    assert (project.folder / "told").exists()


def test_a_second_control_c_leaves_at_once(project: Project) -> None:
    """The program dies, and whoever works next goes on with the instance."""
    project.push(shell("long", "touch begun; trap '' TERM; while true; do sleep 0.1; done"))
    running = project.spawn("run", "w")
    project.wait_for_file("begun")
    running.send_signal(signal.SIGINT)
    wait_for(lambda: (attempt := project.attempt("long")) is not None and attempt.action is not None)
    running.send_signal(signal.SIGINT)
    assert finished(running).code == 130
    up = project.spawn("up")
    project.wait_for_run(RunStatus.STOPPED)
    up.terminate()
    assert finished(up).code == 0


def test_what_a_killed_process_has_left_continues(project: Project) -> None:
    """``calve up`` takes over within seconds and finishes; what was done is not done again."""
    wait = 'n=$$(cat begun 2>/dev/null | wc -l); echo x >> begun; test "$$n" -gt 0 || sleep 600'
    project.push(shell("first", "echo x >> first"), shell("second", wait), shell("third", "touch reached"))
    running = project.spawn("run", "w")
    project.wait_for_file("begun")
    running.kill()
    finished(running)
    up = project.spawn("up")
    project.wait_for_run(RunStatus.SUCCEEDED)
    assert (project.folder / "first").read_text() == "x\n"
    assert (project.folder / "begun").read_text() == "x\nx\n"
    up.send_signal(signal.SIGINT)
    said = finished(up)
    assert said.code == 0
    assert "calve is up at " in said.out
    assert "w 1 SUCCEEDED" in said.out


def test_up_carries_out_what_others_start(project: Project) -> None:
    """Then a run only follows, and when that process goes, it takes over."""
    project.push(shell("job", "touch begun; while ! test -f go; do sleep 0.05; done"))
    alone = project.calve("run", "w", "--no-wait", "--json")
    assert alone.json["status"] == "CREATED"
    assert "calve up" in alone.err
    up = project.spawn("up", "--slots", "2")
    project.wait_for_step("job", StepStatus.RUNNING)
    follower = project.spawn("run", "w")
    project.wait_for_run(RunStatus.CREATED, instance=2)
    up.kill()
    finished(up)
    (project.folder / "go").touch()
    ended = finished(follower)
    assert ended.code == 0, ended.out + ended.err
    assert "w 2 is queued" in ended.err
    project.wait_for_run(RunStatus.SUCCEEDED, instance=1)


def test_a_worker_that_is_told_to_end_finishes_its_steps(project: Project) -> None:
    """It says how many there are; logs and status can be followed meanwhile."""
    project.push(shell("job", "echo begun; touch begun; while ! test -f go; do sleep 0.05; done; echo over"))
    worker = project.spawn("worker", "--lease", "5s")
    project.calve("run", "w", "--no-wait")
    project.wait_for_file("begun")
    watch = project.spawn("status", "w", "1", "--watch")
    log = project.spawn("logs", "w", "1", "job", "-f")
    worker.terminate()
    assert worker.stdout is not None
    lines = iter(worker.stdout.readline, "")
    assert any("Steps still running: 1." in line for line in lines)
    (project.folder / "go").touch()
    assert finished(worker).code == 0
    assert finished(log).out == "begun\nover\n"
    assert "w 1 SUCCEEDED" in finished(watch).out


def test_what_a_step_printed_outlives_a_worker_that_is_killed(project: Project) -> None:
    """With SIGKILL, while the step prints: the next worker hands in what the first one no longer could."""
    pause = "test -f go || test $$i -lt 60 || sleep 0.5"  # long enough for a busy machine to read what was printed
    count = f"for i in $(seq 1 2000); do echo line $$i; echo $$i >> printed; {pause}; done; touch go"
    project.push(shell("job", count))
    up = project.spawn("up", "--port", "0")
    project.calve("run", "w", "--no-wait")
    project.wait_for_file("printed")
    wait_for(lambda: printed(project) > 60)
    before = printed(project)
    up.kill()
    up.communicate()
    (project.folder / "go").touch()
    project.spawn("up", "--port", "0")
    project.wait_for_run(RunStatus.SUCCEEDED)
    lines = project.calve("logs", "w", "1", "job").out.splitlines()
    again = next(place for place, line in enumerate(lines) if "The worker that ran this step died" in line)
    assert again >= before - 2 > 50  # the last lines may have been on their way
    assert lines[:again] == [f"line {number}" for number in range(1, again + 1)]


def printed(project: Project) -> int:
    """Return how many lines the step has printed."""
    return len((project.folder / "printed").read_text().splitlines())


def test_nothing_is_pushed_unless_all_of_it_can_be(project: Project) -> None:
    """A script that is missing is an error here."""
    good = "Workflow: {id: good, jobs: [{job: {id: a, type: NoOp}}]}"
    bad = "Workflow: {id: bad, jobs: [{job: {id: a, type: Shell, shell: {script: '$S3{none.sh}'}}}]}"
    (project.folder / "good.yaml").write_text(good)
    (project.folder / "bad.yaml").write_text(bad)
    refused = project.calve("push", str(project.folder))
    assert refused.code == 1
    assert "there is no file none.sh" in refused.out
    assert "nothing was" in refused.err
    assert project.calve("run", "good").code == 1
    (project.folder / "none.sh").write_text("true")
    pushed = project.calve("push", str(project.folder), "--json").json["pushed"]
    assert [(item["workflow_id"], item["workflow_version_id"]) for item in pushed] == [("bad", 1), ("good", 1)]


def test_many_workers_share_a_postgresql(tmp_path: Path, postgres_database: str) -> None:
    """Processes that die are started again; all end with the one that has started them."""
    (tmp_path / "calve.toml").write_text(f'[store]\nurl = "{postgres_database}"\n')
    with opened(tmp_path, postgres_database) as project:
        loop = "foreach: {id: loop, ranges: {i: {from: 0, to: 8}}, jobs: [%s]}"
        job = shell("job", "echo $$PPID > pid-$i; while ! test -f go; do sleep 0.05; done")
        project.push(loop % f"{{{job}}}")
        up = project.spawn("up", "--processes", "2", "--slots", "4")
        wait_for(lambda: len(project.store.engine.workers()) == 2)
        project.calve("run", "w", "--no-wait")
        wait_for(lambda: len(list(project.folder.glob("pid-*"))) == 8)
        first, second = (worker.pid for worker in project.store.engine.workers())
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: second in (now := {w.pid for w in project.store.engine.workers()} - {first}) and len(now) == 2)
        (project.folder / "go").touch()
        project.wait_for_run(RunStatus.SUCCEEDED)
        up.send_signal(signal.SIGINT)
        assert finished(up).code == 0
        wait_for(lambda: not project.store.engine.workers())


def test_processes_need_postgresql(project: Project) -> None:
    """On SQLite the message says what to do instead."""
    refused = project.calve("up", "--processes", "2")
    assert refused.code == 1
    assert "PostgreSQL" in refused.err
