"""`merge`: the function that users call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from calve.merging import plans, statistics
from calve.merging.execution import Merged, MergeFrames, MergeLog, run
from calve.merging.identifiers import selecting
from calve.merging.plans import AppendAll, LookUp, MergeSome, MergeSource, MergeTarget, Nothing, OneMerge, Plan, Replace
from calve.merging.request import MergeRequest, request
from calve.texts import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        log: Called with what was found, what was chosen and why, and the rows and seconds of each part.

    Raises:
        RequestInvalid: The arguments contradict each other, or name unknown columns.
        TableMissing: The target does not exist.
        SourceUnstable: The source returned other rows when it was read again.
    """
    asked = request(
        into=into,
        keys=keys,
        when_matched=when_matched,
        when_not_matched=when_not_matched,
        delete_when=delete_when,
        has_deletes=deletes is not None,
    )
    columns = statistics.target_columns(spark, asked.into)
    asked = replace(
        asked, into=statistics.qualified(spark, asked.into), keys=statistics.named_like(keys, columns, into)
    )
    frame = _aligned(_frame(spark, using), asked, columns)
    gone = None if deletes is None else _keys_of(_frame(spark, deletes), asked, columns)
    with active_session(spark):
        return _merged(spark, asked, columns, frame, gone, atomic=atomic, log=log)


def _frame(spark: "SparkSession", of: "str | DataFrame") -> "DataFrame":
    return spark.sql(selecting(of)) if isinstance(of, str) else of


def _aligned(frame: "DataFrame", asked: MergeRequest, columns: Mapping[str, str]) -> "DataFrame":
    """Return the source with the target's spelling of columns; further ones are for expressions over ``s``."""
    has = statistics.columns_of(frame)
    needed = list(columns) if asked.inserts or asked.when_matched == "update" else list(asked.keys)
    statistics.named_like(needed, has, "The source")
    by_lower = {column.lower(): column for column in columns}
    for name in has:
        if name not in columns and name.lower() in by_lower:
            frame = frame.withColumnRenamed(name, by_lower[name.lower()])
    return frame


def _keys_of(deletes: "DataFrame", asked: MergeRequest, columns: Mapping[str, str]) -> "DataFrame":
    """Return the keys of rows that only delete, cast to the target's types, so that bounds can be compared."""
    statistics.named_like(asked.keys, statistics.columns_of(deletes), "deletes")
    typed = [f"CAST({quoted(key)} AS {columns[key]}) AS {quoted(key)}" for key in asked.keys]
    has_keys = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in asked.keys)
    return deletes.selectExpr(*typed).where(has_keys).distinct()


def _merged(
    spark: "SparkSession",
    asked: MergeRequest,
    columns: Mapping[str, str],
    frame: "DataFrame",
    deletes: "DataFrame | None",
    *,
    atomic: bool,
    log: Callable[[str], None],
) -> Merged:
    journal = MergeLog(log)
    log(f"calve.merge into {'.'.join(asked.into)} by {', '.join(asked.keys)}")
    with journal.part("target") as tell:
        target = statistics.target(spark, asked, columns)
        tell(target.rows, _target_told(target))
    frames = MergeFrames(spark, asked, target, frame, deletes)
    try:
        plan, source = _planned(frames, journal, atomic=atomic)
        log(f"  {'chosen':<9} {_PLANS[type(plan)]}")
        log(f"  {'because':<9} {plan.reason}")
        return run(frames, plan, source, journal)
    finally:
        frames.close()


def _planned(frames: MergeFrames, journal: MergeLog, *, atomic: bool) -> tuple[Plan, MergeSource]:
    """Choose a plan; keep a source that is expensive to compute."""
    asked, target = frames.request, frames.target
    types = statistics.columns_of(frames.frame)
    reason = plans.only_merge(asked, target, types, atomic=atomic)
    if reason is None and target.rows == 0 and asked.inserts:
        return AppendAll("the target is empty"), MergeSource(0, 0, 0)  # a whole history, most likely: too much to count
    explained = [
        statistics.explained(frames.spark, frames.view(each))
        for each in (frames.frame, frames.deletes)
        if each is not None
    ]
    if reason is None and any(statistics.reads(each, target.name) for each in explained):
        reason = "the source reads the target itself, and must not see a partial merge"
    if reason is not None and not plans.is_worth_bounding(asked, target, types):
        return OneMerge(reason), MergeSource(0, 0, 0)
    with journal.part("source") as tell:
        # Bounds are of the rows that are counted, and a single MERGE has nothing else to tell others by: it keeps all.
        keeps = reason is not None or statistics.is_worth_keeping(explained[0])
        if keeps:
            frames.keep()
        source = _counted(frames)
        tell(source.rows, _source_told(source, keeps=keeps))
    if reason is not None:
        return OneMerge(reason, source.everywhere), source
    return plans.choose(asked, target, source), source


def _counted(frames: MergeFrames) -> MergeSource:
    source = statistics.source(frames.spark, frames.view(frames.frame), frames.request, frames.target)
    if frames.deletes is None:
        return source
    return source.with_deletes(
        statistics.source(frames.spark, frames.view(frames.deletes), frames.request, frames.target)
    )


def _target_told(target: MergeTarget) -> str:
    slices = "partitions" if target.partitioning else "files"
    leading = target.leading
    ranges = f", {leading.column} in {len(leading.intervals):,} ranges" if leading else ", no bounds of the keys"
    where = f" on branch {target.branch}" if target.branch else ""
    return f"{target.rows:,} rows in {target.files:,} files, {target.slices:,} {slices}{ranges}{where}"


def _source_told(source: MergeSource, *, keeps: bool) -> str:
    parts = [
        f"{source.rows:,} rows{', computed once and kept' if keeps else ', read as often as needed'}:",
        f"{source.may_match:,} may match, {source.elsewhere:,} lie where the target has none,",
        f"{source.null_keys:,} have a null key",
    ]
    return " ".join(parts)


@contextmanager
def active_session(spark: "SparkSession") -> Iterator[None]:
    """Make a Spark Connect session the active one of this thread: checkpoints are made in the active session."""
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    from pyspark.sql.connect.session import SparkSession as Remote

    local: Any = Remote._active_session  # noqa: SLF001 - only what creates a session sets it
    before = getattr(local, "session", None)
    local.session = spark
    try:
        yield
    finally:
        local.session = before
