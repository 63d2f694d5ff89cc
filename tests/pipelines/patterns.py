"""The examples of patterns on a lake: their tables, their workflows, and whether incremental is equal to everything."""

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.worker_pool import wait_until
from tests.integration.tables import KINDS, canonical

from calve.app import Project, WorkerThread
from calve.cli import entry
from calve.engine import Address, Breakpoint, Run, RunPolicy, RunStatus, StepStatus

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples" / "patterns"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where all examples are run: a project, a worker that waits for work, and a Spark."""

    folder: Path
    project: Project
    worker: WorkerThread
    spark: "SparkSession"

    def sql(self, *statements: str) -> list[Any]:
        """Run statements; return the last one's rows."""
        return [self.spark.sql(statement).collect() for statement in statements][-1]

    def push(self, folder: Path) -> None:
        """Push all workflows of an example, as a user does."""
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = entry.run(["-C", str(self.folder), "push", *map(str, sorted(folder.glob("*.yaml")))])
        assert code == 0, out.getvalue() + err.getvalue()

    def finished(self, run: Run) -> Run:
        """Wait for the end of an instance; it must be a good one."""
        wait_until(lambda: self._fresh(run).status.is_terminal)
        ended = self._fresh(run)
        assert ended.status is RunStatus.SUCCEEDED, self.story()
        return ended

    def killed_before(self, run: Run, step_id: str, meanwhile: Callable[[], None]) -> None:
        """Let an instance, paused before a step, come there; then do something, and kill it."""
        state = self.project.store.engine

        def is_paused() -> bool:
            attempt = state.newest_attempt(run.workflow_id, run.instance_id, step_id)
            return attempt is not None and attempt.status is StepStatus.PAUSED

        wait_until(lambda: is_paused() or self._fresh(run).status.is_terminal)
        assert is_paused(), self.story()
        meanwhile()
        self.project.engine.kill(Address(run.workflow_id, run.instance_id))
        wait_until(lambda: self._fresh(run).status.is_terminal)

    def story(self) -> str:
        """Return what is told of all attempts that did not succeed, and their logs."""
        with redirect_stdout(io.StringIO()) as out:
            entry.run(["-C", str(self.folder), "status", "--json"])
        return out.getvalue()

    def _fresh(self, run: Run) -> Run:
        self.worker.check()  # a worker that has died would leave the run as it is for ever
        found = self.project.store.engine.run(run.workflow_id, run.instance_id)
        assert found is not None
        return found


@dataclass(frozen=True)
class Scene:
    """One example on tables of its own, of one of ``KINDS``."""

    stage: Stage
    name: str
    kind: str
    targets: Mapping[str, str]
    """The tables to look at, and the files with the queries that compute them from everything."""

    @property
    def folder(self) -> Path:
        """Where the example is."""
        return EXAMPLES / self.name

    @cached_property
    def namespace(self) -> str:
        """Where its tables are."""
        return re.sub(r"\W", "_", f"{self.name}_{self.kind}")

    def build(self) -> None:
        """Make the tables and push the workflows."""
        statements = [part for part in self._read("tables.sql").split(";") if part.strip()]
        version, mode = KINDS[self.kind]
        given = {"format-version": str(version)} | {f"write.{do}.mode": mode for do in ("delete", "update", "merge")}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
        tables = re.findall(r"TABLE IF NOT EXISTS (\S+)", ";".join(statements))
        self.stage.sql(*statements, *(f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})" for table in tables))
        self.stage.push(self.folder)

    def change(self, *statements: str) -> None:
        """Change the sources."""
        self.stage.sql(*(self._moved(statement) for statement in statements))

    def run(self) -> Run:
        """Run the workflow to its end."""
        return self.stage.finished(self._start())

    def run_killed(self, before: str, *meanwhile: str) -> None:
        """Run the workflow; kill it before a step, while the sources change; restart it from its beginning."""
        engine = self.stage.project.engine
        pause = Breakpoint(self._workflow_id, before)
        engine.pause(pause)
        run = self._start()
        self.stage.killed_before(run, before, lambda: self.change(*meanwhile))
        engine.unpause(pause)
        address = Address(run.workflow_id, run.instance_id)
        self.stage.finished(engine.restart(address, policy=RunPolicy.RESTART_FROM_BEGINNING).run)

    def check(self) -> None:
        """Fail unless each target holds what its query computes from everything."""
        for table, query in self.targets.items():
            expected = self._rows(self._read(query))
            assert self._rows(f"SELECT * FROM {self._moved(table)}") == expected, table
            assert expected, "nothing to compare"

    def _start(self) -> Run:
        found = re.findall(r"^  (\w+_TABLE): (db\.\w+)$", (self.folder / "workflow.yaml").read_text(), re.MULTILINE)
        params = {name: self._moved(table) for name, table in found}
        return self.stage.project.engine.start(self._workflow_id, params=params).run

    @property
    def _workflow_id(self) -> str:
        return f"patterns.{self.name.replace('-', '_')}"

    def _rows(self, query: str) -> Counter[Any]:
        return Counter(canonical(tuple(row)) for row in self.stage.sql(query))

    def _read(self, name: str) -> str:
        return self._moved((self.folder / name).read_text(encoding="utf-8"))

    def _moved(self, text: str) -> str:
        """Return SQL of the example with the namespace of this scene."""
        return re.sub(r"\bdb\b", self.namespace, text)
