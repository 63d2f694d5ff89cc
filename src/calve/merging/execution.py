"""Execution of merge plans."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, assert_never

from calve.errors import SourceUnstable
from calve.merging import statistics
from calve.merging.bounds import KeyRange, all_hold
from calve.merging.plans import (
    MOST_BROADCAST_WHOLE,
    AppendAll,
    LookUp,
    MergeSome,
    MergeSource,
    MergeTarget,
    Nothing,
    OneMerge,
    Plan,
    Replace,
)
from calve.merging.request import DELETED, HAD, MergeRequest
from calve.texts import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class MergePart:
    """One part of a merge."""

    name: str
    rows: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge: the plan and why it was chosen, rows, and parts with their seconds."""

    plan: str
    reason: str
    rows: int
    matched: int
    appended: int
    parts: tuple[MergePart, ...]


@dataclass(slots=True)
class MergeLog:
    """Logs the parts of a merge while they run, and keeps them."""

    log: Callable[[str], None]
    clock: Callable[[], float] = time.perf_counter
    parts: list[MergePart] = field(default_factory=list)

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[int | None, str], None]]:
        """Time a part; the caller passes its rows and a remark."""
        started = self.clock()
        told: list[tuple[int | None, str]] = []
        yield lambda rows, remark: told.append((rows, remark))
        rows, remark = told[-1] if told else (None, "")
        self.parts.append(MergePart(name, rows, self.clock() - started))
        self.log(f"  {name:<9} {remark} ({self.parts[-1].seconds:.1f} s)")


@dataclass(slots=True)
class MergeFrames:
    """The frames of a merge, and temporary views over them that are dropped in the end."""

    spark: "SparkSession"
    request: MergeRequest
    target: MergeTarget
    frame: "DataFrame"
    deletes: "DataFrame | None"
    views: list[str] = field(default_factory=list)

    def view(self, frame: "DataFrame") -> str:
        """Return the name of a view of a frame."""
        name = f"__calve_merge_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self.views.append(name)
        return name

    def close(self) -> None:
        """Drop the views."""
        for name in self.views:
            self.spark.catalog.dropTempView(name)

    def keep(self) -> None:
        """Compute the source only once.

        A checkpoint keeps rows as they are; the columns that ``persist`` makes cost a third more (decision 0016).
        """
        self.frame = self.frame.localCheckpoint()

    def inside(self, ranges: tuple[KeyRange, ...]) -> "DataFrame":
        """Return the rows that may match, including those that only delete."""
        within = self._within(ranges)
        rows = self.frame.alias("s").where(within)
        return rows if self.deletes is None else self._with_deletes(rows, self.deletes.alias("s").where(within))

    def outside(self, ranges: tuple[KeyRange, ...]) -> "DataFrame":
        """Return the rows that cannot match: all others."""
        # A null in a comparison makes it null, and NOT null is null again: such rows would be in neither part.
        return self.frame.alias("s").where(f"NOT coalesce({self._within(ranges)}, false)")

    def everything(self) -> "DataFrame":
        """Return all rows, including those that only delete."""
        return self.frame if self.deletes is None else self._with_deletes(self.frame, self.deletes)

    def _within(self, ranges: tuple[KeyRange, ...]) -> str:
        keys = " AND ".join(f"s.{quoted(key)} IS NOT NULL" for key in self.request.keys)
        return f"{keys} AND {all_hold(ranges, 's')}"

    def _with_deletes(self, rows: "DataFrame", deletes: "DataFrame") -> "DataFrame":
        keys = list(self.request.keys)
        # Rows of the source win over deletes of the same key, as in a change that deletes and inserts a row.
        gone = deletes.join(rows.select(*selected(keys)), keys, "left_anti")
        # Expressions in text: functions of pyspark.sql are for classic sessions only, or for Spark Connect only.
        marked = rows.selectExpr("*", f"false AS {quoted(DELETED)}")
        return marked.unionByName(gone.selectExpr("*", f"true AS {quoted(DELETED)}"), allowMissingColumns=True)


def selected(columns: Iterable[str]) -> list[str]:
    """Return column names as DataFrame.select takes them."""
    return [quoted(column) for column in columns]


def run(frames: MergeFrames, plan: Plan, source: MergeSource, journal: MergeLog) -> Merged:
    """Carry out a plan."""
    match plan:
        case Nothing():
            matched, appended = 0, 0
        case OneMerge(ranges=ranges):
            matched, appended = _merge(frames, frames.everything(), ranges, journal, inserts=frames.request.inserts)
        case AppendAll():
            matched, appended = 0, _append(frames, source, frames.frame, None, source.rows or None, journal)
        case MergeSome():
            matched, appended = _merge_some(frames, plan, source, journal)
        case LookUp():
            rewritten = _rewrite(frames, plan, source, journal) if plan.rewrites else None
            matched, appended = rewritten or _look_up(frames, plan, source, journal)
        # Two rows of one key: DELETE and append would write both, where MERGE fails.
        case Replace(ranges=ranges):
            found = _replace(frames, plan, source, journal)
            if found is None:
                plan = LookUp("two rows of the source have the same key: MERGE handles or refuses them", ranges)
                journal.log(f"  {'but':<9} {plan.reason}")
                found = _look_up(frames, plan, source, journal)
            matched, appended = found
        case _:
            assert_never(plan)
    rows = source.rows or matched + appended  # a source that was not counted has gone where these went
    return Merged(type(plan).__name__, plan.reason, rows, matched, appended, tuple(journal.parts))


def _merge_some(frames: MergeFrames, plan: MergeSome, source: MergeSource, journal: MergeLog) -> tuple[int, int]:
    inserts = frames.request.inserts
    inside = frames.inside(plan.ranges)
    matched, inserted = _merge(frames, inside, plan.ranges, journal, inserts=inserts, broadcasts=plan.broadcasts)
    if not inserts or source.elsewhere + source.null_keys == 0:
        return matched, inserted
    return matched, inserted + _append(frames, source, frames.outside(plan.ranges), None, None, journal)


def _replace(frames: MergeFrames, plan: Replace, source: MergeSource, journal: MergeLog) -> tuple[int, int] | None:
    inside = frames.inside(plan.ranges).localCheckpoint()
    view = frames.view(inside.select(*selected(frames.request.keys)))
    keys = _keys(frames, view)
    if not keys.are_unique:
        return None
    deleted = _delete(frames, view, plan.ranges, keys, journal)
    return deleted, _append(frames, source, frames.outside(plan.ranges), inside, source.rows, journal)


def _rewrite(frames: MergeFrames, plan: LookUp, source: MergeSource, journal: MergeLog) -> tuple[int, int] | None:
    """Delete what matches, and append the new rows; None if two rows have one key, which needs MERGE."""
    names = list(frames.request.keys)
    with journal.part("looked up") as tell:
        inside = frames.inside(plan.ranges).localCheckpoint()
        view = frames.view(inside)
        hashed = _keys(frames, view).hashed
        found = frames.spark.sql(
            frames.request.rewritten(view, tuple(frames.target.columns), plan.ranges, hashed)
        ).localCheckpoint()
        had = found.selectExpr(*(f"{quoted(HAD.format(at))} AS {quoted(key)}" for at, key in enumerate(names)))
        keys = _keys(frames, frames.view(had))
        tell(keys.rows, f"{keys.rows:,} of {source.may_match:,} rows match")
    if not keys.are_unique:
        return None
    if keys.rows:
        _delete(frames, frames.view(had), plan.ranges, keys, journal)
    columns = selected(frames.target.columns)
    stays = found.where(f"NOT {quoted(DELETED)}").select(*columns)
    # had is small: it holds only the keys that matched.
    misses = inside.join(had.hint("broadcast"), names, "left_anti").select(*columns)
    expected = source.rows - keys.rows + stays.count()
    return keys.rows, _append(frames, source, frames.outside(plan.ranges), stays.unionByName(misses), expected, journal)


def _look_up(frames: MergeFrames, plan: LookUp, source: MergeSource, journal: MergeLog) -> tuple[int, int]:
    ranges, names = plan.ranges, list(frames.request.keys)
    with journal.part("looked up") as tell:
        # Checkpoints, because cached rows would be computed again after the target has changed.
        inside = frames.inside(ranges).localCheckpoint()
        view = frames.view(inside)
        found = frames.spark.sql(_lookup_of(frames, view, ranges)).localCheckpoint()
        hits = inside.join(found.hint("broadcast"), names, "left_semi")
        matching = statistics.source(frames.spark, frames.view(hits), frames.request, frames.target)
        tell(matching.rows, f"{matching.rows:,} of {source.may_match:,} rows match")
    if matching.rows and frames.request.changes_matched:
        broadcasts = matching.rows <= MOST_BROADCAST_WHOLE
        _merge(frames, hits, matching.ranges, journal, inserts=False, broadcasts=broadcasts)
    deleting = matching.rows - _not_deleted(frames, hits).count() if matching.rows and frames.deletes is not None else 0
    expected = source.rows - (matching.rows - deleting)
    if expected == 0:
        return matching.rows, 0
    misses = _not_deleted(frames, inside.join(found.hint("broadcast"), names, "left_anti") if matching.rows else inside)
    return matching.rows, _append(frames, source, frames.outside(ranges), misses, expected, journal)


def _keys(frames: MergeFrames, view: str) -> statistics.Keys:
    return statistics.keys(frames.spark, view, frames.request, frames.target)


def _delete(
    frames: MergeFrames, view: str, ranges: tuple[KeyRange, ...], keys: statistics.Keys, journal: MergeLog
) -> int:
    with journal.part("deleted") as tell:
        frames.spark.sql(frames.request.removal(view, ranges, keys.hashed)).collect()
        summary = statistics.newest(frames.spark, frames.target, frames.request.into)
        added, merged, whole = (
            int(summary.get(what, 0))
            for what in ("added-position-deletes", "removed-position-deletes", "deleted-records")
        )
        rows = added - merged + whole  # a new deletion vector holds what the one before held
        tell(rows, f"{rows:,} rows, which are written again")
    return rows


def _lookup_of(frames: MergeFrames, view: str, ranges: tuple[KeyRange, ...]) -> str:
    keys = ", ".join(f"s.{quoted(key)}" for key in frames.request.keys)
    on = frames.request.on(ranges, _keys(frames, view).hashed)
    return f"SELECT /*+ BROADCAST(s) */ {keys} FROM {frames.request.target} t JOIN {view} s ON {on}"


def _not_deleted(frames: MergeFrames, frame: "DataFrame") -> "DataFrame":
    return frame if frames.deletes is None else frame.where(f"NOT {quoted(DELETED)}")


def _merge(
    frames: MergeFrames,
    frame: "DataFrame",
    ranges: tuple[KeyRange, ...],
    journal: MergeLog,
    *,
    inserts: bool,
    broadcasts: bool = False,
) -> tuple[int, int]:
    """Merge rows; return how many of the target were changed, and how many were inserted."""
    view = frames.view(frame)
    using = f"(SELECT /*+ BROADCAST({view}) */ * FROM {view})" if broadcasts else view
    with journal.part("merged") as tell:
        # collect: Spark Connect executes lazily until a result is asked for.
        frames.spark.sql(
            frames.request.statement(using, tuple(frames.target.columns), ranges, inserts=inserts)
        ).collect()
        summary = statistics.newest(frames.spark, frames.target, frames.request.into)
        updated, deleted, inserted = (
            int(summary.get(f"spark.merge-into.num-target-rows-{what}", 0))
            for what in ("matched-updated", "matched-deleted", "inserted")
        )
        tell(updated + deleted, f"{updated:,} rows updated, {deleted:,} deleted, {inserted:,} inserted")
    return updated + deleted, inserted


def _append(
    frames: MergeFrames,
    source: MergeSource,
    frame: "DataFrame",
    late: "DataFrame | None",
    expected: int | None,
    journal: MergeLog,
) -> int:
    """Append new rows and, gathered so that they make few files, late ones; return how many there were."""
    as_they_lie = frames.target.takes_as_they_lie(source)
    columns = selected(frames.target.columns)
    rows = frame.select(*columns)
    if late is not None:
        rows = rows.unionByName((late.coalesce(1) if as_they_lie else late).select(*columns))
    writer = rows.writeTo(frames.request.target)
    if as_they_lie:
        writer = writer.option("distribution-mode", "none").option("fanout-enabled", "true")
    with journal.part("appended") as tell:
        writer.append()
        summary = statistics.newest(frames.spark, frames.target, frames.request.into)
        appended = int(summary.get("added-records", 0))
        tell(appended, f"{appended:,} rows{', without a shuffle' if as_they_lie else ''}")
    # Writing read the source again. A source with other rows would have lost or doubled some without an error.
    if expected is not None and appended != expected:
        raise SourceUnstable(
            f"{expected:,} rows were to be appended to {frames.target.name}, and {appended:,} were.",
            remedy="Let the source give the same rows each time: persist it, or name a table that does not change.",
        )
    return appended
