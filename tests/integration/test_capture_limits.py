"""Captures in parts: whatever happens to the source in between, the parts are everything, once."""

from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import SOME_KINDS, Rows, Source, union

from calve.capture import CaptureLimits, OnGap, Operation, TableReport
from calve.errors import ChangeUnsupported, HistoryExpired

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

APPENDS = frozenset({Operation.APPEND})
VERSIONS = ["v1", "v2 merge-on-read", "v3 merge-on-read"]


def _append(source: Source, first: int, files: int) -> None:
    """Append so many files of three rows each."""
    last = first + 3 * files
    source.run(f"INSERT INTO {{t}} SELECT id, concat('v', id) FROM range({first}, {last}, 1, {files})")


def _create(source: Source, kind: str) -> None:
    source.create("id BIGINT, v STRING", kind, write__distribution_mode="none")


def _paths(source: Source, table: TableReport) -> list[str]:
    """Return the data files of a capture in the order of its metadata."""
    from pyiceberg.manifest import ManifestContent

    assert table.icdc_table is not None
    loaded = source.lake.catalog("lake").pyiceberg().load_table(table.icdc_table)
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    return [
        entry.data_file.file_path
        for manifest in snapshot.manifests(loaded.io)
        if manifest.content == ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(loaded.io)
    ]


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("v1", CaptureLimits(max_files=3)),
        ("v1", CaptureLimits(max_bytes=2500)),
        ("v2 merge-on-read", CaptureLimits(max_files=1)),
        ("v2 merge-on-read", CaptureLimits(max_files=4, max_bytes=2500)),
        ("v3 merge-on-read", CaptureLimits(max_files=3)),
        ("v3 merge-on-read", CaptureLimits(max_bytes=1)),
    ],
    ids=str,
)
def test_parts_of_appends_are_everything_once(source: Source, kind: str, limits: CaptureLimits) -> None:
    """Within the limits but for a single file, oldest first, and the same files for whoever asks."""
    _create(source, kind)
    _append(source, 0, 1)
    source.advance(operations=APPENDS)
    start = source.head
    source.advance("witness", operations=APPENDS)
    for first, files in ((100, 4), (200, 1), (300, 3)):
        _append(source, first, files)
    parts: list[Rows] = []
    for part in source.in_parts(limits=limits, operations=APPENDS, ranges=("id",)):
        witness = source.advance("witness", limits=limits, operations=APPENDS)
        assert _paths(source, witness) == _paths(source, part)
        rows = source.rows(part.relation)
        assert sum(rows.values()) == part.records == 3 * part.files
        assert part.files == 1 or part.files <= (limits.max_files or 99)
        assert part.files == 1 or part.bytes <= (limits.max_bytes or 10**9)
        ids = sorted(row[0] for row in rows.elements())
        assert [part.ranges["id"]["lower"], part.ranges["id"]["upper"]] == [ids[0], ids[-1]]
        assert not parts or max(parts[-1])[0] < ids[0]
        parts.append(rows)
    assert len(parts) >= 3
    assert union(parts) == source.at(source.head) - source.at(start)


@pytest.mark.parametrize("kind", VERSIONS)
def test_upkeep_between_parts_loses_nothing(source: Source, kind: str) -> None:
    """Compaction, rewritten manifests and more appends come between the parts."""
    _create(source, kind)
    _append(source, 0, 2)
    source.advance()
    start = source.head
    _append(source, 100, 5)
    _append(source, 200, 2)
    truth = source.at(source.head) - source.at(start)
    upkeep: list[Callable[[], None]] = [
        source.compact,
        lambda: _append(source, 300, 3),
        lambda: source.call("rewrite_manifests"),
        source.compact,
    ]
    parts = []
    for part in source.in_parts(limits=CaptureLimits(max_files=2), operations=APPENDS):
        parts.append(source.rows(part.relation))
        if upkeep:
            upkeep.pop(0)()
    assert not upkeep
    assert union(parts) == source.at(source.head) - source.at(start)
    assert not truth - union(parts[:4])


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_first_capture_in_parts_is_the_table(source: Source, kind: str) -> None:
    """With deletes in force from the start, and changes to rows already captured while it goes on."""
    _create(source, kind)
    _append(source, 0, 4)
    source.run("DELETE FROM {t} WHERE id IN (1, 4)", "UPDATE {t} SET v = 'changed' WHERE id = 7")
    _append(source, 100, 2)
    first = source.head
    target: Rows = union([])
    touched = False
    for part in source.in_parts(limits=CaptureLimits(max_files=2), ranges=("id",)):
        left = source.rows(part.deletes_relation)
        assert not left - target
        target = target - left + source.rows(part.relation)
        if part.to_snapshot_id == first and not part.pending and not touched:
            assert target == source.at(first)
        if not touched:
            touched = True
            source.run("UPDATE {t} SET v = 'again' WHERE id IN (0, 2, 103)", "DELETE FROM {t} WHERE id = 5")
            source.compact()
            _append(source, 200, 3)
    assert touched
    assert target == source.at(source.head)


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_changes_are_not_cut(source: Source, kind: str) -> None:
    """An update is taken whole, with what comes before it or alone; appends around it are cut as ever."""
    _create(source, kind)
    _append(source, 0, 2)
    source.advance()
    target = source.at(source.head)
    _append(source, 100, 3)
    source.run("UPDATE {t} SET v = 'changed' WHERE id IN (0, 5, 100)", "DELETE FROM {t} WHERE id IN (1, 101)")
    _append(source, 200, 3)
    reached = []
    for part in source.in_parts(limits=CaptureLimits(max_files=2)):
        target = target - source.rows(part.deletes_relation) + source.rows(part.relation)
        reached.append((part.to_snapshot_id, part.files))
    assert target == source.at(source.head)
    assert len(reached) >= 4


def test_a_change_beyond_the_limit_is_not_yet_refused(source: Source) -> None:
    """Only what a part reaches must have been asked for."""
    _create(source, "v2 merge-on-read")
    _append(source, 0, 1)
    source.advance()
    _append(source, 100, 3)
    source.run("DELETE FROM {t} WHERE id = 0")
    part = source.advance(limits=CaptureLimits(max_files=2), operations=APPENDS)
    assert [step["reason"] for step in part.snapshots] == ["in part: the rest is pending", "left for the next capture"]
    rest = source.advance(operations=APPENDS)
    assert (rest.files, rest.pending) == (1, True)
    with pytest.raises(ChangeUnsupported):
        source.capture(operations=APPENDS)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_pending_part_that_was_expired_is_a_gap(source: Source, kind: str) -> None:
    """The rest of a snapshot cannot be told once that is gone, nor made up from row lineage."""
    _create(source, kind)
    _append(source, 0, 1)
    source.advance()
    _append(source, 100, 3)
    half = source.head
    source.advance(limits=CaptureLimits(max_files=1))
    _append(source, 200, 1)
    source.expire(half)
    for policy in (OnGap.FAIL, OnGap.UPSERTS):
        with pytest.raises(HistoryExpired) as told:
            source.capture(on_gap=policy)
        assert "upserts" not in told.value.remedy
    whole = source.advance(on_gap=OnGap.FULL)
    assert source.rows(whole.relation) == source.at(source.head)


def test_lag_counts_what_is_pending(source: Source) -> None:
    """Commits, files, rows and bytes that are not committed, those of a pending part too."""
    _create(source, "v3 merge-on-read")
    _append(source, 0, 4)
    source.advance(limits=CaptureLimits(max_files=1))
    _append(source, 100, 2)
    source.compact()
    (lag,) = source.captures.lag(source._consumer("me"))
    assert (lag.pending_commits, lag.pending_files, lag.error) == (2, 5, None)
    assert lag.age_seconds is not None
    assert lag.expires_in_seconds is not None
    source.advance()
    (lag,) = source.captures.lag(source._consumer("me"))
    assert (lag.pending_commits, lag.pending_files, lag.age_seconds) == (0, 0, None)
