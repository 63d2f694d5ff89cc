"""Supervised processes: they end with their worker, never run beside a twin, and are not run again once they ended."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import SLOW, is_gone, number_in, shell, until, workspace

from calve.engine import Outcome, State
from calve.errors import LeaseLost, StoreUnavailable
from calve.steps.processes import streams, supervisor
from calve.steps.processes.folders import Identity, ProcessFolder, _known, machine, members, process_folder
from calve.steps.processes.process import _BOOT, Program, run_program
from calve.steps.processes.streams import Frames, Lines, Output
from calve.steps.processes.supervisor import start_of
from calve.steps.programs.shell import Shell

_WORKER = """
import sys, threading
from pathlib import Path
from calve.steps.programs.shell import Shell
from tests.unit.steps.programs import shell, workspace
home = Path(sys.argv[1])
context = shell(home, sys.argv[2])
work = lambda: Shell(workspace(home)).execute(context)
thread = threading.Thread(target=work)
thread.start()
thread.join()
(home / "executed").touch()
threading.Event().wait()
"""

_FORKING = """
import os, signal, sys
from pathlib import Path
from tests.unit.steps.programs import shell, workspace
from calve.steps.programs.shell import Shell
class Forking(type(shell(Path(sys.argv[1]), ""))):
    def log(self, text):
        if os.fork() == 0:
            signal.pause()
context = Forking(Path(sys.argv[1]), {"shell": {"command": sys.argv[2]}})
Shell(workspace(context.home)).execute(context)
"""
"""A worker that makes a copy of itself, which inherits the pipes of the program."""

_TREE = f"""
echo $$ > main; {SLOW} & echo $! > child
setsid sh -c 'echo $$ > "$1"; exec {SLOW}' sh escaped &
(setsid sh -c 'echo $$ > "$1"; trap "" TERM; {SLOW}; {SLOW}' sh daemon &)
"""
"""Starts a child, one that leaves the session, and one that loses its parent too and cannot be asked to end."""


def _worker(home: Path, command: str, source: str = _WORKER) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[3]
    return subprocess.Popen([sys.executable, "-c", source, home, command], cwd=root, start_new_session=True)


def _in_thread(context: FakeContext, **changes: Any) -> tuple[threading.Thread, list[Outcome]]:
    found: list[Outcome] = []
    runtime = Shell(workspace(context.home, **changes))
    thread = threading.Thread(target=lambda: found.append(runtime.execute(context)))
    thread.start()
    return thread, found


def _numbers(folder: Path) -> list[int]:
    return [number_in(folder / name) for name in ("main", "child", "escaped", "daemon")]


def _supervisor_of(context: FakeContext) -> int:
    place = process_folder(context, "main")
    until(lambda: place.processes() is not None)
    found = place.processes()
    assert found is not None
    return found[1].pid


def test_a_killed_worker_takes_the_whole_tree_with_it(tmp_path: Path) -> None:
    """After kill -9 of the worker nothing of the program is left, wherever it hid."""
    worker = _worker(tmp_path, f"{_TREE} {SLOW}")
    folder = shell(tmp_path, "").folder
    numbers = _numbers(folder / "work")
    assert not any(is_gone(number) for number in numbers)
    worker.kill()
    worker.wait()
    for number in numbers:
        until(lambda number=number: is_gone(number))  # type: ignore[misc]
    assert not (folder / "processes" / "main" / "exit").exists()


def test_a_copy_of_a_killed_worker_keeps_nothing_alive(tmp_path: Path) -> None:
    """A worker that forked left its pipes to the copy; it is the worker that counts."""
    worker = _worker(tmp_path, f"echo $$ > main; echo fork; {SLOW}", _FORKING)
    number = number_in(shell(tmp_path, "").folder / "work" / "main")
    until(lambda: len(members(worker.pid)) > 1)
    worker.kill()
    worker.wait()
    until(lambda: is_gone(number))
    assert members(worker.pid)
    os.killpg(worker.pid, signal.SIGKILL)


def test_a_supervisor_whose_worker_is_gone_runs_nothing(tmp_path: Path) -> None:
    """Whether it was told what to run or not."""
    boot = [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(supervisor.__file__).parent)]
    fields = [str(tmp_path), "here", "1", str(tmp_path), "1", "0", "", "0", "2", "touch", "ran", "PATH=/usr/bin:/bin"]
    message = "\0".join(fields).encode()
    for said in (b"", b"\0" * 4, len(message).to_bytes(8, "big") + message):
        assert subprocess.run(boot, input=said, capture_output=True, check=True).stdout == b""
    assert not (tmp_path / "ran").exists()


def test_a_program_outlives_the_thread_that_started_another(tmp_path: Path) -> None:
    """Threads of a worker come and go; only its end ends programs."""
    first, other = (
        shell(tmp_path, f"echo $$ > main; {SLOW}"),
        FakeContext(tmp_path, {"shell": {"command": "true"}}, key="b"),
    )
    thread, found = _in_thread(first)
    number = number_in(first.folder / "work" / "main")
    short, _ = _in_thread(other)
    short.join()
    assert not is_gone(number)
    first.interruption.set()
    thread.join()
    assert found[0].state is State.STOPPED


def test_a_killed_supervisor_takes_the_program_with_it(tmp_path: Path) -> None:
    """Without a supervisor a program is not left alone: the step fails, in a way that a retry may cure."""
    context = shell(tmp_path, f"echo $$ > main; {SLOW} & echo $! > child; {SLOW}")
    thread, found = _in_thread(context)
    numbers = [number_in(context.folder / "work" / name) for name in ("main", "child")]
    os.kill(_supervisor_of(context), signal.SIGKILL)
    thread.join()
    assert found[0].state is State.PLATFORM_ERROR
    assert "killed by something other than calve" in found[0].message
    assert all(is_gone(number) for number in numbers)


def test_a_supervisor_that_the_system_ends_stops_no_step(tmp_path: Path) -> None:
    """When a machine shuts down all processes are asked to end; nobody meant to stop the step."""
    context = shell(tmp_path, f"echo $$ > main; {SLOW}")
    thread, found = _in_thread(context)
    number_in(context.folder / "work" / "main")
    os.kill(_supervisor_of(context), signal.SIGTERM)
    thread.join()
    assert found[0].state is State.PLATFORM_ERROR


def test_a_step_that_is_stopped_ends_its_whole_tree(tmp_path: Path) -> None:
    """What can be asked to end is asked, the rest is killed; then the step is over."""
    context = shell(tmp_path, f"trap 'echo bye; exit 0' TERM; {_TREE} while :; do sleep 0.05; done")
    thread, found = _in_thread(context)
    numbers = _numbers(context.folder / "work")
    context.interruption.set()
    thread.join()
    assert found[0].state is State.STOPPED
    assert "bye" in context.text
    assert all(is_gone(number) for number in numbers)


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """After the grace period nobody is asked any more."""
    context = shell(tmp_path, "trap '' TERM; echo $$ > main; while :; do sleep 0.05; done")
    thread, found = _in_thread(context, grace_seconds=0.2)
    number = number_in(context.folder / "work" / "main")
    context.interruption.set()
    thread.join()
    assert found[0].state is State.STOPPED
    assert is_gone(number)


def test_a_program_is_ended_when_its_time_is_up(tmp_path: Path) -> None:
    """Time that is up is told from a stop."""
    context = shell(tmp_path, SLOW)
    context.timeout = 0.3
    assert Shell(workspace(tmp_path)).execute(context).state is State.TIMED_OUT


def test_an_interruption_by_time_is_no_stop(tmp_path: Path) -> None:
    """The engine may interrupt because of the time, which the context then says."""
    context = shell(tmp_path, f"echo $$ > main; {SLOW}")
    context.timeout = 600
    thread, found = _in_thread(context)
    number_in(context.folder / "work" / "main")
    context.timeout = 0
    context.interruption.set()
    thread.join()
    assert found[0].state is State.TIMED_OUT


def test_terminate_ends_what_another_thread_runs(tmp_path: Path) -> None:
    """It comes back when all is over, and the other thread finds the step interrupted."""
    context = shell(tmp_path, f"{_TREE} {SLOW}")
    thread, found = _in_thread(context)
    numbers = _numbers(context.folder / "work")
    Shell(workspace(tmp_path)).terminate(context.again())
    assert all(is_gone(number) for number in numbers)
    thread.join()
    assert found[0].state is State.STOPPED


def test_terminate_of_what_never_ran_does_nothing(tmp_path: Path) -> None:
    """And that of what is over neither."""
    context = shell(tmp_path, "true")
    runtime = Shell(workspace(tmp_path))
    runtime.terminate(context)
    assert runtime.execute(context).state is State.DONE
    runtime.terminate(context)


def test_a_step_never_runs_beside_its_twin(tmp_path: Path) -> None:
    """A worker that takes over while the earlier one still runs the program ends that first."""
    command = "echo $$ > main.$$; mv main.$$ main; test -e ../second && exit 0; " + SLOW
    worker = _worker(tmp_path, command)
    context = shell(tmp_path, command)
    number = number_in(context.folder / "work" / "main")
    (context.folder / "second").touch()
    successor = context.again()
    assert Shell(workspace(tmp_path)).execute(successor).state is State.DONE
    assert is_gone(number)
    until((tmp_path / "executed").exists)
    worker.kill()
    worker.wait()


def test_a_supervisor_that_does_not_answer_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin whose supervisor hangs is killed with it."""
    monkeypatch.setattr("calve.steps.processes.folders._MARGIN", 0.1)
    context = shell(tmp_path, f"echo $$ > main; {SLOW} & {SLOW}")
    thread, found = _in_thread(context)
    number = number_in(context.folder / "work" / "main")
    os.kill(_supervisor_of(context), signal.SIGSTOP)
    successor = context.again()
    again, found_again = _in_thread(successor, grace_seconds=0.1)
    thread.join()
    assert found[0].state is State.PLATFORM_ERROR
    assert is_gone(number)
    until((successor.folder / "work" / "main").exists)
    successor.interruption.set()
    again.join()
    assert found_again[0].state is State.STOPPED


def test_what_ended_is_not_run_again(tmp_path: Path) -> None:
    """A worker that takes over finds how the program ended, and what it gave back, in whatever way."""
    command = """echo once >> $COUNTED; echo '{"a": 1}' > $CALVE_OUTPUT
    echo CALVE_OUTPUT_START; echo '{"params": {"b": 2}}'; echo CALVE_OUTPUT_END; exit 3"""
    counted = tmp_path / "counted"
    context = shell(tmp_path, command, env={"COUNTED": str(counted)}, success_codes=[3])
    first = Shell(workspace(tmp_path)).execute(context)
    successor = context.again()
    assert Shell(workspace(tmp_path)).execute(successor) == first
    assert first == Outcome(State.DONE, {"a": 1, "b": 2, "exit_code": 3})
    assert counted.read_text() == "once\n"
    assert "main ended with exit code 3 while no worker watched it" in successor.text


def test_the_end_is_recorded_before_the_worker_can_know_it(tmp_path: Path) -> None:
    """A worker that dies the moment it hears of the end leaves no doubt behind."""

    class Deaf(FakeContext):
        def log(self, text: str) -> None:
            if "end" in text:
                until((self.folder / "processes" / "main" / "exit").exists)
                raise StoreUnavailable

    context = Deaf(tmp_path, {"shell": {"command": "echo end"}})
    with pytest.raises(StoreUnavailable):
        Shell(workspace(tmp_path)).execute(context)
    assert Shell(workspace(tmp_path)).execute(context.again()).state is State.DONE


def test_what_was_cut_short_is_run_again(tmp_path: Path) -> None:
    """A program that died with its worker is run again by the next, in a fresh folder, which the log tells."""
    worker = _worker(tmp_path, f"echo $$ > main; {SLOW}")
    context = shell(tmp_path, "ls -A; echo done")
    number = number_in(context.folder / "work" / "main")
    worker.kill()
    worker.wait()
    successor = context.again()
    successor.artifacts["process"] = {"host": "elsewhere"}
    assert Shell(workspace(tmp_path)).execute(successor).state is State.DONE
    assert is_gone(number)
    told, *lines = successor.text.splitlines()
    assert (
        told == "The worker that ran this step on elsewhere died, and its processes with it; the program starts again."
    )
    assert lines == ["done"]


def test_of_this_machine_no_name_is_reported(tmp_path: Path) -> None:
    """Where it ran is told only if it was elsewhere."""
    successor = shell(tmp_path, "true").again()
    successor.artifacts["process"] = machine()
    Shell(workspace(tmp_path)).execute(successor)
    assert "that ran this step died" in successor.text


def test_the_identity_is_kept_before_the_program_starts(tmp_path: Path) -> None:
    """What tells the machine and the attempt is stored first; a worker that cannot store starts nothing."""

    class Fenced(FakeContext):
        def keep(self, artifacts: Mapping[str, Any]) -> None:
            super().keep(artifacts)
            raise LeaseLost

    context = Fenced(tmp_path, {"shell": {"command": "touch ../ran"}})
    with pytest.raises(LeaseLost):
        Shell(workspace(tmp_path)).execute(context)
    assert context.kept == [{"process": {**machine(), "key": context.key, "name": "main"}}]
    assert not (context.folder / "ran").exists()


def test_a_program_is_ended_when_the_log_cannot_be_written(tmp_path: Path) -> None:
    """Whatever goes wrong in the worker, the program does not outlive the call."""

    class Broken(FakeContext):
        def log(self, text: str) -> None:
            raise StoreUnavailable(text)

    context = Broken(tmp_path, {"shell": {"command": f"echo $$ > main; echo hello; {SLOW}"}})
    with pytest.raises(StoreUnavailable):
        Shell(workspace(tmp_path)).execute(context)
    assert is_gone(number_in(context.folder / "work" / "main"))


def test_orphans_of_a_killed_supervisor_are_killed_by_the_successor(tmp_path: Path) -> None:
    """If worker and supervisor are both killed, the next worker finds the program's group by its number."""
    leader = subprocess.Popen(["sh", "-c", f"{SLOW} & echo $! > child; exit 0"], cwd=tmp_path, start_new_session=True)
    start = start_of(leader.pid)
    child = number_in(tmp_path / "child")
    leader.wait()
    context = shell(tmp_path, "true")
    _pretend(process_folder(context, "main"), Identity(leader.pid, start))
    Shell(workspace(tmp_path)).terminate(context)
    until(lambda: is_gone(child))


def test_a_number_that_was_given_out_again_is_left_alone(tmp_path: Path) -> None:
    """A process is told by its number and start; another one of that number is not ours."""
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    context = shell(tmp_path, "true")
    _pretend(process_folder(context, "main"), Identity(other.pid, "1"))
    Shell(workspace(tmp_path)).terminate(context)
    assert not is_gone(other.pid)
    other.kill()
    other.wait()


def test_numbers_of_another_machine_mean_nothing(tmp_path: Path) -> None:
    """What was written before a reboot, or in another container, names no process of here."""
    place = process_folder(shell(tmp_path, ""), "main")
    mine = Identity(os.getpid(), start_of(os.getpid()))
    _pretend(place, mine)
    assert place.processes() == (mine, mine)
    _pretend(place, mine, where="elsewhere")
    assert place.processes() is None
    (place.path / "process").write_text("half")
    assert place.processes() is None


def test_what_the_machine_does_not_tell_is_nothing() -> None:
    """Not every system has /proc."""
    assert _known(Path("/no/such/file").read_text) == ""


def test_without_starts_any_process_of_the_number_counts() -> None:
    """Where there is no /proc a number is all there is."""
    assert Identity(os.getpid(), "").is_alive()
    over = subprocess.Popen(["true"])
    over.wait()
    assert not Identity(over.pid, "").is_alive()


def _pretend(place: ProcessFolder, program: Identity, where: str | None = None) -> None:
    line = f"{program.pid} {program.start}"
    (place.path / "process").write_text("\n".join([line, line, where or "|".join(machine().values())]))


def test_a_lock_that_a_starting_worker_holds_is_waited_for(tmp_path: Path) -> None:
    """A twin that has not written its number yet is waited for: it cannot be asked, nor is it gone."""
    context = shell(tmp_path, "true")
    lock = os.open(process_folder(context, "main").path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    thread, found = _in_thread(context)
    until((process_folder(context, "main").path / "ended").exists)
    assert not found
    os.close(lock)
    thread.join()
    assert found[0].state is State.DONE


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A step is over when its program is; a last word of what it left is heard, and no open pipe holds it up."""
    context = shell(tmp_path, f"(sleep 0.02; echo late) & {SLOW} & echo $! > child; echo soon")
    assert Shell(workspace(tmp_path)).execute(context).state is State.DONE
    assert is_gone(number_in(context.folder / "work" / "child"))
    assert context.text == "soon\nlate\n"


def test_lines_come_as_they_are_printed(tmp_path: Path) -> None:
    """The log is there while the program runs."""
    context = shell(tmp_path, "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second")
    thread, _ = _in_thread(context)
    until(lambda: context.text == "first\n")
    (context.folder / "work" / "go").touch()
    thread.join()
    assert context.text == "first\nsecond\n"


def test_binary_output_does_no_harm(tmp_path: Path) -> None:
    """What is not UTF-8 is replaced, and so is NUL, which not every database can store."""
    context = shell(tmp_path, r"printf 'a\xff\x00b\n'; head -c 100000 /dev/urandom; printf 'end'")
    assert Shell(workspace(tmp_path)).execute(context).state is State.DONE
    assert context.text.startswith("a\ufffd\ufffdb\n")
    assert context.text.endswith("end\n")
    assert "\0" not in context.text


def test_huge_output_goes_into_the_log_whole(tmp_path: Path) -> None:
    """Which keeps of it what it keeps: see ``calve.engine.logs``."""
    context = shell(tmp_path, "seq 1000000; echo last words")
    assert Shell(workspace(tmp_path)).execute(context).state is State.DONE
    assert context.text.startswith("1\n2\n3\n")
    assert context.text.endswith("\n1000000\nlast words\n")
    assert context.text.count("\n") == 1_000_001


@pytest.mark.parametrize("before", [streams.LINE_BYTES - 3, streams.LINE_BYTES, 5, 0])
def test_a_long_line_is_cut_after_its_secrets_are_hidden(before: int) -> None:
    """Else the first half of one would be shown."""
    printed: list[str] = []
    output = Output(printed.append, lambda text: text.replace("hunter2", "***"))
    output.feed("O", b"x" * before + b"hunt")
    output.feed("O", b"er2" + b"y" * 999_999 + b"\n")
    (line,) = printed
    assert "hun" not in line
    assert line.endswith(" bytes more\n")
    assert len(line) < streams.LINE_BYTES + 50


def test_a_worker_that_is_slow_to_read_loses_nothing(tmp_path: Path) -> None:
    """What does not fit into the pipes waits for it."""

    class Slow(FakeContext):
        def log(self, text: str) -> None:
            until((tmp_path / "go").exists)
            super().log(text)

    context = Slow(tmp_path, {"shell": {"command": "seq 5; touch begun; seq 100000"}})
    thread, found = _in_thread(context)
    until((context.folder / "work" / "begun").exists)
    (tmp_path / "go").touch()
    thread.join()
    assert found[0].state is State.DONE
    assert context.text.splitlines()[5:] == [str(number) for number in range(1, 100001)]


def test_a_large_environment_is_handed_over(tmp_path: Path) -> None:
    """What does not fit into a pipe at once goes through bit by bit."""
    values = {f"V{number}": "x" * 100_000 for number in range(3)}
    context = shell(tmp_path, "echo ${#V0} ${#V1} ${#V2}", env=values)
    assert Shell(workspace(tmp_path)).execute(context).state is State.DONE
    assert context.text == "100000 100000 100000\n"


def test_a_python_that_does_not_work_is_reported(tmp_path: Path) -> None:
    """A supervisor that dies at once is no mystery: what it said is in the message."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho it is broken >&2\n")
    broken.chmod(0o700)
    values = {f"V{number}": "x" * 100_000 for number in range(3)}
    found = Shell(workspace(tmp_path, python=str(broken))).execute(shell(tmp_path, "true", env=values))
    assert found.state is State.PLATFORM_ERROR
    assert "it is broken" in found.message


def test_a_program_is_made_only_when_it_is_needed(tmp_path: Path) -> None:
    """What ended under another worker needs no files of its own any more."""

    def refuse(_: ProcessFolder) -> Program:
        raise AssertionError

    context = shell(tmp_path, "true")
    around = workspace(tmp_path)
    run_program(context, around, lambda _: Program(("true",), {"PATH": os.defpath}))
    assert run_program(context.again(), around, refuse).code == 0


def test_an_end_that_was_half_written_counts_for_nothing(tmp_path: Path) -> None:
    """Then the program is run again."""
    context = shell(tmp_path, "echo ran").again()
    place = process_folder(context, "main")
    (place.path / "exit").write_text("")
    (place.path / "source").mkdir()
    assert Shell(workspace(tmp_path)).execute(context).state is State.DONE
    assert context.text == "ran\n"
    assert not (place.path / "source").exists()


def test_frames_are_found_however_they_are_cut() -> None:
    """A pipe knows nothing of frames."""
    data = b"O\x00\x00\x00\x03abcX\x00\x00\x00\x010E\x00\x00\x00\x00"
    frames = Frames()
    found = [frame for number in range(len(data)) for frame in frames.feed(data[number : number + 1])]
    assert found == [("O", b"abc"), ("X", b"0"), ("E", b"")]


def test_long_lines_are_cut() -> None:
    """And what is cut is counted."""
    lines = Lines()
    assert lines.feed(b"x" * streams.LINE_BYTES) == []
    assert lines.feed(b"y" * 10) == []
    assert lines.feed(b"z\nnext\n") == ["x" * streams.LINE_BYTES + " … and 11 bytes more", "next"]


def test_a_line_that_was_written_over_shows_its_last_text() -> None:
    """Progress bars go back to the start of the line; what a terminal shows in the end is kept."""
    assert Lines().feed(b"10%\r50%\r100%\r\nok\r\n") == ["100%", "ok"]


def test_only_the_end_of_standard_error_is_at_hand() -> None:
    """A bounded number of lines is remembered."""
    output = Output(lambda _: None)
    output.feed("E", b"".join(b"%d\n" % number for number in range(1000)))
    output.feed("O", b"other\nhalf")
    output.close()
    assert list(output.tail) == [str(number) for number in range(1000 - streams.TAIL_LINES, 1000)]
