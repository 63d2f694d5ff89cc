"""The measurements of a demo, and the ratios derived from them. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce
from statistics import median
from typing import Any, Self

from calve.demo.events import WINDOW

STAGES = ("daily", "aggregates")
PAYS_FROM = {"daily": 10_000, "aggregates": 1_000_000}
"""Events a day from which an incremental stage was quicker than its lookback: docs/explain/playback-benchmark.md."""
Figure = Callable[["Stage"], float]
"""Reads one figure of a stage."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a stage spent time on."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of one stage of a pipeline."""

    seconds: float = 0.0
    rows_read: int = 0
    bytes_read: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    capture_seconds: float = 0.0
    parts: tuple[Part, ...] = ()

    def plus(self, other: Self) -> Self:
        """Return the sum of both."""
        return type(self)(
            self.seconds + other.seconds,
            self.rows_read + other.rows_read,
            self.bytes_read + other.bytes_read,
            self.rows_written + other.rows_written,
            self.bytes_written + other.bytes_written,
            self.capture_seconds + other.capture_seconds,
            self.parts + other.parts,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "seconds": round(self.seconds, 3),
            "rows_read": self.rows_read,
            "bytes_read": self.bytes_read,
            "rows_written": self.rows_written,
            "bytes_written": self.bytes_written,
            "capture_seconds": round(self.capture_seconds, 3),
            "parts": [{"name": part.name, "seconds": round(part.seconds, 3)} for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Lane:
    """One day of one pipeline: its stages by name."""

    stages: Mapping[str, Stage]

    @property
    def total(self) -> Stage:
        """All stages together."""
        return reduce(Stage.plus, self.stages.values(), Stage())


@dataclass(frozen=True, slots=True)
class Day:
    """One day, run by both pipelines."""

    date: date
    lookback: Lane
    incremental: Lane
    is_equal: bool
    """Whether the tables of both pipelines hold the same rows afterwards."""


@dataclass(frozen=True, slots=True)
class Result:
    """All days that both pipelines ran."""

    rows: int
    """Events per day."""
    late: float
    days: tuple[Day, ...]

    @property
    def is_equal(self) -> bool:
        """Whether the tables of both pipelines were equal after every day."""
        return bool(self.days) and all(day.is_equal for day in self.days)

    def lane(self, name: str) -> list[Lane]:
        """Return the days of one pipeline."""
        return [getattr(day, name) for day in self.days]

    def total(self, name: str, stage: str | None = None) -> Stage:
        """Return the sum over all days of one pipeline, of one stage or of all."""
        lanes = self.lane(name)
        return reduce(Stage.plus, (lane.total if stage is None else lane.stages[stage] for lane in lanes), Stage())

    def ratio(self, figure: Figure, stage: str | None = None) -> float:
        """Return a figure of the incremental pipeline divided by that of the lookback."""
        return _share(figure(self.total("incremental", stage)), figure(self.total("lookback", stage)))

    def median_ratio(self, figure: Figure, stage: str | None = None) -> float:
        """Return the same for the median day of each pipeline."""

        def of(name: str) -> float:
            return median(figure(lane.total if stage is None else lane.stages[stage]) for lane in self.lane(name))

        return _share(of("incremental"), of("lookback"))

    def capture_seconds(self) -> float:
        """Return the average time of a capture; each incremental run of a stage has one."""
        return _share(self.total("incremental").capture_seconds, len(self.days) * len(STAGES))

    def notes(self) -> list[str]:
        """Return why a stage took longer or read more rows than its lookback, if it did."""
        return [note for stage in STAGES for note in _notes(stage, self)]

    def profile(self) -> list[Part]:
        """Return the parts of the incremental pipeline's time, per day on average, in order."""
        return merged((part for lane in self.lane("incremental") for part in lane.total.parts), len(self.days))

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        lookback, incremental = self.total("lookback"), self.total("incremental")
        return {
            "equal": self.is_equal,
            "ratio": round(self.ratio(seconds), 4),
            "ratio_bytes_written": round(self.ratio(bytes_written), 4),
            "ratio_rows_written": round(self.ratio(rows_written), 4),
            "saving": round(1 - self.ratio(seconds), 4),
            "lookback_seconds": round(lookback.seconds, 3),
            "incremental_seconds": round(incremental.seconds, 3),
            "capture_seconds": round(incremental.capture_seconds, 3),
            "rows": self.rows,
            "late": self.late,
            "stages": {stage: self._stage_json(stage) for stage in STAGES},
            "notes": self.notes(),
            "profile": [{"name": part.name, "seconds": round(part.seconds, 3)} for part in self.profile()],
            "days": [_day_json(day) for day in self.days],
        }

    def _stage_json(self, stage: str) -> dict[str, Any]:
        return {
            "lookback": self.total("lookback", stage).as_json() | {"parts": []},
            "incremental": self.total("incremental", stage).as_json() | {"parts": []},
            "ratio": round(self.ratio(seconds, stage), 4),
            "ratio_bytes_written": round(self.ratio(bytes_written, stage), 4),
        }


def merged(parts: Iterable[Part], days: int = 1) -> list[Part]:
    """Return parts with equal names added up, per day on average."""
    sums: dict[str, float] = {}
    for part in parts:
        sums[part.name] = sums.get(part.name, 0.0) + part.seconds / days
    return [Part(name, seconds) for name, seconds in sums.items()]


def seconds(stage: Stage) -> float:
    """Return its duration."""
    return stage.seconds


def bytes_written(stage: Stage) -> float:
    """Return the bytes it wrote."""
    return stage.bytes_written


def rows_written(stage: Stage) -> float:
    """Return the rows it wrote."""
    return stage.rows_written


def _notes(stage: str, result: Result) -> Iterator[str]:
    before, after = result.total("lookback", stage), result.total("incremental", stage)
    if after.seconds > before.seconds:
        yield (
            f"Stage {stage} took {after.seconds:.1f} s, its lookback {before.seconds:.1f} s: each run of a merge has a "
            f"fixed cost of some seconds, and {WINDOW} days of {result.rows:,} events are read again in less. "
            f"On two cores, the stage is faster from about {PAYS_FROM[stage]:,} events a day."
        )
    if after.rows_read > before.rows_read:
        yield (
            f"Stage {stage} read {after.rows_read:,} rows, its lookback {before.rows_read:,}: to find the rows that "
            f"change, a merge searches the existing rows, and reads only the key of most of them."
        )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _day_json(day: Day) -> dict[str, Any]:
    return {
        "day": day.date.isoformat(),
        "equal": day.is_equal,
        "lookback": {name: stage.as_json() for name, stage in day.lookback.stages.items()},
        "incremental": {name: stage.as_json() for name, stage in day.incremental.stages.items()},
    }
