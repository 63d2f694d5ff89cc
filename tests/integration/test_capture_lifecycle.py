"""What tables go through in their lives: compaction, rollback, expiry, branches, re-creation."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.integration.tables import KINDS, SOME_KINDS, Source, options, union

from calve.capture import OnGap, OnSchemaChange, Operation
from calve.errors import (
    CheckpointExists,
    HistoryExpired,
    NotAnAncestor,
    RequestInvalid,
    SchemaChanged,
    SnapshotUnknown,
    TableMissing,
    TableRecreated,
)

pytestmark = pytest.mark.spark

APPENDS = frozenset({Operation.APPEND})
VERSIONS = ["v1", "v2 merge-on-read", "v3 merge-on-read"]
LATER = ["v2 merge-on-read", "v3 merge-on-read", "v3 copy-on-write"]


def _append(source: Source, first: int, last: int) -> int:
    """Append some rows, over two files and three days; return the snapshot."""
    source.run(
        "INSERT INTO {t} SELECT id, DATE '2026-01-01' + CAST(id % 3 AS INT), concat('v', id) "
        f"FROM range({first}, {last}, 1, 2)"
    )
    return source.head


def _create(source: Source, kind: str, by: str = "", **properties: str) -> int:
    source.create("id BIGINT, day DATE, v STRING", kind, by, **properties)
    return _append(source, 0, 8)


@pytest.mark.parametrize("by", ["", "day"], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", VERSIONS)
def test_compaction_gives_appended_rows_once(source: Source, kind: str, by: str) -> None:
    """Appends before and after a compaction are captured; what the compaction moved is not."""
    start = _create(source, kind, by)
    source.advance()
    before = _append(source, 10, 14)
    source.compact()
    compacted = source.head
    after = _append(source, 20, 24)
    source.check(source.between(start, after, operations=APPENDS))
    source.check(source.between(before, after, operations=APPENDS))
    only = source.between(before, compacted, operations=APPENDS)
    assert (only.changed, only.files, source.rows(only.relation)) == (False, 0, Counter())
    source.call("rewrite_manifests")
    found = source.advance(operations=APPENDS)
    source.check(found)
    assert [step["included"] for step in found.snapshots] == [True, False, True, False]


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_rewritten_manifests_do_not_shift_rows(source: Source, kind: str) -> None:
    """Iceberg 1.11.0 gives the rows of a v3 table new ids with new manifests; captures must not follow them."""
    start = _create(source, kind)
    source.run("UPDATE {t} SET v = 'x' WHERE id = 2")
    source.advance()
    source.run("UPDATE {t} SET v = 'y' WHERE id IN (1, 3)")
    _append(source, 10, 14)
    source.call("rewrite_manifests")
    rewritten = source.head
    source.run("DELETE FROM {t} WHERE id IN (4, 11)", "UPDATE {t} SET v = 'z' WHERE id IN (5, 12)")
    source.check(source.between(rewritten))
    source.compact()
    source.check(source.advance())
    source.check(source.between(start))
    source.run("DELETE FROM {t} WHERE id = 6", "UPDATE {t} SET v = 'last' WHERE id = 13")
    source.check(source.advance())


@pytest.mark.parametrize("kind", ["v3 copy-on-write", "v3 merge-on-read"])
def test_row_lineage_is_the_sources_own(source: Source, kind: str) -> None:
    """Ids and sequence numbers of rows read alike in the capture, over merged manifests and compaction."""
    start = _create(source, kind, commit__manifest__min_count_to_merge="2")
    _append(source, 10, 14)
    source.run("UPDATE {t} SET v = 'x' WHERE id IN (1, 11)")
    source.compact(where="id < 5")
    _append(source, 20, 24)
    source.run("DELETE FROM {t} WHERE id = 12")

    def lineage(relation: str | None) -> set[tuple[int, ...]]:
        query = f"SELECT id, _row_id, _last_updated_sequence_number FROM {relation}"
        return {tuple(row) for row in source.run(query)}

    truth = lineage(source.name)
    assert len({row[1] for row in truth}) == len(truth)
    everything = source.advance()
    assert lineage(everything.icdc_table) == truth
    found = source.between(start)
    source.check(found)
    for table in filter(None, (found.icdc_table, found.carried_table)):
        assert lineage(table) <= truth
    changed = {row for row in truth if row[2] > found.from_sequence_number}  # type: ignore[operator]
    assert changed == {row for row in lineage(found.icdc_table) if row[2] > found.from_sequence_number}  # type: ignore[operator]


@pytest.mark.parametrize("kind", VERSIONS)
def test_merged_manifests_are_cut_to_the_range(source: Source, kind: str) -> None:
    """A writer that merges manifests lists new files beside old ones; only the new ones are captured."""
    _create(source, kind, "day", commit__manifest__min_count_to_merge="2")
    places = [source.head, *(_append(source, n, n + 4) for n in (10, 20, 30))]
    source.check(source.between(places[0], places[1], operations=APPENDS))
    source.check(source.between(places[1], places[3], operations=APPENDS))
    first = source.advance()
    assert source.rows(first.relation) == source.at(source.head)
    source.run("DELETE FROM {t} WHERE id IN (1, 21)")
    _append(source, 40, 44)
    source.check(source.advance())
    source.check(source.between(places[1]))


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_rollback_is_distinguished_from_expiry(source: Source, kind: str) -> None:
    """A checkpoint that was rolled back is named, with the last snapshot that both histories share."""
    first = _create(source, kind)
    rolled_back = _append(source, 10, 14)
    source.advance()
    source.call("rollback_to_snapshot", snapshot_id=str(first))
    with pytest.raises(NotAnAncestor) as told:
        source.capture()
    assert told.value.context["common_ancestor"] == first
    _append(source, 20, 24)
    with pytest.raises(NotAnAncestor) as told:
        source.capture(on_gap=OnGap.FULL)
    assert told.value.context["checkpoint_snapshot_id"] == rolled_back
    source.captures.set_checkpoint(source.name, source._consumer("me"), str(first), "mended the target")
    source.check(source.advance())


@pytest.mark.parametrize("kind", ["v2 merge-on-read", "v3 merge-on-read"])
def test_a_rollback_followed_by_expiry_is_still_a_rollback(source: Source, kind: str) -> None:
    """Going on by sequence number would silently keep the rows that were rolled back."""
    first = _create(source, kind)
    second = _append(source, 10, 14)
    third = _append(source, 20, 24)
    source.advance()
    source.call("rollback_to_snapshot", snapshot_id=str(second))
    source.expire(first, third)
    for policy in OnGap:
        with pytest.raises(NotAnAncestor):
            source.capture(on_gap=policy)


@pytest.mark.parametrize("kind", VERSIONS)
def test_expired_history_is_a_gap_unless_only_the_start_is_gone(source: Source, kind: str) -> None:
    """The checkpoint's own snapshot is not needed; one after it is, and then the error says so."""
    start = _create(source, kind)
    source.advance()
    middle = _append(source, 10, 14)
    end = _append(source, 20, 24)
    truth = source.at(end) - source.at(start)
    source.expire(start)
    plan = source.plan(operations=APPENDS)
    assert (plan.from_snapshot_id, plan.records) == (start, 8)
    capture = source.capture(operations=APPENDS)
    assert source.rows(capture.tables[0].relation) == truth
    source.captures.abandon(str(capture.capture_id))
    source.expire(middle)
    with pytest.raises(HistoryExpired) as told:
        source.capture(operations=APPENDS)
    assert told.value.context == {
        "table": f"lake.{source.name}",
        "checkpoint_snapshot_id": start,
        "oldest_snapshot_id": end,
    }
    if KINDS[kind][0] < 3:
        assert "upserts" not in told.value.remedy
        with pytest.raises(HistoryExpired):
            source.capture(on_gap=OnGap.UPSERTS)
    full = source.advance(on_gap=OnGap.FULL)
    assert source.rows(full.relation) == source.at(end)
    _append(source, 30, 34)
    source.check(source.advance(operations=APPENDS))


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_only_the_start_expired_keeps_changes_exact(source: Source, kind: str) -> None:
    """What was deleted at the start is read off the snapshot after it."""
    _create(source, kind)
    source.run("DELETE FROM {t} WHERE id = 3")
    source.advance()
    start = source.head
    before = source.at(start)
    source.run("INSERT INTO {t} VALUES (9, DATE '2026-01-01', 'v9')", "DELETE FROM {t} WHERE id IN (2, 6)")
    source.run("UPDATE {t} SET v = 'new' WHERE id IN (4, 9)")
    after = source.at(source.head)
    source.expire(start)
    found = source.capture().tables[0]
    assert source.rows(found.relation) == after - before
    assert source.rows(found.deletes_relation) == before - after


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_went_with_the_start_are_reported(source: Source, kind: str) -> None:
    """Where the next commit rewrote files, expiry of the start deletes them, and old images cannot be had."""
    _create(source, kind)
    source.advance()
    start = source.head
    before = source.at(start)
    source.run("UPDATE {t} SET v = 'new' WHERE id IN (2, 6)")
    after = source.at(source.head)
    source.expire(start)
    if kind.endswith("merge-on-read"):
        found = source.capture().tables[0]
        assert source.rows(found.relation) == after - before
        assert source.rows(found.deletes_relation) == before - after
        return
    with pytest.raises(HistoryExpired):
        source.capture()
    if kind.startswith("v3"):
        found = source.capture(on_gap=OnGap.UPSERTS).tables[0]
        assert source.rows(found.relation) == after - before


@pytest.mark.parametrize("kind", ["v3 copy-on-write", "v3 merge-on-read"])
def test_lineage_carries_upserts_over_a_gap(source: Source, kind: str) -> None:
    """On v3, new and changed rows need no history: no more, no less, compaction or not; deletes are lost."""
    _create(source, kind, "day")
    source.run("UPDATE {t} SET v = 'before' WHERE id = 1")
    source.advance()
    before = source.at(source.head)
    _append(source, 10, 16)
    source.run(
        "UPDATE {t} SET v = 'changed' WHERE id IN (2, 11)",
        "DELETE FROM {t} WHERE id IN (3, 12)",
        "MERGE INTO {t} t USING (SELECT 4L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'",
    )
    source.compact(where="day = DATE '2026-01-02'")
    _append(source, 20, 22)
    source.run("DELETE FROM {t} WHERE id = 20")
    source.expire()
    after = source.at(source.head)
    with pytest.raises(HistoryExpired, match="expired") as told:
        source.capture()
    assert "--on-gap upserts" in told.value.remedy
    found = source.advance(on_gap=OnGap.UPSERTS)
    assert source.rows(found.relation) == after - before
    assert (found.deletes_relation, found.deleted_records) == (None, None)
    source.run("DELETE FROM {t} WHERE id = 21")
    source.check(source.advance())


@pytest.mark.parametrize("kind", ["v2 merge-on-read", "v3 merge-on-read"])
def test_a_table_made_again_is_another_table(source: Source, kind: str) -> None:
    """A dropped and re-created table shares nothing with the checkpoint but the name."""
    _create(source, kind)
    source.advance()
    source.run("DROP TABLE {t}")
    with pytest.raises(TableMissing):
        source.capture()
    _create(source, kind)
    with pytest.raises(TableRecreated):
        source.capture(on_gap=OnGap.FULL)
    source.captures.reset_checkpoint(source.name, source._consumer("me"), "it was made again")
    source.check(source.advance())


@pytest.mark.parametrize("kind", LATER)
def test_a_replaced_table_is_not_a_continuation(source: Source, kind: str) -> None:
    """CREATE OR REPLACE starts a history of its own in the same table."""
    _create(source, kind)
    source.advance()
    version = KINDS[kind][0]
    source.run(
        "CREATE OR REPLACE TABLE {t} USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}') AS SELECT 1L AS id, 'new' AS w"
    )
    for policy in OnGap:
        with pytest.raises(NotAnAncestor):
            source.capture(on_gap=policy)
    source.captures.reset_checkpoint(source.name, source._consumer("me"), "replaced")
    source.check(source.advance())
    source.run("INSERT INTO {t} VALUES (2, 'newer')", "UPDATE {t} SET w = 'newest' WHERE id = 1")
    source.check(source.advance())


@pytest.mark.parametrize("kind", LATER)
def test_a_branch_counts_once_it_is_fast_forwarded(source: Source, kind: str) -> None:
    """Commits on a branch are no change of the table, and all of them are once main moves there."""
    _create(source, kind)
    source.advance()
    source.run("ALTER TABLE {t} CREATE BRANCH side")
    source.run(
        "INSERT INTO {t}.branch_side VALUES (50, DATE '2026-01-01', 'side')",
        "DELETE FROM {t}.branch_side WHERE id = 1",
        "UPDATE {t}.branch_side SET v = 'side' WHERE id = 2",
    )
    assert not source.plan().changed
    ahead = source.plan(end="side")
    assert (ahead.changed, len(ahead.snapshots)) == (True, 3)
    source.run(f"CALL lake.system.fast_forward('{source.name}', 'main', 'side')")
    source.check(source.advance())
    assert not source.plan(end="side").changed


@pytest.mark.parametrize("kind", LATER)
def test_a_consumer_can_follow_a_branch(source: Source, kind: str) -> None:
    """What main does meanwhile is no concern of it."""
    _create(source, kind)
    source.run("ALTER TABLE {t} CREATE BRANCH side")
    source.check(source.advance(end="side"))
    for number in (50, 60):
        source.run(
            f"INSERT INTO {{t}}.branch_side VALUES ({number}, DATE '2026-01-01', 'side')",
            f"UPDATE {{t}}.branch_side SET v = 'side {number}' WHERE id = 2",
        )
        _append(source, number + 100, number + 104)
        found = source.advance(end="side")
        assert len(found.snapshots) == 2
        source.check(found)


@pytest.mark.parametrize("kind", LATER)
def test_a_branch_that_left_the_checkpoint_behind_is_refused(source: Source, kind: str) -> None:
    """A capture to another line of history would take back what it cannot."""
    _create(source, kind)
    source.run("ALTER TABLE {t} CREATE BRANCH side")
    _append(source, 10, 14)
    source.advance()
    source.run("INSERT INTO {t}.branch_side VALUES (50, DATE '2026-01-01', 'side')")
    with pytest.raises(NotAnAncestor):
        source.capture(end="side")


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_staged_write_is_captured_once_it_is_published(source: Source, kind: str) -> None:
    """Write, audit, publish: what is staged is off the history; cherry-picked, its rows come once."""
    _create(source, kind, write__wap__enabled="true")
    source.advance()
    with options(source.spark, spark__wap__id="audit-1"):
        source.run("INSERT INTO {t} VALUES (60, DATE '2026-01-01', 'staged')")
    assert not source.plan().changed
    between = _append(source, 10, 14)
    source.call("publish_changes", wap_id="'audit-1'")
    assert source.head != between
    found = source.advance(operations=APPENDS)
    source.check(found)
    assert len(found.snapshots) == 2
    with options(source.spark, spark__wap__id="audit-2"):
        source.run("INSERT INTO {t} VALUES (61, DATE '2026-01-01', 'forwarded')")
    source.call("publish_changes", wap_id="'audit-2'")
    source.check(source.advance(operations=APPENDS))


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_range_ends_where_it_is_told_to(source: Source, kind: str) -> None:
    """A snapshot, a tag, a branch or a time; what comes after stays pending."""

    def now() -> str:
        time.sleep(0.005)
        moment = datetime.now(UTC).isoformat()  # noqa: TID251 - Spark stamps snapshots with the same clock
        time.sleep(0.005)
        return moment

    first = _create(source, kind)
    after_first = now()
    second = _append(source, 10, 14)
    source.run("ALTER TABLE {t} CREATE TAG reviewed")
    third = _append(source, 20, 24)
    after_third = now()
    fourth = _append(source, 30, 34)
    reached = []
    for end, more in ((after_first, True), ("reviewed", True), (after_third, True), ("main", False)):
        report = source.advance(end=end)
        source.check(report)
        assert report.pending is more
        reached.append(report.to_snapshot_id)
    assert reached == [first, second, third, fourth]
    # a consumer may begin at such places too
    for start, truth in ((after_first, first), ("reviewed", second), (str(third), third), ("latest", fourth)):
        report = source.capture(f"from {start}", start=start).tables[0]
        assert report.from_snapshot_id == truth
        source.check(report)
    with pytest.raises(RequestInvalid, match="before the checkpoint"):
        source.capture(end="reviewed")
    with pytest.raises(CheckpointExists):
        source.capture(start="latest")
    for nonsense in ("no such tag", "1", "1999-01-01T00:00:00Z"):
        with pytest.raises(SnapshotUnknown):
            source.capture("other", end=nonsense)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_schema_change_can_be_refused(source: Source, kind: str) -> None:
    """Where a consumer cannot cope with other columns, it learns of them before the rows."""
    _create(source, kind)
    source.advance()
    _append(source, 10, 14)
    assert source.plan(on_schema_change=OnSchemaChange.FAIL).records == 4
    source.run("ALTER TABLE {t} ADD COLUMN extra STRUCT<a: INT>", "ALTER TABLE {t} RENAME COLUMN v TO w")
    with pytest.raises(SchemaChanged, match="extra struct<a int> added; v string is now w string"):
        source.capture(on_schema_change=OnSchemaChange.FAIL)
    source.check(source.advance(on_schema_change=OnSchemaChange.EVOLVE))
    source.run("ALTER TABLE {t} RENAME COLUMN extra.a TO b")
    with pytest.raises(SchemaChanged, match="extra struct<a int> is now extra struct<b int>"):
        source.capture(on_schema_change=OnSchemaChange.FAIL)


def test_several_tables_are_one_capture(new_source: Callable[[], Source]) -> None:
    """One record and one commit over tables of all kinds, same-named ones too; a table that fails fails all."""
    sources = [new_source() for _ in VERSIONS]
    for source, kind in zip(sources, VERSIONS, strict=True):
        _create(source, kind)
    twin = new_source()
    twin.run("CREATE NAMESPACE IF NOT EXISTS other")
    twin.name = sources[0].name.replace("db.", "other.")
    _create(twin, "v2 copy-on-write")
    sources.append(twin)
    captures, names = sources[0].captures, [source.name for source in sources]
    first = captures.capture(names, "several of them")
    assert [table.source_table for table in first.tables] == names
    for source, table in zip(sources, first.tables, strict=True):
        source.check(table)
    captures.commit(str(first.capture_id))
    for source in sources[1:]:
        _append(source, 10, 14)
    sources[2].run("DELETE FROM {t} WHERE id = 1")
    with pytest.raises(Exception, match=sources[2].name):
        captures.capture(names, "several of them")
    found = captures.plan(names[:2], "several of them").tables
    assert [table.changed for table in found] == [False, True]


@pytest.mark.parametrize("kind", VERSIONS)
def test_consumers_do_not_see_each_other(source: Source, kind: str) -> None:
    """Each has its own checkpoint; together they see the same rows in other pieces."""
    _create(source, kind)
    fast = [source.rows(source.advance("fast").relation)]
    _append(source, 10, 14)
    fast.append(source.rows(source.advance("fast").relation))
    _append(source, 20, 24)
    fast.append(source.rows(source.advance("fast").relation))
    slow = source.rows(source.advance("slow").relation)
    assert union(fast) == slow == source.at(source.head)
