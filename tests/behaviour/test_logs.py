"""Logs of steps: what the store keeps of them, how they are read through every door, and where whole ones are kept."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update
from tests.behaviour.engine.values import attempt_of, pushed, running
from tests.engines import DONE, FATAL_ERROR, Playground, live
from tests.servers import Site, services_on, site_on

from calve.access import LOOPBACK
from calve.app import log_uploads
from calve.app.log_uploads import LogUploads, RetentionWithFiles, uploads_on
from calve.cli import entry
from calve.client import Client
from calve.engine import Changes, LogChunk, LogExtent, LogLimits, Outcome, StepContext, spooled
from calve.engine.logs import Spool
from calve.errors import LakeError, RequestInvalid
from calve.lake import Files
from calve.operations import Caller, Operations
from calve.retention import Ages, Pruner, RecordKind
from calve.settings import StepLogSettings
from calve.store import SqlEngineState
from calve.store.tables import attempt as attempt_table, log_chunk

ONE = "Workflow: {id: w, jobs: [{job: {id: job, type: Sleep}}]}"
TWO = """
Workflow:
  id: w
  jobs: [{job: {id: job, type: Sleep}}, {job: {id: after, type: Sleep}}]
  dag: {job: [after]}
"""
LINES = "".join(f"line {number:04}\n" for number in range(1_000))
"""10,000 bytes."""
SMALL = LogLimits(head=2_000, tail=1_000)
DAY = 86_400_000


# The store.


def test_pieces_between_two_places_are_dropped(engine: SqlEngineState) -> None:
    """When a later one is kept that says so; those that reach beyond a place stay."""
    for number in range(6):
        engine.append_log(LogChunk("a", number, f"{number}" * 10, number * 10, number))
    engine.append_log(LogChunk("a", 6, "6" * 10, 60, 6, dropped=(20, 45)))
    engine.append_log(LogChunk("b", 0, "other", dropped=(0, 0)))
    assert engine.log_extents("a") == [LogExtent(at, 10, at // 10, at // 10) for at in (0, 10, 40, 50, 60)]
    assert engine.log_texts("a", [2, 4, 5]) == {4: "4" * 10, 5: "5" * 10}
    assert engine.log_extents("none") == []


def test_pieces_that_claim_the_same_start_follow_each_other(engine: SqlEngineState) -> None:
    """So does one that says that it begins within another."""
    for number in range(3):
        engine.append_log(LogChunk("a", number, "é\n"))
    with engine._transactions._database.write("test") as connection:
        connection.execute(update(log_chunk).values(start=0, line=0))
    engine.append_log(LogChunk("a", 3, "late\n", 4))
    assert engine.log_extents("a") == [
        LogExtent(0, 3, 0),
        LogExtent(3, 3, 1),
        LogExtent(6, 3, 2),
        LogExtent(9, 5, 3),
    ]


def test_files_of_logs_are_known(engine: SqlEngineState) -> None:
    """By the place where each begins; the same place is written anew."""
    engine.keep_log_file("a", LogExtent(100, 0, address="s3://b/2"))
    engine.keep_log_file("a", LogExtent(0, 100, address="s3://b/1"))
    engine.keep_log_file("a", LogExtent(100, 7, address="s3://b/2"))
    assert engine.log_files("a") == [LogExtent(0, 100, address="s3://b/1"), LogExtent(100, 7, address="s3://b/2")]
    assert engine.log_files("b") == []


def test_how_runs_ended_is_reported_by_their_attempts(engine: SqlEngineState) -> None:
    """Those that nobody knows are left out."""
    pushed(engine)
    run = running(engine)
    attempt = attempt_of(run)
    engine.commit(Changes(runs=[run], new_attempts=[attempt]))
    assert list(engine.run_ends([attempt.uuid, "none"])) == [attempt.uuid]
    assert engine.run_ends([]) == {}


# A step that writes much.


@pytest.fixture
def small(playground: Playground) -> Playground:
    """Give a playground that keeps little of a log."""
    playground.executor.limits = SMALL
    playground.push(ONE)
    return playground


def shown(playground: Playground) -> str:
    """Return the log of the one step, as people see it."""
    uuid = playground.attempt(playground.fresh(playground.state.instances()[0]), "job").uuid
    return "".join(page.shown() for page in playground.engine.log_reader(uuid).pages())


def test_the_first_and_the_last_of_a_log_are_kept(small: Playground) -> None:
    """Whatever its size, and while it is written: who looks meanwhile sees its end, too."""
    seen: list[str] = []

    def write(context: StepContext) -> Outcome:
        for line in LINES.splitlines():
            context.log(line)
            if line.endswith(("00", "50")):
                small.executor.flush()
        seen.append(small.engine.log_reader(context.key).tail(2).text)
        return DONE

    small.script.parts["job"] = write
    small.start()
    assert seen[0] == "line 0949\nline 0950\n"
    found = shown(small)
    assert found.startswith(LINES[:2_000])
    assert found.endswith(LINES[-1_000:])
    assert found.count(" bytes of the log are left out here …\n") == 1
    assert len(found) < 4_500
    assert not list(small.folder.iterdir())


def test_a_secret_is_hidden_wherever_the_log_is_cut(small: Playground) -> None:
    """No half of one is shown at the end of the head, nor at the beginning of the tail."""
    secret = "correct horse battery staple"
    small.secrets["S"] = secret
    small.push("Workflow: {id: v, jobs: [{job: {id: job, type: Sleep, 's<secret>': S}}]}")

    def write(context: StepContext) -> Outcome:
        context.log(secret * 1_000)
        for number in range(1_000):
            context.log(f"{number} {secret}")
        return DONE

    small.script.parts["job"] = write
    run = small.start("v")
    uuid = small.attempt(run, "job").uuid
    found = "".join(page.shown() for page in small.engine.log_reader(uuid).pages())
    assert "horse" not in found
    assert "999 ***\n" in found


def test_what_a_killed_worker_has_written_is_not_lost(small: Playground) -> None:
    """Its last words lie in a file, though it had no time to hand them in; the next worker finds them."""

    def write(context: StepContext) -> Outcome:
        context.log("last words")
        raise KeyboardInterrupt

    small.script.parts["job"] = write
    small.begin()
    with pytest.raises(KeyboardInterrupt):
        small.settle()
    small.executor.contexts.clear()
    assert shown(small) == ""

    def again(context: StepContext) -> Outcome:
        context.log("again")
        return DONE

    small.script.parts["job"] = again
    small.state.release(small.state.heartbeat(small.worker, is_draining=False).owned)
    small.settle()
    assert shown(small) == "last words\nagain\n"
    assert not list(small.folder.iterdir())


# Reading, through every door.


@dataclass
class Doors:
    """A server with a log of which the middle is left out, and a folder whose commands ask it."""

    site: Site
    capsys: pytest.CaptureFixture[str]

    def rest(self, query: str, code: int = 200, **headers: str) -> Any:
        """Ask by REST."""
        answer = self.site.client.get(
            f"/api/v3/workflows/w/instances/1/steps/job/logs?{query}", headers={"Accept": "*/*"} | headers
        )
        assert answer.status_code == code, answer.text
        return answer

    def calve(self, *options: str, code: int = 0) -> tuple[str, str]:
        """Ask by command."""
        self.capsys.readouterr()
        assert entry.run(["logs", "w", "1", "job", *options]) == code
        said = self.capsys.readouterr()
        return said.out, said.err


def _log(context: StepContext) -> Outcome:
    for line in LINES.splitlines():
        context.log(line)
    return DONE


@pytest.fixture
def doors(
    small: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Doors]:
    """Serve a log."""
    small.script.parts["job"] = _log
    small.start()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with site_on(small) as site:
        monkeypatch.setenv("CALVE_URL", site.url)
        yield Doors(site, capsys)


def test_the_same_call_reads_a_log_here_and_there(doors: Doors) -> None:
    """Its first part, if no other is asked for."""
    with Client(doors.site.url) as client:
        there = client.get_logs("w", 1, "job")
    here = Operations(Caller(services_on(doors.site.playground), LOOPBACK)).get_logs("w", 1, "job")
    assert there == here
    assert there["text"].startswith("line 0000\n")


LEFT_OUT = "… 7,000 bytes of the log are left out here …\n"
KEPT = LINES[:2_000] + LEFT_OUT + LINES[9_000:]


def test_rest_gives_a_log_by_place_by_its_end_and_by_what_it_holds(doors: Doors) -> None:
    """As text with headers, or as JSON."""
    assert doors.rest("").text == KEPT
    page = doors.rest("offset=20&limit=20")
    assert page.text == "line 0002\nline 0003\n"
    assert {name: page.headers[f"x-log-{name}"] for name in ("offset", "next-offset", "size", "left-out")} == {
        "offset": "20",
        "next-offset": "40",
        "size": "10000",
        "left-out": "0",
    }
    assert doors.rest("offset=5000&limit=10", Accept="application/json").json() == {
        "offset": 9_000,
        "text": "line 0900\n",
        "next_offset": 9_010,
        "size": 10_000,
        "left_out": 4_000,
    }
    assert doors.rest("offset=-20").text == "line 0998\nline 0999\n"
    assert doors.rest("limit=10").text == "line 0000\n"
    assert doors.rest("tail=3").text == "line 0997\nline 0998\nline 0999\n"
    found = doors.rest("find=LINE%20099&ignore_case=true&limit=2").json()
    assert [match["line"] for match in found["matches"]] == [991, 992]
    assert (found["next_offset"], found["left_out"]) == (9_920, 7_000)
    assert doors.rest("find=LINE").json()["matches"] == []
    assert doors.rest("find=line%200000&offset=10").json()["matches"] == []
    for wrong in ("tail=3&offset=1", "find=x&tail=2", "find=x&follow=true", "tail=0", "limit=0", "find=", "offset=x"):
        doors.rest(wrong, 400)


def test_a_followed_log_can_begin_at_its_end(doors: Doors) -> None:
    """By REST, and by command."""
    assert doors.rest("follow=true&tail=2").text == "line 0998\nline 0999\n"
    assert doors.rest("follow=true&offset=8995").text == "… 5 bytes of the log are left out here …\n" + LINES[9_000:]
    assert doors.rest("follow=true").text == KEPT
    assert doors.calve("-f", "--tail", "1") == ("line 0999\n", "")


def test_a_command_gives_a_log_by_place_by_its_end_and_by_what_it_holds(doors: Doors) -> None:
    """Of a server."""
    _commands(doors)


def _commands(doors: Doors) -> None:
    assert doors.calve() == (KEPT, "")
    assert doors.calve("--tail", "2") == ("line 0998\nline 0999\n", "")
    assert doors.calve("--offset", "10", "--limit", "10") == ("line 0001\n", "")
    assert doors.calve("--offset", "1990") == ("line 0199\n" + LEFT_OUT + LINES[9_000:], "")
    assert doors.calve("--offset", "1990", "--limit", "20") == ("line 0199\n" + LEFT_OUT + "line 0900\n", "")
    assert doors.calve("--offset", "-10") == ("line 0999\n", "")
    assert doors.calve("--limit", "5") == ("line \n", "")
    assert json.loads(doors.calve("--tail", "1", "--json")[0])["log"] == "line 0999\n"
    out, err = doors.calve("--find", "LINE 000", "-i", "--limit", "2")
    assert (out, err) == ("1: line 0000\n2: line 0001\n", "To search the rest: --offset 20\n")
    out, err = doors.calve("--find", "line 0950")
    assert (out, err) == ("951: line 0950\n", "7,000 bytes of the log are not kept, and were not searched.\n")
    assert doors.calve("--find", "nowhere", "--offset", "9500") == ("", "No line contains that text.\n")
    assert json.loads(doors.calve("--find", "0950", "--json")[0])["matches"] == [
        {"offset": 9_500, "line": 951, "text": "line 0950"}
    ]
    for wrong in (["--tail", "1", "--offset", "2"], ["-f", "--find", "x"], ["-f", "--limit", "3"], ["--tail", "0"]):
        doors.calve(*wrong, code=2)


def test_a_client_reads_logs(doors: Doors) -> None:
    """By methods of its own."""
    with Client(doors.site.url) as client:
        assert "".join(client.logs("w", 1, "job")) == KEPT
        assert "".join(client.logs("w", 1, "job", is_followed=True, tail=1)) == "line 0999\n"
        assert client.log_page("w", 1, "job")["text"] == LINES[:2_000]
        assert client.log_page("w", 1, "job", tail=1)["offset"] == 9_990
        assert client.find_in_log("w", 1, "job", "line 0001")["matches"][0]["line"] == 2
        with pytest.raises(RequestInvalid):
            client.log_page("w", 1, "job", offset=1, tail=1)


def test_each_run_has_logs_of_its_own(
    playground: Playground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its attempts are counted from 1: without the run, the newest is meant."""
    playground.push(ONE)
    playground.script.parts["job"] = [FATAL_ERROR, DONE]
    first = playground.start()
    second = playground.restart(first)
    for run, text in ((first, "no disk\n"), (second, "done\n")):
        playground.state.append_log(LogChunk(playground.attempt(run, "job").uuid, 0, text))
    with site_on(playground) as site, Client(site.url) as client:
        assert client.log_page("w", 1, "job", attempt=1)["text"] == "done\n"
        assert client.log_page("w", 1, "job", attempt=1, run=1)["text"] == "no disk\n"
        assert client.find_in_log("w", 1, "job", "disk", run=1)["matches"][0]["line"] == 1
        assert "".join(client.logs("w", 1, "job", run=1)) == "no disk\n"
        assert "".join(client.logs("w", 1, "job", run=1, is_followed=True)) == "no disk\n"
        site.get("/workflows/w/instances/1/steps/job/logs?run=3", 404)
        monkeypatch.setenv("CALVE_URL", site.url)
        assert Doors(site, capsys).calve("--run", "1") == ("no disk\n", "")


def test_the_log_of_a_step_that_a_restart_kept_is_read(
    playground: Playground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its attempt belongs to the run before, which need not be named."""
    playground.push(TWO)
    playground.script.parts["after"] = [FATAL_ERROR, DONE]
    first = playground.start()
    playground.state.append_log(LogChunk(playground.attempt(first, "job").uuid, 0, "kept\n"))
    playground.restart(first)
    with site_on(playground) as site:
        monkeypatch.setenv("CALVE_URL", site.url)
        doors = Doors(site, capsys)
        assert doors.calve() == doors.calve("--attempt", "1") == ("kept\n", "")
        for options in ((), ("--attempt", "1"), ("--run", "1")):
            said = json.loads(doors.calve("--json", *options)[0])
            assert (said["log"], said["workflow_run_id"], said["step_attempt_id"]) == ("kept\n", 1, 1)
        doors.calve("--run", "2", code=1)


def test_a_command_reads_the_project_itself(
    small: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the same way as from a server."""
    small.script.parts["job"] = _log
    small.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALVE_STORE__URL", small.url)
    _commands(Doors(None, capsys))  # type: ignore[arg-type]


def test_a_log_is_followed_here_while_it_grows(
    small: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its end."""
    begun, free = threading.Event(), threading.Event()

    def write(context: StepContext) -> Outcome:
        context.log("one\ntwo\n")
        small_worker.flush()
        begun.set()
        free.wait(30)
        context.log("three\n")
        return DONE

    small.script.parts["job"] = write
    small.begin()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALVE_STORE__URL", small.url)
    with live(small) as worker:
        small_worker = worker._executor
        assert begun.wait(30)
        threading.Timer(0.5, free.set).start()
        assert Doors(None, capsys).calve("-f", "--tail", "1") == ("two\nthree\n", "")  # type: ignore[arg-type]


# Whole logs, kept somewhere else.


@pytest.fixture
def uploads(small: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogUploads:
    """Give what takes logs to a folder."""
    monkeypatch.setattr(log_uploads, "PART", 3_000)
    small.executor.limits = replace(SMALL, part=3_000)
    small.tools = replace(small.tools, log_files=Files())
    small.engine = replace(small.engine, tools=small.tools)
    found = uploads_on(small.folder, StepLogSettings(location="whole logs"), tmp_path, small.state)
    assert found is not None
    return found


def parts(tmp_path: Path) -> list[tuple[int, int]]:
    """Return where the files begin, and how long they are."""
    found = sorted((tmp_path / "whole logs").rglob("*.log"), key=lambda path: path.name)
    return [(int(path.stem), path.stat().st_size) for path in found]


def test_a_whole_log_is_kept_in_parts(small: Playground, uploads: LogUploads, tmp_path: Path) -> None:
    """While the step runs, and for good when it is over; nothing is left on the worker."""

    def write(context: StepContext) -> Outcome:
        for number, line in enumerate(LINES.splitlines()):
            context.log(line)
            if number == 499:
                uploads.turn()
                uploads.turn()
                assert parts(tmp_path) == [(0, 3_000), (3_000, 2_000)]
        return DONE

    small.script.parts["job"] = write
    run = small.start()
    uploads.turn()
    assert parts(tmp_path) == [(0, 3_000), (3_000, 3_000), (6_000, 3_000), (9_000, 1_000)]
    assert not list(small.folder.iterdir())
    uploads.turn()
    uuid = small.attempt(run, "job").uuid
    reader = small.engine.log_reader(uuid)
    assert shown(small) == LINES
    assert reader.page(5_000, 10).text == "line 0500\n"
    assert [match.line for match in reader.find("line 0444").matches] == [445]
    folder = tmp_path / "whole logs" / "w" / "1" / "1" / "job" / f"1-{uuid}"
    assert folder.is_dir()


def test_a_place_that_is_unavailable_costs_nothing(
    small: Playground, uploads: LogUploads, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so once it is over, and it is tried again."""
    (tmp_path / "whole logs").write_text("in the way")

    def write(context: StepContext) -> Outcome:
        context.log("a line")
        uploads.turn()
        return DONE

    small.script.parts["job"] = write
    run = small.start()
    for _ in range(2):
        uploads.turn()
    assert run.status.value == "SUCCEEDED"
    said = shown(small)
    assert said.startswith("a line\nThe whole log could not be uploaded to ")
    assert said.count("could not be uploaded") == 1
    assert len(caplog.records) == 3
    (tmp_path / "whole logs").unlink()
    uploads.turn()
    assert parts(tmp_path) == [(0, 7)]
    assert not list(small.folder.iterdir())


def test_a_log_whose_attempt_is_gone_goes(small: Playground, uploads: LogUploads, tmp_path: Path) -> None:
    """A workflow that was deleted leaves nothing; another process may be faster."""
    Spool(small.folder / "unknown" / "log", 100).write(0, b"text")
    (small.folder / "unknown" / "work").mkdir()
    uploads.turn()
    assert [path.name for path in (small.folder / "unknown").iterdir()] == ["work"]
    assert not (tmp_path / "whole logs").exists()

    class Gone(LogUploads):
        """Finds that a file is gone."""

        def _take(self, spool: Path) -> None:
            raise FileNotFoundError(spool)

    Spool(small.folder / "other" / "log", 100).write(0, b"text")
    Gone(small.folder, "x", Files(), small.state).turn()
    assert spooled(small.folder / "other" / "log")


def test_logs_stay_here_unless_there_is_a_place(small: Playground, tmp_path: Path) -> None:
    """A place is a folder of the project, or an address."""
    assert uploads_on(small.folder, StepLogSettings(), tmp_path, small.state) is None
    for location in ("s3://bucket/logs", "file:/logs", "gs://bucket"):
        found = uploads_on(small.folder, StepLogSettings(location=location), tmp_path, small.state)
        assert found is not None
        assert found.location == location


def test_files_go_with_their_log_or_their_instance(small: Playground, uploads: LogUploads, tmp_path: Path) -> None:
    """First the file, and then what is known of it; what cannot be deleted now is tried again."""

    class Stuck(Files):
        """Cannot delete anything."""

        def delete(self, path: str) -> bool:
            raise LakeError("It is away.", path=path)

    small.script.parts["job"] = _log
    first = small.start()
    small.start()
    uploads.turn()
    pruner = Pruner(
        RetentionWithFiles(small.store.retention, Stuck()), Ages({RecordKind.LOG_FILES: 10 * DAY}), small.clock
    )
    assert pruner.survey() == {RecordKind.LOG_FILES: 0}
    small.clock.now += 11 * DAY
    assert (pruner.survey(), pruner.prune()) == ({RecordKind.LOG_FILES: 8}, {RecordKind.LOG_FILES: 0})
    assert len(parts(tmp_path)) == 8
    pruner.state = RetentionWithFiles(small.store.retention, Files())
    small.clock.now -= 11 * DAY
    with small.store._database.write("test") as connection:
        connection.execute(delete(attempt_table).where(attempt_table.c.run_uuid == first.uuid))
    next((tmp_path / "whole logs").rglob("*.log")).unlink()
    assert pruner.prune() == {RecordKind.LOG_FILES: 4}
    small.clock.now += 11 * DAY
    assert pruner.prune() == {RecordKind.LOG_FILES: 4}
    assert parts(tmp_path) == []
    assert pruner.state.position("x", 3) == 3
    pruner.state.move("x", 3, 4)
