"""Workflows of a folder, pushed and run one after the other by a worker in this process."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from calve.definition import Definition, ScriptFolder, installed, load
from calve.engine import Address, Attempt, Engine, Run, RunStatus, StepStatus, params_from_stored
from calve.errors import ActionRefused, DefinitionInvalid, StepFailed

_OFTEN = 0.25
_LINES = 8
_OWN_FAULT = frozenset({StepStatus.USER_FAILED, StepStatus.FATALLY_FAILED, StepStatus.TIMED_OUT})
_STATEMENT = """
Workflow:
  id: playback.statement
  statement: SELECT 1
  fetch: none
  jobs:
    - job:
        id: sql
        type: Spark
        spark: {script: '${statement}', fetch: '${fetch}'}
"""


class LocalWorker(Protocol):
    """A worker of this process."""

    changed: Event
    """An event that is set whenever the worker has done something."""

    @property
    def look(self) -> Callable[[], None]:
        """Make sure that the worker runs; raise its errors."""
        ...


@dataclass(frozen=True, slots=True)
class SucceededRun:
    """A run that succeeded, and the attempts of its steps."""

    run: Run
    attempts: tuple[Attempt, ...]

    @property
    def seconds(self) -> float:
        """Seconds from the request to the end."""
        return ((self.run.ended_at or 0) - self.run.created_at) / 1_000


class Runs:
    """Pushes and runs workflows."""

    def __init__(self, engine: Engine, worker: LocalWorker, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._engine, self._worker, self._is_stopped = engine, worker, is_stopped
        self._push(load(_STATEMENT, name="statement", vocabulary=installed()).definition)

    def push(self, file: Path) -> str:
        """Push a definition; return the workflow's id."""
        loaded = load(file.read_bytes(), name=file.name, vocabulary=installed(), scripts=ScriptFolder(file.parent))
        if loaded.definition is None:
            raise DefinitionInvalid(f"{file.name}: {loaded.problems[0].message}")
        return self._push(loaded.definition)

    def run(self, workflow: str, params: Mapping[str, Any] | None = None) -> SucceededRun:
        """Run a workflow to its end.

        Raises:
            StepFailed: it did not succeed.
            KeyboardInterrupt: the user pressed Ctrl-C; the run is stopped, too.
        """
        run = self._engine.start(workflow, params=params or {}).run
        is_stopping, failure = False, None
        while not run.status.is_terminal:
            self._worker.look()
            failure = failure or self._failure(run)
            if not is_stopping and (failure is not None or self._is_stopped()):
                is_stopping = True
                self._stop(run)
            self._worker.changed.wait(_OFTEN)
            self._worker.changed.clear()
            run = self._engine.state.run(run.workflow_id, run.instance_id, run.run_id) or run
        return self._ended(run, failure)

    def _ended(self, run: Run, failure: StepFailed | None) -> SucceededRun:
        if self._is_stopped():
            raise KeyboardInterrupt
        failure = failure or self._failure(run)
        if failure is not None or run.status is not RunStatus.SUCCEEDED:
            raise failure or StepFailed(f"{run.workflow_id} {run.status}: {run.message}")
        snapshot = self._engine.state.load(run.uuid)
        return SucceededRun(run, tuple(snapshot.attempts) if snapshot else ())

    def sql(self, statements: str) -> None:
        """Run statements in a step of their own."""
        self.run("playback.statement", {"statement": statements})

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Run a query in a step of its own, and return its rows."""
        ended = self.run("playback.statement", {"statement": query, "fetch": "rows"})
        rows: list[dict[str, Any]] = json.loads(params_from_stored(ended.attempts[0].params)["rows"].result)
        return rows

    def _push(self, definition: Definition | None) -> str:
        if definition is None:
            raise DefinitionInvalid
        return self._engine.push(definition).workflow_id

    def _stop(self, run: Run) -> None:
        try:
            self._engine.stop(Address(run.workflow_id, run.instance_id, run.run_id, ()), reason="the demo ends")
        except ActionRefused:
            return  # it is over already

    def _failure(self, run: Run) -> StepFailed | None:
        """Return the error of a step that failed through its own fault, without waiting for its retries."""
        snapshot = self._engine.state.load(run.uuid)
        for attempt in snapshot.attempts if snapshot else ():
            if attempt.status in _OWN_FAULT:
                log = "".join(chunk.text for chunk in self._engine.state.log(attempt.uuid))
                lines = "".join(f"\n  | {line}" for line in log.splitlines()[-_LINES:])
                what = f"{run.workflow_id}, step {attempt.step_id}, {attempt.status}"
                said = " ".join(str(entry["message"]) for entry in attempt.timeline)
                return StepFailed(f"{what}: {said}{lines}")
        return None
