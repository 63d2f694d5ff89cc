"""Workflows run one after the other, by a worker of this process."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calve.app import open_project
from calve.demo import Runs
from calve.demo.playback import measured
from calve.engine import Outcome, State, StepContext
from calve.errors import DefinitionInvalid, StepFailed
from calve.settings import embedded, load


class Spark:
    """Answers every statement in no time, but for those that are to fail or to take long."""

    def execute(self, context: StepContext) -> Outcome:
        """Do as the statement says."""
        config = context.params["spark"]
        context.log(f"-- {config['script']}\n")
        match config["script"]:
            case "FAIL":
                return Outcome(State.USER_ERROR, message="There is no such table.")
            case "WAIT":
                return Outcome(State.STOPPED if context.wait(30) else State.DONE)
        rows = {"rows": json.dumps([{"a": 1}])} if config["fetch"] == "rows" else {}
        used = {"rows_read": 5, "bytes_read": 50, "statements": [{"statement": "INSERT", "seconds": 0.0}]}
        outputs = {"row_count": 1, "published": False, "branch": "", **rows}
        return Outcome(State.DONE, outputs, {"spark": used})

    def terminate(self, context: StepContext) -> None:
        """Have nothing to end."""


class LocalWorker:
    """A worker in a thread."""

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.look: Callable[[], None] = lambda: None


@contextmanager
def _working(folder: Path, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[Runs]:
    with open_project(embedded(folder, load(folder, {}))) as project:
        local = LocalWorker()
        worker = project.worker(runtimes={"Spark": Spark}, listener=lambda _: local.changed.set())
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield Runs(project.engine, local, is_stopped)
        finally:
            worker.end()
            thread.join()


def test_rows_of_a_query_come_back(tmp_path: Path) -> None:
    """What a step fetched is read from its outputs."""
    with _working(tmp_path) as runs:
        runs.sql("CREATE TABLE t (a INT)")
        assert runs.rows("SELECT 1 AS a") == [{"a": 1}]


def test_figures_of_a_run_come_from_its_steps(tmp_path: Path) -> None:
    """What was read, and where the time went, down to the engine between the steps."""
    with _working(tmp_path) as runs:
        ended = runs.run("playback.statement")
    stage = measured(ended, "daily", 3, 30)
    assert (stage.rows_read, stage.bytes_read, stage.rows_written, stage.bytes_written) == (5, 50, 3, 30)
    assert [part.name for part in stage.parts] == [
        "daily: sql, INSERT",
        "daily: sql, session and publishing",
        "daily: engine",
    ]
    assert sum(part.seconds for part in stage.parts) == pytest.approx(stage.seconds)


def test_a_failed_step_tells_its_error_and_its_log(tmp_path: Path) -> None:
    """At once: nobody waits for the next attempts."""
    with _working(tmp_path) as runs, pytest.raises(StepFailed) as caught:
        runs.sql("FAIL")
    assert "There is no such table." in caught.value.message
    assert "| -- FAIL" in caught.value.message


def test_whoever_stops_it_stops_the_run_too(tmp_path: Path) -> None:
    """A step under way is ended."""
    with _working(tmp_path, lambda: True) as runs, pytest.raises(KeyboardInterrupt):
        runs.sql("WAIT")


def test_a_file_that_is_not_a_definition_is_refused(tmp_path: Path) -> None:
    """With the first of its problems."""
    file = tmp_path / "wrong.yaml"
    file.write_text("Workflow: {id: wrong, jobs: [{job: {id: a, type: Nothing}}]}", encoding="utf-8")
    with _working(tmp_path) as runs, pytest.raises(DefinitionInvalid, match=r"wrong\.yaml"):
        runs.push(file)
