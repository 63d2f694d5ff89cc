"""A project with data, for tests of pages: workflows of several teams, two weeks of runs, a table with late rows."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from starlette.routing import Route
from tests.engines import BUSY, HandClock, Playground
from tests.pages import parse

from calve.app import open_project
from calve.app.project import Project
from calve.capture import Wanted
from calve.capture.inspection import LagSample
from calve.definition import load_template
from calve.definition.params import InitiatorType
from calve.engine import Breakpoint, Initiator, Outcome, State, StepContext
from calve.lake import TableName
from calve.lineage import Direction, Edge
from calve.settings import load
from calve.web.pages import ROUTERS

if TYPE_CHECKING:
    from pyiceberg.table import Table

DAY = 86_400_000
HOUR = 3_600_000
SOURCE, TARGET = "playback.playback_table", "playback.daily_table"
_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
_BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
_CAUSE = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `watched_s` cannot be resolved. Did you mean `watched_seconds`?
== SQL (line 7, position 12) ==
       sum(s.watched_s) AS watched_seconds
           ^^^^^^^^^^^
"""
_DAILY = """
Description: Clean what arrived, late or not, and merge it by day and account
Trigger: {cron: '0 6 * * *', timezone: UTC}
Workflow:
  id: playback.daily
  owner: dana
  tags: [playback, gold]
  day: '20260326'
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [playback.playback_table]}}
    - job: {id: clean, type: Spark, relation: "${capture.relation}", spark: {script: "SELECT * FROM ${relation}"}}
    - job: {id: audit, type: Spark, spark: {script: SELECT 1}}
    - foreach:
        id: by_country
        loop_params: {country: [de, fr, it, es, nl, pl, se, pt, us, br, jp, kr]}
        jobs: [{job: {id: rank, type: Spark, spark: {script: "SELECT '${country}'"}}}]
    - job:
        id: merge
        type: Spark
        targets: [playback.daily_table]
        spark: {merge: {into: playback.daily_table, using: "SELECT * FROM ${capture.relation}", keys: [day, id]}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
    - job: {id: notify, type: Shell, shell: {script: "echo done for ${day}"}}
  dag: ['capture -> clean -> audit -> merge -> commit -> notify', 'clean -> by_country -> merge']
"""
_OTHERS = """
Description: Audiences of the last hour
Trigger: {incremental: {source_tables: [playback.daily_table], min_files: 1}}
Workflow: {id: ads.audience, owner: amir, tags: [ads], jobs: [
  {job: {id: build, type: Spark, spark: {script: SELECT 1}}}]}
---
Trigger: {cron: '@hourly'}
Workflow: {id: members.sessions, owner: mei, tags: [members, gold], dag: sequential, jobs: [
  {job: {id: extract, type: Shell, shell: {script: 'true'}}}, {job: {id: load, type: Shell, shell: {script: 'true'}}}]}
---
Trigger: {signal: month.closed}
Workflow: {id: finance.close, owner: olga, tags: [finance], dag: sequential, jobs: [
  {job: {id: report, type: NoOp}},
  {job: {id: publish, type: Approval, approval: {message: Publish the numbers of March?}}}]}
---
Workflow: {id: exports.partner, owner: amir, tags: [exports], jobs: [
  {job: {id: send, type: Shell, shell: {script: 'false'}}}]}
---
Workflow: {id: members.churn, owner: mei, jobs: [{job: {id: train, type: Spark, spark: {script: SELECT 1}}}]}
"""
_TEMPLATE = """
owner: dana
status: stable
support: data-platform
definition:
  job_type: wait_for_partner
  step_type: Sleep
  description: Wait until the partner has answered
  params: {sleep_seconds: {type: LONG, value: 60}}
"""
_OF_ROUTES = {"/job-templates/{name}": {"name": "wait_for_partner"}}
"""Values for the params of a path that mean something else there."""
_MAP = "/tables/{table}/changes"


@dataclass
class WebProject:
    """A project, and an engine that moves its instances by hand."""

    project: Project
    playground: Playground
    names: dict[str, str] = field(default_factory=dict)
    """A value for each param of a path."""

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.project.settings.project

    def addresses(self) -> list[str]:
        """Return an address of every page that there is, by its route."""
        return [path.format_map({**self.names, **_OF_ROUTES.get(path, {})}) for path in page_paths()]


def page_paths() -> list[str]:
    """Return the paths of all pages that the routers have, without those that a page opens beside itself."""
    found = [
        route.path.replace(":path}", "}")
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, Route) and "GET" in (route.methods or ())
    ]
    return [path for path in dict.fromkeys(found) if not path.startswith("/live/") and path != _MAP]


def crawl(client: Any, begin: list[str], limit: int = 150) -> Iterator[tuple[str, Any]]:
    """Get pages and what they link to: each path once for the same names in its query, tab and view."""
    seen, waiting = set[tuple[str, ...]](), [(address, 0) for address in begin]
    for address, depth in waiting:
        parts = urlsplit(address)
        query = parse_qs(parts.query)
        key = (parts.path, *sorted(query), *query.get("tab", ()), *query.get("view", ()))
        if key in seen or parts.path.startswith(("/static/", "/api/")) or len(seen) >= limit:
            continue
        seen.add(key)
        answer = client.get(address)
        yield address, answer
        if answer.status_code == 200 and depth < 2 and answer.headers["content-type"].startswith("text/html"):
            waiting += [(link, depth + 1) for link in sorted(parse(answer.text).links)]


@contextmanager
def filled_project(
    folder: Path, environment: Mapping[str, str] | None = None, *, commits: int = 16, runs: int = 3, seed: int = 1
) -> Iterator[WebProject]:
    """Make a project with data that ends now.

    Args:
        folder: where.
        environment: settings of its own.
        commits: how many commits its table has, over two weeks.
        runs: how many instances each workflow has.
        seed: of what is random.
    """
    settings = load(folder, environment or {})
    with open_project(settings) as project:
        now = int(time.time() * 1_000)
        clock = HandClock(now - runs * DAY)
        playground = Playground(project.store, settings.store.url, folder / "attempts", clock)
        made = WebProject(project, playground)
        _Filling(made, random.Random(seed), now).fill(commits, runs)
        yield made


@dataclass
class _Filling:
    """Fills a project."""

    made: WebProject
    random: random.Random
    now: int
    capture_id: str = ""
    ends: list[int] = field(default_factory=list)
    """The snapshots up to which the captures go, one after the other; the last commits stay pending."""

    def fill(self, commits: int, runs: int) -> None:
        """Write tables, then run workflows over them."""
        snapshots = self._tables(commits)
        self.ends = [
            snapshots[commits * 3 // 4 + (number + 1) * (commits // 4 - 1) // runs - 1] for number in range(runs)
        ]
        playground = self.made.playground
        for text in (_DAILY, *_OTHERS.split("---\n")):
            playground.push(text)
        self._script()
        for _ in range(runs - 1):
            self._day()
        self._today()
        self._around()

    # Tables.

    def _tables(self, commits: int) -> list[int]:
        """Write the tables; return the snapshots of the source."""
        lake = self.made.project.lake
        catalog = lake.catalog("lake").pyiceberg()
        catalog.create_namespace_if_not_exists("playback")
        step = 14 * DAY // commits
        moments = [self.now - HOUR - step * (commits - 1 - number) for number in range(commits)]
        for name in (SOURCE, TARGET):
            table = catalog.create_table(
                name,
                _SCHEMA,
                partition_spec=_BY_DAY,
                properties={"history.expire.max-snapshot-age-ms": str(16 * DAY)},
            )
            for moment in moments if name == SOURCE else moments[-2:]:
                table.append(self._rows(table, moment))
            _redated(table, moments if name == SOURCE else moments[-2:])
        return [one.snapshot_id for one in catalog.load_table(SOURCE).snapshots()]

    def _rows(self, table: "Table", moment: int) -> Any:
        import pyarrow as pa

        late = [delay for delay in range(1, 10) if self.random.random() < 0.5 / delay]
        days = [0] * 40 + [delay for delay in late for _ in range(12 // delay)]
        columns = {"id": list(range(len(days))), "day": [_day(moment - delay * DAY) for delay in days]}
        return pa.table(columns, schema=table.schema().as_arrow())

    # Runs.

    def _script(self) -> None:
        parts = self.made.playground.script.parts
        for name, seconds in {
            "clean": 19,
            "audit": 4,
            "rank": 2,
            "build": 140,
            "extract": 8,
            "load": 21,
            "train": 300,
        }.items():
            parts[name] = self._taking(seconds)
        parts["capture"] = self._capture
        parts["commit"] = self._commit
        parts["merge"] = self._taking(42, published=True)

    def _taking(self, seconds: float, *, published: bool = False) -> Any:
        def act(context: StepContext) -> Outcome:
            took = seconds * self.random.uniform(0.8, 1.3)
            self.made.playground.clock.now += int(took * 1_000)
            rows = int(took * 41_000)
            spark = {"rows_written": rows, "bytes_written": rows * 31, "rows_read": rows + 4_000}
            context.log(f"Spark 4.1.2 on local[2]\n-- progress: stage 3 of 3\nwrote {rows:,} rows\n")
            more = {"published": [{"table": f"lake.{TARGET}", "snapshot_id": 7_311_204_877}]} if published else {}
            return Outcome(State.DONE, artifacts={"spark": spark, **more})

        return act

    def _capture(self, context: StepContext) -> Outcome:
        self.made.playground.clock.now += 300
        wanted = Wanted(end=str(self.ends.pop(0)))
        taken = self.made.project.captures.capture([SOURCE], context.place.consumer, wanted)
        assert taken.capture_id is not None
        self.capture_id = taken.capture_id
        outputs = {
            "capture_id": self.capture_id,
            "files": 61,
            "records": 2_061_344,
            "changed": True,
            "relation": "lake.calve.capture_7c1",
        }
        return Outcome(State.DONE, outputs=outputs, artifacts={"capture_id": self.capture_id})

    def _commit(self, context: StepContext) -> Outcome:
        del context
        self.made.playground.clock.now += 400
        self.made.project.captures.commit(self.capture_id)
        return Outcome(State.DONE, artifacts={"capture_id": self.capture_id})

    def _day(self) -> None:
        playground = self.made.playground
        for name in ("playback.daily", "ads.audience", "members.sessions", "members.churn"):
            began = playground.clock.now
            playground.start(name)
            playground.clock.now = max(began + DAY // 4, playground.clock.now)
        playground.settle()

    def _today(self) -> None:
        """Let one fail for good, one fail twice, one wait for a person, one stand at a breakpoint, and one run."""
        playground = self.made.playground
        parts = playground.script.parts
        playground.clock.now = self.now - 3 * HOUR
        parts["send"] = Outcome(State.FATAL_ERROR, message="curl: (28) Connection timed out after 30001 ms")
        playground.start("exports.partner")
        playground.start("exports.partner")
        playground.start("finance.close")
        self._fail_merge()
        playground.clock.now = self.now - 40 * 60_000
        playground.start("members.sessions")
        playground.engine.pause(Breakpoint("members.churn", "train"))
        playground.start("members.churn")
        parts["build"] = BUSY
        playground.start("ads.audience")
        playground.clock.now = self.now

    def _fail_merge(self) -> None:
        playground = self.made.playground

        def failing(context: StepContext) -> Outcome:
            playground.clock.now += 4_100
            context.log(
                "Spark 4.1.2 on local[2]\nMERGE INTO playback.daily_table AS t …\n\x1b[31mERROR\x1b[0m " + _CAUSE
            )
            return Outcome(State.FATAL_ERROR, message=_CAUSE, artifacts={"published": []})

        playground.script.parts["merge"] = failing
        run = playground.start("playback.daily", initiator=Initiator(InitiatorType.TIME, timezone="UTC"))
        self.made.names.update(
            workflow_id="playback.daily",
            instance_id=str(run.instance_id),
            step_id="by_country",
            loop="by_country",
            table=SOURCE,
            version="1",
            other="1",
            capture_id=self.capture_id,
            name="month.closed",
            number="1",
            tag="gold",
        )

    # What else there is.

    def _around(self) -> None:
        project = self.made.project
        project.signals.announce("month.closed", {"month": 202603})
        self._push_template()
        names = {name: project.lake.parse(name) for name in (SOURCE, TARGET)}
        project.store.lineage.keep(
            [
                self._edge("playback.daily", "capture", Direction.READ, names[SOURCE]),
                self._edge("playback.daily", "merge", Direction.WRITE, names[TARGET]),
                self._edge("ads.audience", "build", Direction.READ, names[TARGET]),
                self._edge("members.sessions", "load", Direction.READ, names[SOURCE]),
            ]
        )
        consumers = (("playback.daily/capture", 0.4), ("ads.audience/build", 2.2))
        project.store.lag_samples.add(
            [
                self._sample(consumer, names[SOURCE], number, pace)
                for consumer, pace in consumers
                for number in range(24 * 7)
            ]
        )

    def _push_template(self) -> None:
        engine = self.made.playground.engine
        template = load_template(_TEMPLATE, name="the template", vocabulary=engine.tools.vocabulary)
        engine.push_template(template, author="dana")

    def _edge(self, workflow_id: str, step_id: str, direction: Direction, table: TableName) -> Edge:
        return Edge(
            workflow_id,
            step_id,
            direction,
            table,
            self.now - HOUR,
            1,
            f"{workflow_id}-{step_id}",
            2_061_344,
            64_000_000,
        )

    def _sample(self, consumer: str, table: TableName, number: int, pace: float) -> LagSample:
        at = (self.now - number * HOUR) // 300_000 * 300_000
        behind = int(pace * (1 + (24 * 7 - number) / 60) * HOUR * 6)
        commits = max(1, behind // (6 * HOUR))
        return LagSample(
            consumer,
            table,
            at,
            commits,
            commits * 2,
            commits * 9_000,
            commits * 3_100_000,
            at - behind,
            at,
            at - behind + 16 * DAY,
        )


def _day(moment: int) -> str:
    return str((datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=moment)).date())


def _redated(table: "Table", moments: list[int]) -> None:
    """Date the commits of a table, for which PyIceberg asks the clock."""
    place = Path(unquote(urlsplit(table.refresh().metadata_location).path))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    for name in ("snapshots", "snapshot-log"):
        for one, moment in zip(metadata[name], moments, strict=True):
            one["timestamp-ms"] = moment
    place.write_text(json.dumps(metadata), encoding="utf-8")
