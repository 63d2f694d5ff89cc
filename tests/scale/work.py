"""The work in the house: rows come in, one workflow appends them to a table, and another one merges that into sums."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from calve.app import Project, open_project
from calve.definition import installed, load
from calve.engine import Address, RunStatus
from calve.settings import Settings
from calve.testing import PyIcebergWriter

SOURCE, CLEAN, TOTALS = "db.source", "db.clean", "db.totals"
GROUPS = 5
_COLUMNS = {"id": "long", "k": "long", "n": "long"}
_QUIET_SECONDS = 600
_WORKFLOW = """
Trigger: {{incremental: {source}}}
Workflow:
  id: {name}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [{source}], lease: true}}}}
    - job: {{id: write, type: Spark, targets: [{target}], spark: {{script: "{script}"}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""
_APPEND = f"INSERT INTO {CLEAN} SELECT id, k, n FROM ${{capture.relation}}"
_MERGE = (
    f"MERGE INTO {TOTALS} t USING (SELECT k, sum(n) AS n FROM ${{capture.relation}} GROUP BY k) s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET t.n = t.n + s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)"
)
WORKFLOWS = {"scale.clean": (SOURCE, CLEAN, _APPEND), "scale.totals": (CLEAN, TOTALS, _MERGE)}


@dataclass
class Work:
    """The tables, and the rows that came into the first of them."""

    project: Project
    source: PyIcebergWriter
    rows: dict[int, int] = field(default_factory=dict)
    restarts: int = 0

    def build(self) -> None:
        """Create the tables, and push the workflows."""
        for table, columns in ((TOTALS, {"k": "long", "n": "long"}), (CLEAN, _COLUMNS), (SOURCE, _COLUMNS)):
            self.source.create(table, columns, days=False)
        for name, (source, target, script) in WORKFLOWS.items():
            text = _WORKFLOW.format(name=name, source=source, target=target, script=script)
            self.project.engine.push(load(text, name=f"{name}.yaml", vocabulary=installed()).required())

    def append(self, count: int = 3) -> None:
        """Append rows to the source in one commit."""
        ids = range(len(self.rows) + 1, len(self.rows) + count + 1)
        self.source.append([{"id": id_, "k": id_ % GROUPS, "n": 10 * id_} for id_ in ids])
        self.rows |= {id_: 10 * id_ for id_ in ids}

    def wait(self) -> None:
        """Return when every row has gone all the way; restart what has failed, as a person would.

        Raises:
            AssertionError: it has not for ten minutes.
        """
        deadline = time.monotonic() + _QUIET_SECONDS
        while not (self._is_idle() and self.problem() == ""):
            assert time.monotonic() < deadline, self.problem()
            self._restart_failed()
            time.sleep(1)

    def problem(self) -> str:
        """Return how the tables differ from the truth; empty if they do not."""
        clean = Counter((id_, id_ % GROUPS, n) for id_, n in self.rows.items())
        sums = Counter[int]()
        for id_, n in self.rows.items():
            sums[id_ % GROUPS] += n
        for table, expected in ((CLEAN, clean), (TOTALS, Counter(sums.items()))):
            found = self._rows(table)
            if found != expected:
                return f"{table}: {len(found - expected)} rows too many, {len(expected - found)} missing"
        return ""

    def _rows(self, table: str) -> "Counter[tuple[Any, ...]]":
        name = self.project.lake.parse(table)
        read = self.project.lake.catalog(name.catalog).pyiceberg().load_table(name.identifier).scan().to_arrow()
        return Counter(tuple(row.values()) for row in read.to_pylist())

    def _is_idle(self) -> bool:
        return all(run.status.is_terminal for run in self._newest())

    def _newest(self) -> list[Any]:
        store = self.project.store.engine
        return [run for name in WORKFLOWS for run in store.instances(workflow_id=name)]

    def _restart_failed(self) -> None:
        for run in self._newest():
            if run.status in {RunStatus.FAILED, RunStatus.TIMED_OUT}:
                self.project.engine.restart(Address(run.workflow_id, run.instance_id))
                self.restarts += 1


@contextmanager
def work(settings: Settings) -> Iterator[Work]:
    """Open the project beside the house, without its proxies."""
    source = PyIcebergWriter(settings)
    try:
        with open_project(settings) as project:
            made = Work(project, source)
            made.build()
            yield made
    finally:
        source.close()
