"""Programs of steps run as the users, and in the sandbox, that the settings name; and see nothing of others there."""

import os
import pwd
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bubblewrap import bubblewrap
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import shell, until, workspace

import calve
from calve.engine import Outcome, State, StepAddress
from calve.errors import EnvironmentUnfit, SettingsInvalid, StepFailed
from calve.settings import load
from calve.steps.processes.folders import ProcessFolder
from calve.steps.processes.fork_server import ForkServers
from calve.steps.processes.isolation import Isolation, SystemUser, load_isolation
from calve.steps.programs.python import Python
from calve.steps.programs.shell import Shell
from calve.steps.sql import WORK, Sql

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root can run programs as another user")
SALES = SystemUser("daemon", pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("daemon").pw_gid, (), "/")
OTHERS = SystemUser("nobody", pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid, (), "/")


PYTHON = next(path for path in (sys.executable, "/usr/bin/python3") if not Path(path).resolve().is_relative_to("/root"))
"""A Python that other users can run."""


@pytest.fixture
def project() -> Iterator[Path]:
    """Give the folder of a project that other users can pass through: pytest's own is closed to them."""
    folder = Path(tempfile.mkdtemp(prefix="calve-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _run(context: FakeContext, project: Path, isolation: Isolation) -> Outcome:
    return Shell(workspace(project, isolation=isolation)).execute(context)


@as_root
def test_a_program_runs_as_the_user_of_its_namespace(project: Path) -> None:
    """With the user's groups, home and name; it can write to its folder and give outputs back."""
    command = 'id -u; id -g; id -G; echo "$HOME $USER"; pwd; touch here; echo \'{"a": 1}\' > "$CALVE_OUTPUT"'
    context = shell(project, command)
    outcome = _run(context, project, Isolation({"*": OTHERS, "demo": SALES}))
    uid, gid, groups, who, cwd = context.text.splitlines()
    assert (uid, gid, groups) == (str(SALES.uid), str(SALES.gid), str(SALES.gid))
    assert (who, cwd) == ("/ daemon", str(context.folder / "work"))
    assert (context.folder / "work" / "here").stat().st_uid == SALES.uid
    assert outcome.state is State.DONE
    assert outcome.outputs["a"] == 1


@as_root
def test_a_program_of_another_user_reads_neither_the_worker_nor_other_attempts(project: Path) -> None:
    """Nor the state, nor what calve keeps about its own process; nor can it become root again."""
    (project / "state.db").touch(mode=0o600)
    other = shell(project, "echo secret > mine; sleep 600")
    other.key = "other"
    isolation = Isolation({"*": OTHERS, "demo": SALES})
    thread = threading.Thread(target=_run, args=(other, project, isolation))
    thread.start()
    until((other.folder / "work" / "mine").exists)
    context = FakeContext(
        project,
        {
            "shell": {
                "command": f"cat {project}/state.db; ls {project}/attempts; cat {other.folder}/work/mine; "
                f"cat /proc/{os.getpid()}/environ; cat /proc/$PPID/environ; touch {context_folder(project)}/exit; "
                f"kill {os.getpid()}; "
                f"ln -s /etc/hostname $CALVE_OUTPUT; {PYTHON} -c 'import os; os.setuid(0)'; true"
            }
        },
        place=StepAddress("elsewhere.w", 1, "a"),
    )
    outcome = _run(context, project, isolation)
    other.interruption.set()
    thread.join()
    assert "secret" not in context.text
    assert context.text.count("ermission denied") + context.text.count("not permitted") == 8, context.text
    assert outcome.state is State.FATAL_ERROR  # a link as its output is not followed
    assert "cannot be read" in outcome.message


def context_folder(project: Path) -> Path:
    """Return the folder of the process of the attempt that tests make."""
    return project / "attempts" / "0195-attempt" / "processes" / "main"


@as_root
@pytest.mark.parametrize("kind", ["python", "sql"])
def test_python_and_sql_run_as_that_user_too(project: Path, kind: str) -> None:
    """Not only commands."""
    closed = [folder for folder in Path(calve.__file__).parents if not folder.stat().st_mode & 0o001]
    if closed:
        pytest.skip(f"{closed[0]} is closed to other users, so they cannot import calve from here")
    project.chmod(0o777)
    importing = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}
    around = workspace(project, isolation=Isolation({"*": SALES}), python=PYTHON, environment=importing)
    if kind == "python":
        context = FakeContext(project, {"python": {"source": "import os; open('made', 'w')", "cwd": "."}})
        outcome = Python(around).execute(context)
    else:
        forks = ForkServers(WORK, around)
        sql = {"url": "sqlite:///made", "query": "CREATE TABLE t (n INTEGER)"}
        context = FakeContext(project, {"sql": sql})
        outcome = Sql({}, project, f"sqlite:///{project}/state.db", forks).execute(context)
        forks.close()
    assert outcome.state is State.DONE, outcome.message
    assert (project / "made").stat().st_uid == SALES.uid


def test_the_narrowest_namespace_says_whom_a_program_runs_as() -> None:
    """Where none covers a workflow, its steps are refused, rather than run as the worker."""
    users = {"*": OTHERS, "demo": SALES, "demo.a": OTHERS}
    assert Isolation(users).user_of("demo.w") is SALES
    assert Isolation(users).user_of("demo.a.b.w") is OTHERS
    assert Isolation(users).user_of("demonstration.w") is OTHERS
    assert Isolation().user_of("demo.w") is None
    with pytest.raises(StepFailed, match=r"worker\.run_as names no user for the programs of other"):
        Isolation({"demo": SALES}).user_of("other.w")


def test_users_are_refused_where_they_would_keep_nothing_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not exist, root, and any where the worker is not root."""

    def told(user: str) -> str:
        with pytest.raises((SettingsInvalid, EnvironmentUnfit)) as caught:
            load_isolation(load(tmp_path, {"CALVE_WORKER__RUN_AS": f'{{"*": "{user}"}}'}))
        return caught.value.message

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert told("no-such-user") == "worker.run_as names the user no-such-user, who does not exist on this machine."
    assert told("root") == "worker.run_as names root, who is root, so steps would not be isolated."
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert told("daemon") == "worker.run_as names other users, and only root may run programs as another user."


def test_what_a_program_gives_back_is_read_from_plain_files_only(tmp_path: Path) -> None:
    """A link, another name of a file, a pipe that nobody writes to: none of them is read, and nobody waits."""
    place = ProcessFolder(tmp_path)
    place.clear()
    (tmp_path / "key").write_text("secret")
    (place.results / "plain").write_text("text")
    (place.results / "link").symlink_to(tmp_path / "key")
    (place.results / "name").hardlink_to(tmp_path / "key")
    os.mkfifo(place.results / "pipe")
    assert place.result("plain", 3) == b"tex"
    for name in ("link", "name", "pipe"):
        with pytest.raises(OSError, match=r"not a regular file|symbolic"):
            place.result(name, 10)


def _sandboxed(folder: Path, **settings: str) -> Isolation:
    bubblewrap()
    given = {f"CALVE_WORKER__{name.upper()}": value for name, value in settings.items()}
    return load_isolation(load(folder, {"CALVE_WORKER__SANDBOX": "bubblewrap", **given}))


def test_a_program_in_the_sandbox_sees_neither_state_nor_others(tmp_path: Path) -> None:
    """Other processes, other attempts, the state, the settings, sockets of this machine: none of them is there."""
    home = tmp_path / ".calve"
    (home / "attempts" / "other").mkdir(parents=True)
    (home / "attempts" / "other" / "mine").write_text("secret")
    (home / "state.db").write_text("secret")
    (tmp_path / "calve.toml").write_text("# secret\n")
    (tmp_path / "data").write_text("of the project\n")
    (tmp_path / "out").mkdir()
    command = (
        f"ls /proc | grep -c '^[0-9]'; cat {home}/state.db {home}/attempts/other/mine {tmp_path}/calve.toml; "
        f"ls {home}/attempts; cat {tmp_path}/data; touch {tmp_path}/data; touch {tmp_path}/out/made; ls /run; "
        f"cat /proc/{os.getpid()}/environ; pwd; touch here; echo '{{\"a\": 1}}' > $CALVE_OUTPUT"
    )
    context = FakeContext(home, {"shell": {"command": command}})
    outcome = _run(context, tmp_path, _sandboxed(tmp_path, sandbox_writable="out"))
    assert outcome.state is State.DONE, context.text
    assert outcome.outputs["a"] == 1
    assert "secret" not in context.text
    lines = context.text.splitlines()
    assert int(lines[0]) < 10
    assert [context.key, "of the project", str(context.folder / "work")] == [
        line for line in lines[1:] if not line.startswith(("cat:", "touch:", "ls:"))
    ]
    assert f"touch: cannot touch '{tmp_path}/data': Read-only file system" in lines
    assert (tmp_path / "out" / "made").exists()
    assert (context.folder / "work" / "here").exists()


@as_root
def test_a_sandbox_holds_programs_of_other_users_too(project: Path) -> None:
    """It is then made by that user, in a user namespace."""
    (project / ".calve").mkdir()
    context = FakeContext(project / ".calve", {"shell": {"command": "id -u; ls /proc | grep -c '^[0-9]'; touch here"}})
    (project / ".calve").chmod(0o711)
    sandbox = _sandboxed(project).sandbox
    outcome = _run(context, project, Isolation({"*": SALES}, sandbox))
    assert outcome.state is State.DONE, context.text
    uid, processes = context.text.splitlines()
    assert uid == str(SALES.uid)
    assert int(processes) < 10
    assert (context.folder / "work" / "here").stat().st_uid == SALES.uid


def test_a_program_in_the_sandbox_has_time_to_end(tmp_path: Path) -> None:
    """A stop asks the program itself, as without a sandbox; and its exit code is its own."""
    command = "trap 'echo asked; exit 0' TERM; touch ready; while :; do sleep 0.05; done"
    context = shell(tmp_path, command)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(_run(context, tmp_path, _sandboxed(tmp_path))))
    thread.start()
    until((context.folder / "work" / "ready").exists)
    context.interruption.set()
    thread.join()
    assert outcomes[0].state is State.STOPPED
    assert "asked" in context.text
    ended = _run(shell(tmp_path, "exit 7"), tmp_path, _sandboxed(tmp_path))
    assert ended.outputs["exit_code"] == 7


def test_nothing_of_a_sandbox_outlives_a_program_that_does_not_end(tmp_path: Path) -> None:
    """It is killed with all that it started."""
    context = shell(tmp_path, "trap '' TERM; (trap '' TERM; sleep 600) & echo x > ready; sleep 600")
    around = workspace(tmp_path, isolation=_sandboxed(tmp_path), grace_seconds=0.2)
    thread = threading.Thread(target=Shell(around).execute, args=(context,))
    thread.start()
    until((context.folder / "work" / "ready").exists)
    context.interruption.set()
    thread.join()
    assert not [path for path in Path("/proc").glob("[0-9]*") if _works_in(path, context.folder)]


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


def test_sql_runs_in_the_sandbox_too(tmp_path: Path) -> None:
    """A database that the sandbox can only read is not written; one in a writable folder is."""
    (tmp_path / "out").mkdir()
    forks = ForkServers(WORK, workspace(tmp_path, isolation=_sandboxed(tmp_path, sandbox_writable="out")))
    runtime = Sql({}, tmp_path, f"sqlite:///{tmp_path}/.calve/state.db", forks)

    def run(url: str) -> Outcome:
        return runtime.execute(FakeContext(tmp_path, {"sql": {"url": url, "query": "CREATE TABLE t (n INTEGER)"}}))

    refused, made = run("sqlite:///here.db"), run("sqlite:///out/there.db")
    forks.close()
    assert refused.state is not State.DONE
    assert not (tmp_path / "here.db").exists()
    assert made.state is State.DONE, made.message
    assert (tmp_path / "out" / "there.db").exists()


def test_a_sandbox_that_is_not_installed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, not in silence."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnfit, match="bwrap is not on PATH"):
        load_isolation(load(tmp_path, {"CALVE_WORKER__SANDBOX": "bubblewrap"}))


def test_the_folders_of_an_attempt_are_closed_to_others(tmp_path: Path) -> None:
    """Also without any setting."""
    context = shell(tmp_path, "true")
    _run(context, tmp_path, Isolation())
    assert stat.S_IMODE((context.folder / "processes" / "main").stat().st_mode) == 0o700
