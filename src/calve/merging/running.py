"""Carrying out a plan."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, assert_never

from calve.errors import SourceUnstable
from calve.merging import facts
from calve.merging.bounds import Range, all_hold
from calve.merging.names import quoted
from calve.merging.plans import (
    MOST_BROADCAST_WHOLE,
    AppendAll,
    LookUp,
    MergeSome,
    Nothing,
    OneMerge,
    Plan,
    Replace,
    Source,
    Target,
)
from calve.merging.request import DELETED, HAD, Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a merge."""

    name: str
    rows: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did: the plan that was chosen, and why; rows; parts with their seconds."""

    plan: str
    reason: str
    rows: int
    matched: int
    appended: int
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Journal:
    """What has been done so far, told as it happens."""

    log: Callable[[str], None]
    clock: Callable[[], float] = time.perf_counter
    parts: list[Part] = field(default_factory=list)

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[int | None, str], None]]:
        """Time a part; it is told with its rows and a remark."""
        started = self.clock()
        told: list[tuple[int | None, str]] = []
        yield lambda rows, remark: told.append((rows, remark))
        rows, remark = told[-1] if told else (None, "")
        self.parts.append(Part(name, rows, self.clock() - started))
        self.log(f"  {name:<9} {remark} ({self.parts[-1].seconds:.1f} s)")


@dataclass(slots=True)
class Work:
    """The frames of a merge, and the views over them, which end with it."""

    spark: "SparkSession"
    request: Request
    target: Target
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
        """Let the source be computed only once.

        By a checkpoint, which keeps rows as they are: columns, as ``persist`` makes them, cost a third more.
        """
        self.frame = self.frame.localCheckpoint()

    def inside(self, ranges: tuple[Range, ...]) -> "DataFrame":
        """Return the rows that may match, those that only delete among them."""
        within = self._within(ranges)
        rows = self.frame.alias("s").where(within)
        return rows if self.deletes is None else self._with_deletes(rows, self.deletes.alias("s").where(within))

    def outside(self, ranges: tuple[Range, ...]) -> "DataFrame":
        """Return the rows that cannot match: all others."""
        return self.frame.alias("s").where(f"NOT coalesce({self._within(ranges)}, false)")

    def everything(self) -> "DataFrame":
        """Return all rows, those that only delete among them."""
        return self.frame if self.deletes is None else self._with_deletes(self.frame, self.deletes)

    def _within(self, ranges: tuple[Range, ...]) -> str:
        keys = " AND ".join(f"s.{quoted(key)} IS NOT NULL" for key in self.request.keys)
        return f"{keys} AND {all_hold(ranges, 's')}"

    def _with_deletes(self, rows: "DataFrame", deletes: "DataFrame") -> "DataFrame":
        keys = list(self.request.keys)
        gone = deletes.join(rows.select(*selected(keys)), keys, "left_anti")
        # Expressions in text: functions of pyspark.sql are for classic sessions only, or for Spark Connect only.
        marked = rows.selectExpr("*", f"false AS {quoted(DELETED)}")
        return marked.unionByName(gone.selectExpr("*", f"true AS {quoted(DELETED)}"), allowMissingColumns=True)


def selected(columns: Iterable[str]) -> list[str]:
    """Return column names as DataFrame.select takes them."""
    return [quoted(column) for column in columns]


def run(work: Work, plan: Plan, source: Source, journal: Journal) -> Merged:
    """Carry out a plan."""
    match plan:
        case Nothing():
            matched, appended = 0, 0
        case OneMerge(ranges=ranges):
            matched, appended = _merge(work, work.everything(), ranges, journal, inserts=work.request.inserts)
        case AppendAll():
            matched, appended = 0, _append(work, source, work.frame, None, source.rows or None, journal)
        case MergeSome():
            matched, appended = _merge_some(work, plan, source, journal)
        case LookUp():
            rewritten = _rewrite(work, plan, source, journal) if plan.rewrites else None
            matched, appended = rewritten or _look_up(work, plan, source, journal)
        case Replace(ranges=ranges):
            found = _replace(work, plan, source, journal)
            if found is None:
                plan = LookUp("two rows of the source have one key: MERGE says what becomes of them", ranges)
                journal.log(f"  {'but':<9} {plan.reason}")
                found = _look_up(work, plan, source, journal)
            matched, appended = found
        case _:
            assert_never(plan)
    rows = source.rows or matched + appended  # a source that was not counted has gone where these went
    return Merged(type(plan).__name__, plan.reason, rows, matched, appended, tuple(journal.parts))


def _merge_some(work: Work, plan: MergeSome, source: Source, journal: Journal) -> tuple[int, int]:
    inserts = work.request.inserts
    inside = work.inside(plan.ranges)
    matched, inserted = _merge(work, inside, plan.ranges, journal, inserts=inserts, broadcasts=plan.broadcasts)
    if not inserts or source.elsewhere + source.null_keys == 0:
        return matched, inserted
    return matched, inserted + _append(work, source, work.outside(plan.ranges), None, None, journal)


def _replace(work: Work, plan: Replace, source: Source, journal: Journal) -> tuple[int, int] | None:
    inside = work.inside(plan.ranges).localCheckpoint()
    view = work.view(inside.select(*selected(work.request.keys)))
    keys = _keys(work, view)
    if not keys.are_unique:
        return None
    deleted = _delete(work, view, plan.ranges, keys, journal)
    return deleted, _append(work, source, work.outside(plan.ranges), inside, source.rows, journal)


def _rewrite(work: Work, plan: LookUp, source: Source, journal: Journal) -> tuple[int, int] | None:
    """Delete what matches, and append it as it will be; None where two rows have one key: that is for MERGE."""
    names = list(work.request.keys)
    with journal.part("looked up") as tell:
        inside = work.inside(plan.ranges).localCheckpoint()
        view = work.view(inside)
        hashed = _keys(work, view).hashed
        found = work.spark.sql(
            work.request.rewritten(view, tuple(work.target.columns), plan.ranges, hashed)
        ).localCheckpoint()
        had = found.selectExpr(*(f"{quoted(HAD.format(at))} AS {quoted(key)}" for at, key in enumerate(names)))
        keys = _keys(work, work.view(had))
        tell(keys.rows, f"{keys.rows:,} of {source.may_match:,} rows match")
    if not keys.are_unique:
        return None
    if keys.rows:
        _delete(work, work.view(had), plan.ranges, keys, journal)
    columns = selected(work.target.columns)
    stays = found.where(f"NOT {quoted(DELETED)}").select(*columns)
    misses = inside.join(had.hint("broadcast"), names, "left_anti").select(*columns)
    expected = source.rows - keys.rows + stays.count()
    return keys.rows, _append(work, source, work.outside(plan.ranges), stays.unionByName(misses), expected, journal)


def _look_up(work: Work, plan: LookUp, source: Source, journal: Journal) -> tuple[int, int]:
    ranges, names = plan.ranges, list(work.request.keys)
    with journal.part("looked up") as tell:
        # Checkpoints, because what is merely cached is computed anew once the target has changed.
        inside = work.inside(ranges).localCheckpoint()
        view = work.view(inside)
        found = work.spark.sql(_lookup_of(work, view, ranges)).localCheckpoint()
        hits = inside.join(found.hint("broadcast"), names, "left_semi")
        matching = facts.source(work.spark, work.view(hits), work.request, work.target)
        tell(matching.rows, f"{matching.rows:,} of {source.may_match:,} rows match")
    if matching.rows and work.request.changes_matched:
        broadcasts = matching.rows <= MOST_BROADCAST_WHOLE
        _merge(work, hits, matching.ranges, journal, inserts=False, broadcasts=broadcasts)
    deleting = matching.rows - _not_deleted(work, hits).count() if matching.rows and work.deletes is not None else 0
    expected = source.rows - (matching.rows - deleting)
    if expected == 0:
        return matching.rows, 0
    misses = _not_deleted(work, inside.join(found.hint("broadcast"), names, "left_anti") if matching.rows else inside)
    return matching.rows, _append(work, source, work.outside(ranges), misses, expected, journal)


def _keys(work: Work, view: str) -> facts.Keys:
    return facts.keys(work.spark, view, work.request, work.target)


def _delete(work: Work, view: str, ranges: tuple[Range, ...], keys: facts.Keys, journal: Journal) -> int:
    with journal.part("deleted") as tell:
        work.spark.sql(work.request.removal(view, ranges, keys.hashed)).collect()
        summary = facts.newest(work.spark, work.target, work.request.into)
        added, merged, whole = (
            int(summary.get(what, 0))
            for what in ("added-position-deletes", "removed-position-deletes", "deleted-records")
        )
        rows = added - merged + whole  # a new deletion vector holds what the one before held
        tell(rows, f"{rows:,} rows, which are written anew")
    return rows


def _lookup_of(work: Work, view: str, ranges: tuple[Range, ...]) -> str:
    keys = ", ".join(f"s.{quoted(key)}" for key in work.request.keys)
    on = work.request.on(ranges, _keys(work, view).hashed)
    return f"SELECT /*+ BROADCAST(s) */ {keys} FROM {work.request.target} t JOIN {view} s ON {on}"


def _not_deleted(work: Work, frame: "DataFrame") -> "DataFrame":
    return frame if work.deletes is None else frame.where(f"NOT {quoted(DELETED)}")


def _merge(
    work: Work,
    frame: "DataFrame",
    ranges: tuple[Range, ...],
    journal: Journal,
    *,
    inserts: bool,
    broadcasts: bool = False,
) -> tuple[int, int]:
    """Merge rows; return how many of the target were changed, and how many were inserted."""
    view = work.view(frame)
    using = f"(SELECT /*+ BROADCAST({view}) */ * FROM {view})" if broadcasts else view
    with journal.part("merged") as tell:
        work.spark.sql(work.request.statement(using, tuple(work.target.columns), ranges, inserts=inserts)).collect()
        summary = facts.newest(work.spark, work.target, work.request.into)
        updated, deleted, inserted = (
            int(summary.get(f"spark.merge-into.num-target-rows-{what}", 0))
            for what in ("matched-updated", "matched-deleted", "inserted")
        )
        tell(updated + deleted, f"{updated:,} rows updated, {deleted:,} deleted, {inserted:,} inserted")
    return updated + deleted, inserted


def _append(
    work: Work,
    source: Source,
    frame: "DataFrame",
    late: "DataFrame | None",
    expected: int | None,
    journal: Journal,
) -> int:
    """Append new rows and, gathered so that they make few files, late ones; return how many there were."""
    as_they_lie = work.target.takes_as_they_lie(source)
    columns = selected(work.target.columns)
    rows = frame.select(*columns)
    if late is not None:
        rows = rows.unionByName((late.coalesce(1) if as_they_lie else late).select(*columns))
    writer = rows.writeTo(work.request.target)
    if as_they_lie:
        writer = writer.option("distribution-mode", "none").option("fanout-enabled", "true")
    with journal.part("appended") as tell:
        writer.append()
        summary = facts.newest(work.spark, work.target, work.request.into)
        appended = int(summary.get("added-records", 0))
        tell(appended, f"{appended:,} rows{', without a shuffle' if as_they_lie else ''}")
    if expected is not None and appended != expected:
        raise SourceUnstable(
            f"{expected:,} rows were to be appended to {work.target.name}, and {appended:,} were.",
            remedy="Let the source give the same rows each time: persist it, or name a table that does not change.",
        )
    return appended
