"""A small pipeline on a real lake: rows come into a source, and workers that die deliver each of them to a target."""

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.faults.pipeline_worker import Plan, work
from tests.faults.worker import is_over
from tests.faults.worker_pool import PATIENCE, send, wait_until
from tests.memory_folders import new_folder

from calve import settings
from calve.app import Project, deliveries_on, open_captures, open_lake, open_project
from calve.capture import Captures, Status, StoredCapture
from calve.definition import installed, load
from calve.engine import Address, Attempt, Run, StartStatus, StepStatus
from calve.lake import Lake, session_conf
from calve.settings import Settings
from calve.steps.spark.client import configure, connect, release
from calve.store import open_store
from calve.testing import PyIcebergWriter

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_FORKING = get_context("forkserver")
_FORKING.set_forkserver_preload(
    [
        "tests.faults.worker",
        "tests.faults.pipeline_worker",
        "calve.store.engine.state",
        "psycopg",
        "pytest",
        "pyspark.sql.connect.session",
        # What is loaded when it is first asked for would be loaded by every worker.
        "calve.engine.engine",
        "calve.steps.captures.ip_commit",
        "calve.steps.registry",
        "calve.steps.spark.runtime",
        "calve.store.access",
        "calve.store.captures.captures",
        "calve.store.captures.deliveries",
    ]
)
SOURCE, TARGET = "db.source", "db.target"
CONSUMER, STREAM = "pipe/capture", "pipe/write"
PROPERTY = f"calve.delivered.{STREAM}"
COLUMNS = {"id": "long", "k": "long", "n": "long"}
GROUPS = 3
"""How many values ``k`` has."""

_CONF = """
[spark]
{spark}

[spark.conf]
"spark.sql.shuffle.partitions" = 1
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.sql.adaptive.enabled" = "false"
"""
_WORKFLOW = """
Workflow:
  id: pipe
  jobs:
    - job:
        id: capture
        type: IpCapture
        retry_policy: {retries}
        ip_capture: {capture}
    - job:
        id: write
        type: Spark
        targets: [db.target]
        retry_policy: {retries}
        spark: {spark}
    - job:
        id: commit
        type: IpCommit
        retry_policy: {retries}
        ip_commit: {{capture_step: capture}}
  dag: sequential
"""
_RETRIES = {
    "error_retry_limit": 0,
    "platform_retry_limit": 3,
    "backoff": {"type": "FIXED_BACKOFF", "platform_retry_backoff_in_secs": 1},
}


@dataclass(frozen=True, slots=True)
class Job:
    """A way to write the captured rows that shows when they are written twice, or not at all."""

    name: str
    script: str
    columns: str = "k BIGINT, n BIGINT"

    def expected(self, rows: Mapping[int, int]) -> Counter[tuple[int, ...]]:
        """Return what the target must hold once these rows, ``n`` by ``id``, are delivered."""
        if self.name == "insert":
            return Counter((id_, id_ % GROUPS, n) for id_, n in rows.items())
        sums = Counter[int]()
        for id_, n in rows.items():
            sums[id_ % GROUPS] += n
        return Counter((k, n) for k, n in sums.items())


INSERT = Job(
    "insert", f"INSERT INTO {TARGET} SELECT id, k, n FROM ${{capture.icdc_table}}", "id BIGINT, k BIGINT, n BIGINT"
)
MERGE = Job(
    "merge",
    f"MERGE INTO {TARGET} t USING (SELECT k, sum(n) AS n FROM ${{capture.icdc_table}} GROUP BY k) s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET t.n = t.n + s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)",
)
OVERWRITE = Job(
    "overwrite",
    f"INSERT OVERWRITE {TARGET} SELECT k, sum(n) FROM "
    f"(SELECT k, n FROM {TARGET} UNION ALL SELECT k, n FROM ${{capture.icdc_table}}) GROUP BY k",
)
JOBS = {job.name: job for job in (INSERT, MERGE, OVERWRITE)}


@dataclass
class Pipeline:
    """A source, a target, the workflow between them, and the workers that carry it out."""

    folder: Path
    settings: Settings
    project: Project
    captures: Captures
    spark: "SparkSession"
    source: PyIcebergWriter
    job: Job = INSERT
    rows: dict[int, int] = field(default_factory=dict)
    """Every row that came into the source: ``n`` by ``id``."""
    kills: int = 0
    _workers: list[ForkServerProcess] = field(default_factory=list)
    _last: int = 0

    # Making it.

    def build(self, job: Job = INSERT, *, version: int = 2, **changed: Any) -> "Pipeline":
        """Make the tables, and push the workflow; ``changed`` are fields of its capture step."""
        self.job = job
        self.source.create(SOURCE, COLUMNS, days=False)
        self.create_target(version)
        self.push(**changed)
        return self

    def create_target(self, version: int = 2) -> None:
        """Make the target, empty."""
        self.sql(
            f"CREATE TABLE {TARGET} ({self.job.columns}) USING iceberg TBLPROPERTIES ('format-version'='{version}')"
        )

    def push(self, script: str | None = None, spark: Mapping[str, Any] | None = None, **changed: Any) -> None:
        """Push the workflow, or another version of it: with other fields of its Spark step and its capture step."""
        capture = {"source_tables": [SOURCE], "lease": True} | changed
        text = _WORKFLOW.format(
            retries=json.dumps(_RETRIES),
            capture=json.dumps(capture),
            spark=json.dumps({"script": script or self.job.script, **(spark or {})}),
        )
        self.project.engine.push(load(text, name="pipe.yaml", vocabulary=installed()).required())

    # The lake.

    def sql(self, statement: str) -> list[Any]:
        """Run a statement on the lake, as anybody might."""
        return self.spark.sql(statement).collect()

    @property
    def lake(self) -> Lake:
        """The lake, as calve sees it."""
        return self.project.lake

    def metadata(self, table: str) -> dict[str, Any]:
        """Return a table's current metadata."""
        name = self.lake.parse(table)
        return self.lake.catalog(name.catalog).load(name).metadata

    def head(self, table: str) -> int | None:
        """Return the current snapshot of a table."""
        found = self.metadata(table).get("current-snapshot-id")
        return None if found in {None, -1} else int(found)

    def refs(self, table: str) -> set[str]:
        """Return the branches and tags of a table besides ``main``."""
        return set(self.metadata(table).get("refs", {})) - {"main"}

    def append(self, count: int = 2) -> list[int]:
        """Append rows to the source in one commit; return their ids."""
        ids = [self._last + place for place in range(1, count + 1)]
        self._last = ids[-1]
        self.source.append([{"id": id_, "k": id_ % GROUPS, "n": 10 * id_} for id_ in ids])
        self.rows |= {id_: 10 * id_ for id_ in ids}
        return ids

    def files(self, table: str, *, ending: str = ".parquet") -> set[Path]:
        """Return the files that lie in a table's folder, whoever wrote them."""
        folder = self.settings.catalogs["lake"].properties["warehouse"]
        return {path for path in Path(folder, *table.split(".")).glob(f"**/*{ending}") if path.is_file()}

    # Running it.

    def start(self) -> Run:
        """Start an instance."""
        started = self.project.engine.start("pipe")
        assert started.status is StartStatus.CREATED
        return started.run

    def restart(self, run: Run) -> Run:
        """Run an instance again from where it failed."""
        return self.project.engine.restart(Address("pipe", run.instance_id)).run

    def start_worker(self, failpoints: str | None = None, **changed: Any) -> ForkServerProcess:
        """Start a worker."""
        plan = Plan(self.settings.project, self.folder / "journal", self.folder / "said", failpoints)
        process = _FORKING.Process(target=work, args=(replace(plan, **changed),), daemon=True)
        process.start()
        self._workers.append(process)
        return process

    def work(self, failpoints: str | None = None, **changed: Any) -> bool:
        """Let one worker do all there is to do; tell whether it died at a failpoint."""
        return self.ended(self.start_worker(failpoints, **changed))

    def ended(self, process: ForkServerProcess) -> bool:
        """Wait for the end of a worker; tell whether it was killed."""
        process.join(PATIENCE)
        assert process.exitcode in {0, -signal.SIGKILL}, f"{process.exitcode}: {self.said()}"
        self._workers.remove(process)
        was_killed = process.exitcode == -signal.SIGKILL
        self.kills += was_killed
        return was_killed

    def run(self, failpoints: str | None = None) -> Run:
        """Start an instance and let workers do it, the first of which dies; return it when it is over."""
        run = self.start()
        if failpoints is not None:
            assert self.work(failpoints), f"{failpoints} was not reached: {self.said()}"
        self.work()
        return self.fresh(run)

    def dismiss(self) -> None:
        """Have all workers leave in peace."""
        for process in self._workers:
            process.terminate()
        for process in list(self._workers):
            self.ended(process)

    def close(self) -> None:
        """Leave no process behind."""
        for process in self._workers:
            process.kill()
            process.join()

    def descendants(self, process: ForkServerProcess, named: str) -> list[int]:
        """Return the processes that a worker has started, and those that they have, by a word of their command."""
        parents = {int(entry.name): _parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        found, new = set[int](), {cast("int", process.pid)}
        while new:
            new = {pid for pid, parent in parents.items() if parent in new}
            found |= new
        return [pid for pid in found if named in Path(f"/proc/{pid}/cmdline").read_bytes().decode()]

    def stopped(self, failpoints: str, **changed: Any) -> ForkServerProcess:
        """Let a worker work until it stops at a point; it goes on with ``let_go``."""
        process = self.start_worker(f"{failpoints}:1:stop", **changed)
        wait_until(lambda: _is_stopped(process) or not process.is_alive())
        assert process.is_alive(), f"{failpoints} was not reached: {self.said()}"
        return process

    def let_go(self, process: ForkServerProcess) -> None:
        """Let a stopped worker go on to its end."""
        send(process, signal.SIGCONT)
        self.ended(process)

    # Looking at it.

    def fresh(self, run: Run) -> Run:
        """Return an instance's latest run."""
        found = self.project.store.engine.run("pipe", run.instance_id)
        assert found is not None
        return found

    def is_over(self) -> bool:
        """Tell whether nothing is left to do."""
        return is_over(self.project.store)

    def attempt(self, run: Run, step: str) -> Attempt:
        """Return the newest attempt of a step."""
        found = self.project.store.engine.newest_attempt("pipe", run.instance_id, step)
        assert found is not None, f"{step} was not begun"
        return found

    def status(self, run: Run, step: str) -> StepStatus:
        """Return how the newest attempt of a step stands."""
        return self.attempt(run, step).status

    def told(self, run: Run, step: str) -> str:
        """Return what is told of a step: its timeline."""
        return "\n".join(entry["message"] for entry in self.attempt(run, step).timeline)

    def calls(self, name: str) -> int:
        """Count the moves of a name that workers have begun."""
        path = self.folder / "journal"
        return sum(line.startswith(f"{name} ") for line in path.read_text().splitlines()) if path.exists() else 0

    def points(self) -> list[str]:
        """Return the points that a worker with the plan ``*:1:count`` has passed."""
        lines = self.said().splitlines()
        return [line.removeprefix("failpoint ") for line in lines if line.startswith("failpoint ")]

    def said(self) -> str:
        """Return what the workers have logged."""
        path = self.folder / "said"
        return path.read_text() if path.exists() else ""

    def listed(self) -> list[StoredCapture]:
        """Return the captures of the workflow, newest first."""
        return self.captures.captures(CONSUMER)

    def delivered(self) -> Counter[tuple[int, ...]]:
        """Return the rows of the target."""
        return Counter(tuple(row) for row in self.sql(f"SELECT * FROM {TARGET}"))

    def check(self, rows: Mapping[int, int] | None = None) -> None:
        """Fail unless the target holds every row once, and agrees with the checkpoint on how far that is."""
        assert self.delivered() == self.job.expected(self.rows if rows is None else rows)
        self.check_agreement()

    def check_agreement(self) -> None:
        """Fail unless the target's property and the checkpoint name the same capture, and none is open."""
        listed = self.listed()
        assert {stored.status for stored in listed} <= {Status.COMMITTED, Status.ABANDONED}
        last = next(stored for stored in listed if stored.status is Status.COMMITTED and stored.document["changed"])
        record = json.loads(self.metadata(TARGET)["properties"][PROPERTY])
        assert record["captures"][CONSUMER]["capture"] == last.capture_id
        assert record["snapshot"] in {found["snapshot-id"] for found in self.metadata(TARGET)["snapshots"]}
        (checkpoint,) = self.captures.checkpoints(CONSUMER)
        empty = sum(stored.number > last.number and stored.status is Status.COMMITTED for stored in listed)
        assert record["captures"][CONSUMER]["versions"] == {str(checkpoint.table): checkpoint.version - empty}

    def collect(self) -> None:
        """Remove what nobody needs any more, however new it is."""
        assert [problem for each in self.captures.collect_garbage(timedelta(0)) for problem in each.problems] == []
        with open_lake(self.settings) as lake, open_store(self.settings.store.url) as store:
            deliveries_on(lake, store).collect(timedelta(0))

    def check_clean(self) -> None:
        """Fail unless everything can be removed that the workers left: ICDC tables, their files, tags and branches."""
        self.collect()
        assert self.refs(SOURCE) == set()
        assert self.refs(TARGET) == set()
        name = self.lake.parse(SOURCE)
        assert [table for table in self.lake.catalog(name.catalog).tables(("icdc",)) if table.startswith("icdc.")] == []
        assert self.files("icdc", ending="") == set()


def _is_stopped(process: ForkServerProcess) -> bool:
    return _stat(Path(f"/proc/{process.pid}"))[:1] == ["T"]


def _parent(entry: Path) -> int | None:
    return next((int(parent) for parent in _stat(entry)[1:2]), None)


def _stat(entry: Path) -> list[str]:
    """Return what is known of a process after its name: its state, its parent …; nothing if it is gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


@contextmanager
def pipeline_on(remote: str, store_url: str | None = None, spark_of_workers: str | None = None) -> Iterator[Pipeline]:
    """Give a project of its own, in memory where that can be; its workers use the same Spark, unless told otherwise."""
    folder = new_folder()
    store = f'[store]\nurl = "{store_url}"\n' if store_url else ""
    spark_of_workers = spark_of_workers or f'remote = "{remote}"'
    (folder / settings.FILE).write_text(_CONF.format(spark=spark_of_workers) + store)
    loaded = settings.load(folder, {})
    source = PyIcebergWriter(loaded)
    with open_project(loaded) as project, open_captures(loaded) as captures:
        project.lake.catalog("lake")  # with tables as Spark wants them
        spark = connected(loaded, remote)
        made = Pipeline(folder, loaded, project, captures, spark, source)
        try:
            yield made
        finally:
            made.close()
            release(spark)
            source.close()
            shutil.rmtree(folder, ignore_errors=True)  # a Spark that goes on with a dead worker's job may still write


def connected(loaded: Settings, remote: str) -> "SparkSession":
    """Return a session of this process on the server; the process may have a Spark of its own besides."""
    session = connect(remote)
    quiet: Any = session.client
    quiet.close = lambda: None  # or the garbage collector waits for all sessions, in whatever thread it runs
    configure(session, session_conf(loaded))
    session.sql("CREATE NAMESPACE IF NOT EXISTS db").collect()
    return session
