"""Merge a change into a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from calve.merging import facts, plans
from calve.merging.names import quoted, selecting
from calve.merging.plans import AppendAll, LookUp, MergeSome, Nothing, OneMerge, Plan, Replace, Source, Target
from calve.merging.request import Request, request
from calve.merging.running import Journal, Merged, Work, run
from calve.merging.sessions import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PLANS: dict[type[Plan], str] = {
    Nothing: "nothing to do",
    OneMerge: "one MERGE of the whole source",
    AppendAll: "append the whole source",
    MergeSome: "merge what may match, append the rest",
    LookUp: "look up what may match, merge what does, append the rest",
    Replace: "delete what the source replaces, append the whole source",
}


def merge(
    spark: "SparkSession",
    *,
    into: str,
    using: "str | DataFrame",
    keys: Sequence[str],
    when_matched: str | Mapping[str, str] = "update",
    when_not_matched: str = "insert",
    delete_when: str | None = None,
    deletes: "str | DataFrame | None" = None,
    atomic: bool = True,
    log: Callable[[str], None] = print,
) -> Merged:
    """Merge a source into an Iceberg table by key, by the cheapest plan that gives what ``MERGE`` would give.

    Args:
        spark: A session, classic or Spark Connect.
        into: The table.
        using: The source: a table or view, a query, or a frame, with all of the target's columns by name.
        keys: The columns by which rows match. A null matches nothing, as in ``MERGE``.
        when_matched: ``update`` (all columns), ``ignore``, ``delete``, or new values by column: expressions over the
            target's row ``t`` and the source's row ``s``.
        when_not_matched: ``insert`` or ``ignore``.
        delete_when: A condition over ``t`` and ``s`` under which a row that matches is deleted instead.
        deletes: Rows (a table, view, query or frame) whose keys are deleted, unless ``using`` has them.
        atomic: Without a branch, use one commit. With False, two are used where that is cheaper: for a target that
            nobody else writes to. A session with ``spark.wap.branch`` is atomic anyhow.
        log: Is told what was found, what was chosen and why, and the rows and seconds of each part.

    Raises:
        RequestInvalid: The merge makes no sense.
        TableMissing: There is no such target.
        SourceUnstable: The source gave other rows when it was read again.
    """
    asked = request(
        into=into,
        keys=keys,
        when_matched=when_matched,
        when_not_matched=when_not_matched,
        delete_when=delete_when,
        has_deletes=deletes is not None,
    )
    columns = facts.target_columns(spark, asked.into)
    asked = replace(asked, into=facts.qualified(spark, asked.into), keys=facts.named_like(keys, columns, into))
    frame = _aligned(_frame(spark, using), asked, columns)
    gone = None if deletes is None else _keys_of(_frame(spark, deletes), asked, columns)
    with active(spark):
        return _merged(spark, asked, columns, frame, gone, atomic=atomic, log=log)


def _frame(spark: "SparkSession", of: "str | DataFrame") -> "DataFrame":
    return spark.sql(selecting(of)) if isinstance(of, str) else of


def _aligned(frame: "DataFrame", asked: Request, columns: Mapping[str, str]) -> "DataFrame":
    """Return the source with the target's spelling of columns; further ones are for expressions over ``s``."""
    has = facts.columns_of(frame)
    needed = list(columns) if asked.inserts or asked.when_matched == "update" else list(asked.keys)
    facts.named_like(needed, has, "The source")
    by_lower = {column.lower(): column for column in columns}
    for name in has:
        if name not in columns and name.lower() in by_lower:
            frame = frame.withColumnRenamed(name, by_lower[name.lower()])
    return frame


def _keys_of(deletes: "DataFrame", asked: Request, columns: Mapping[str, str]) -> "DataFrame":
    """Return the keys of rows that only delete, in the target's types: bounds are compared as such."""
    facts.named_like(asked.keys, facts.columns_of(deletes), "deletes")
    typed = [f"CAST({quoted(key)} AS {columns[key]}) AS {quoted(key)}" for key in asked.keys]
    has_keys = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in asked.keys)
    return deletes.selectExpr(*typed).where(has_keys).distinct()


def _merged(
    spark: "SparkSession",
    asked: Request,
    columns: Mapping[str, str],
    frame: "DataFrame",
    deletes: "DataFrame | None",
    *,
    atomic: bool,
    log: Callable[[str], None],
) -> Merged:
    journal = Journal(log)
    log(f"calve.merge into {'.'.join(asked.into)} by {', '.join(asked.keys)}")
    with journal.part("target") as tell:
        target = facts.target(spark, asked, columns)
        tell(target.rows, _target_told(target))
    work = Work(spark, asked, target, frame, deletes)
    try:
        plan, source = _planned(work, journal, atomic=atomic)
        log(f"  {'chosen':<9} {_PLANS[type(plan)]}")
        log(f"  {'because':<9} {plan.reason}")
        return run(work, plan, source, journal)
    finally:
        work.close()


def _planned(work: Work, journal: Journal, *, atomic: bool) -> tuple[Plan, Source]:
    """Choose a plan; a source that is costly to compute is kept."""
    asked, target = work.request, work.target
    types = facts.columns_of(work.frame)
    reason = plans.only_merge(asked, target, types, atomic=atomic)
    if reason is None and target.rows == 0 and asked.inserts:
        return AppendAll("the target is empty"), Source(0, 0, 0)  # a whole history, most likely: too much to count
    explained = [
        facts.explained(work.spark, work.view(each)) for each in (work.frame, work.deletes) if each is not None
    ]
    if reason is None and any(facts.reads(each, target.name) for each in explained):
        reason = "the source reads the target itself, and must not see what is half merged"
    if reason is not None and not plans.is_worth_bounding(asked, target, types):
        return OneMerge(reason), Source(0, 0, 0)
    with journal.part("source") as tell:
        # Bounds are of the rows that are counted, and a single MERGE has nothing else to tell others by: it keeps all.
        keeps = reason is not None or facts.is_worth_keeping(explained[0])
        if keeps:
            work.keep()
        source = _counted(work)
        tell(source.rows, _source_told(source, keeps=keeps))
    if reason is not None:
        return OneMerge(reason, source.everywhere), source
    return plans.choose(asked, target, source), source


def _counted(work: Work) -> Source:
    source = facts.source(work.spark, work.view(work.frame), work.request, work.target)
    if work.deletes is None:
        return source
    return source.with_deletes(facts.source(work.spark, work.view(work.deletes), work.request, work.target))


def _target_told(target: Target) -> str:
    slices = "partitions" if target.partitioning else "files"
    leading = target.leading
    ranges = f", {leading.column} in {len(leading.intervals):,} ranges" if leading else ", no bounds of the keys"
    where = f" on branch {target.branch}" if target.branch else ""
    return f"{target.rows:,} rows in {target.files:,} files, {target.slices:,} {slices}{ranges}{where}"


def _source_told(source: Source, *, keeps: bool) -> str:
    parts = [
        f"{source.rows:,} rows{', computed once and kept' if keeps else ', read as often as needed'}:",
        f"{source.may_match:,} may match, {source.elsewhere:,} lie where the target has none,",
        f"{source.null_keys:,} have a null key",
    ]
    return " ".join(parts)
