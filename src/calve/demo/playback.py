"""The two pipelines of the example, run side by side on the same events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calve.addresses import instance_page
from calve.demo.events import WINDOW, Shape, day
from calve.demo.figures import STAGES, Day, Lane, Part, Stage
from calve.demo.runs import Runs, SucceededRun
from calve.engine import Attempt
from calve.lake import Lake
from calve.settings import Settings, embedded

RAW = "playback.playback_table"
TABLES = {"daily": "playback_daily_table", "aggregates": "playback_daily_agg_table"}
"""The table that each stage writes; each pipeline has its own, in a namespace of its name."""


@dataclass(frozen=True, slots=True)
class Written:
    """What some snapshots of a table added."""

    rows: int
    bytes: int


class TableWrites:
    """Returns what was written to a table since the last call, from the summaries of its snapshots."""

    def __init__(self, lake: Lake) -> None:
        self._catalog = lake.catalog(lake.default_catalog).pyiceberg()
        self._seen: dict[str, set[int]] = {}

    def written(self, table: str) -> Written:
        """Return what was added since the last call."""
        seen = self._seen.setdefault(table, set())
        fresh = [found for found in self._catalog.load_table(table).snapshots() if found.snapshot_id not in seen]
        seen.update(found.snapshot_id for found in fresh)
        summaries = [found.summary.additional_properties for found in fresh if found.summary is not None]
        return Written(
            sum(int(summary.get("added-records", 0)) for summary in summaries),
            sum(int(summary.get("added-files-size", 0)) for summary in summaries),
        )


def compared() -> str:
    """Return the query for a fingerprint of each table that does not depend on the order of its rows."""
    return "\nUNION ALL\n".join(
        f"SELECT '{lane}' AS lane, '{stage}' AS stage, count(*) AS records, "
        f"CAST(sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) AS STRING) AS total, bit_xor(xxhash64(*)) AS folded "
        f"FROM {lane}.{table}"
        for stage, table in TABLES.items()
        for lane in ("lookback", "incremental")
    )


SPARK = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's settings, for both pipelines."""
LANES = ("lookback", "incremental")
Tell = Callable[[str], None]
"""Called before each part of the demo."""


def settings_in(home: Path, like: Settings, **spark: Any) -> Settings:
    """Return settings for a separate lake and state database in a folder; ``spark`` adds fields of ``[spark]``."""
    chosen = embedded(home, like)
    conf = {**chosen.spark.conf, **SPARK}
    return chosen.model_copy(update={"spark": chosen.spark.model_copy(update={"conf": conf, **spark})})


class Playback:
    """Creates events and tables, and runs days of both pipelines."""

    def __init__(
        self, runs: Runs, lake: Lake, shape: Shape, tell: Tell = lambda _: None, *, days: int = WINDOW
    ) -> None:
        self._runs, self._shape, self._tell, self._days = runs, shape, tell, days
        self._writes = TableWrites(lake)
        self.page = "/"
        """The page of the newest run of the incremental pipeline's first stage."""
        folder = _folder()
        self._tables = (folder / "tables.sql").read_text(encoding="utf-8")
        self._workflows = {
            (lane, stage): runs.push(folder / f"{lane}-{stage}.yaml") for lane in LANES for stage in STAGES
        }

    def prepare(self) -> None:
        """Create the tables with the first days, which count as done for both pipelines."""
        self._tell("starting Spark, making tables")
        self._runs.sql(self._tables)
        self._tell(f"making {self._days} days of events")
        self._arrive(0, self._days)
        for stage in STAGES:
            self._tell(f"first run, {stage}")
            self._runs.run(self._workflows["incremental", stage])
        for table in TABLES.values():
            self._tell(f"copying {table} for the lookback")
            self._runs.sql(f"INSERT INTO lookback.{table} SELECT * FROM incremental.{table}")
        for lane in LANES:
            for table in TABLES.values():
                self._writes.written(f"{lane}.{table}")

    def play(self, number: int, order: Sequence[str] = LANES) -> Day:
        """Add another day, run both pipelines for it in the given order, and compare the results."""
        at = self._days + number
        self._tell(f"{day(at)}: events arrive")
        self._arrive(at, 1)
        lanes = {lane: self._lane(lane, at) for lane in order}
        self._tell(f"{day(at)}: comparing")
        return Day(day(at), lanes["lookback"], lanes["incremental"], self._are_equal())

    def _arrive(self, first: int, days: int) -> None:
        self._runs.sql(f"INSERT INTO {RAW}\n{self._shape.arrivals(first, days)}")

    def _lane(self, lane: str, at: int) -> Lane:
        stages: dict[str, Stage] = {}
        for stage in STAGES:
            self._tell(f"{day(at)}: {lane}, {stage}")
            params = {"day": day(at).isoformat()} if lane == "lookback" else {}
            ended = self._runs.run(self._workflows[lane, stage], params)
            if (lane, stage) == ("incremental", STAGES[0]):
                self.page = instance_page(ended.run.workflow_id, ended.run.instance_id)
            written = self._writes.written(f"{lane}.{TABLES[stage]}")
            stages[stage] = measured(ended, stage, written.rows, written.bytes)
        return Lane(stages)

    def _are_equal(self) -> bool:
        found = self._runs.rows(compared())
        prints = {(row["lane"], row["stage"]): (row["records"], row["total"], row["folded"]) for row in found}
        return all(prints["lookback", stage] == prints["incremental", stage] for stage in STAGES)


def measured(ended: SucceededRun, stage: str, rows_written: int, bytes_written: int) -> Stage:
    """Return the figures of a run: seconds and reads from its steps, writes as given."""
    used = [attempt.artifacts.get("spark") or {} for attempt in ended.attempts]
    captures = [attempt for attempt in ended.attempts if attempt.type == "IpCapture"]
    return Stage(
        seconds=ended.seconds,
        rows_read=sum(int(spark.get("rows_read", 0)) for spark in used),
        bytes_read=sum(int(spark.get("bytes_read", 0)) for spark in used),
        rows_written=rows_written,
        bytes_written=bytes_written,
        capture_seconds=sum(_seconds(attempt) for attempt in captures),
        parts=tuple(_parts(ended, stage)),
    )


def _parts(ended: SucceededRun, stage: str) -> list[Part]:
    """Return where the time of a run went: steps, the statements of Spark steps, and the engine between them."""
    parts = [part for attempt in ended.attempts for part in _parts_of(attempt, stage)]
    rest = ended.seconds - sum(part.seconds for part in parts)
    return [*parts, Part(f"{stage}: engine", rest)]


def _parts_of(attempt: Attempt, stage: str) -> list[Part]:
    name, total = f"{stage}: {attempt.step_id}", _seconds(attempt)
    timed = _timed(attempt, "spark", "statements", "statement") or _timed(attempt, "merge", "parts", "part")
    inside = [Part(f"{name}, {what}", seconds) for what, seconds in timed]
    rest = total - sum(part.seconds for part in inside)
    return [*inside, Part(f"{name}, session and publishing" if inside else name, rest)]


def _timed(attempt: Attempt, artifact: str, key: str, what: str) -> list[tuple[str, float]]:
    """Return the timed entries of an artifact."""
    kept: Mapping[str, Any] = attempt.artifacts.get(artifact) or {}
    return [(str(entry[what]), float(entry["seconds"])) for entry in kept.get(key) or ()]


def _seconds(attempt: Attempt) -> float:
    start = attempt.times.get("start", attempt.times["create"])
    return ((attempt.ended_at or start) - start) / 1_000


def _folder() -> Path:
    """Return the folder of the example: beside this module in the wheel, at the top of the repository."""
    packed = Path(__file__).with_name("playback")
    return packed if packed.is_dir() else Path(__file__).parents[3] / "examples" / "playback"
