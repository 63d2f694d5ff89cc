"""A capture never harms its source, and with a lease the source's upkeep never harms a capture."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.tables import SOME_KINDS, Source

from calve.capture import CaptureReport, Mode
from calve.errors import FilesLost, LakeError, RequestInvalid

pytestmark = pytest.mark.spark

VERSIONS = ["v1", "v2 merge-on-read", "v3 merge-on-read"]


def _fill(source: Source, kind: str) -> None:
    """Give the table every kind of file: data, deletes, and files that only its history holds."""
    source.create("id BIGINT, v STRING", kind)
    source.run("INSERT INTO {t} SELECT id, concat('v', id) FROM range(0, 8, 1, 2)", "DELETE FROM {t} WHERE id = 3")


def _change(source: Source) -> None:
    source.run(
        "UPDATE {t} SET v = 'changed' WHERE id IN (1, 5)",
        "INSERT INTO {t} SELECT id, concat('v', id) FROM range(10, 14, 1, 2)",
        "DELETE FROM {t} WHERE id = 11",
    )


def _files(source: Source) -> dict[Path, int]:
    """Return every file of the table and its size."""
    folder = Path(source.metadata["location"])
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def _tables(report: CaptureReport) -> list[str]:
    table = report.tables[0]
    names = [table.icdc_table, table.deletes_table, table.carried_table]
    return [name for name in names if name]


def _tags(source: Source) -> list[str]:
    return [name for name in source.metadata["refs"] if name.startswith("calve_")]


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_nothing_done_to_a_capture_touches_the_source(source: Source, kind: str) -> None:
    """Expiry, orphan removal and purge of its tables, by Spark or through calve, and our own clean-up."""
    _fill(source, kind)
    source.advance()
    before, start = source.at(source.head), source.head
    _change(source)
    report = source.capture()
    table = report.tables[0]
    truth, files = source.at(source.head), _files(source)
    pyiceberg = source.lake.catalog("lake").pyiceberg()
    tables = _tables(report)
    assert len(tables) > 1
    for name in tables:
        folder = Path(pyiceberg.load_table(name).metadata.location)
        assert Path(source.metadata["location"]) not in folder.parents
        doomed: list[tuple[str, type[Exception]]] = [
            (f"CALL lake.system.expire_snapshots(table => '{name}', older_than => now())", Exception),
            (f"CALL lake.system.remove_orphan_files(table => '{name}', older_than => now())", Exception),
            (f"DROP TABLE {name} PURGE", Exception),
        ]
        for statement, error in doomed:
            with pytest.raises(error, match=r"(?i)gc is disabled|gc.enabled"):
                source.run(statement)
        with pytest.raises(LakeError, match=r"gc\.enabled"):
            pyiceberg.purge_table(name)
    source.check(table)
    source.call("remove_orphan_files", dry_run="false")
    source.check(table)
    source.commit(report)
    for name in tables[1:]:
        source.run(f"DROP TABLE {name}")
    source.captures.collect_garbage(timedelta(0))
    assert not any(pyiceberg.table_exists(name) for name in tables)
    assert _files(source) == files
    source._seen.clear()
    assert (source.at(source.head), source.at(start)) == (truth, before)


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_cleaning_up_leaves_no_file_of_a_capture(source: Source, kind: str) -> None:
    """Once committed, its tables and its own metadata go; another capture's stay."""
    _fill(source, kind)
    kept = source.capture("other")
    source.advance()
    _change(source)
    report = source.capture(lease=True)
    folders = [
        Path(table.metadata_location).parents[1]
        for table in (report.tables[0], kept.tables[0])
        if table.metadata_location
    ]
    source.commit(report)
    source.captures.collect_garbage(timedelta(0))
    assert [folder.exists() for folder in folders] == [False, True]
    beside = [path.name for path in folders[0].parent.iterdir() if path.name.startswith(folders[0].name)]
    assert beside == []
    assert source.rows(kept.tables[0].relation) == source.at(kept.tables[0].to_snapshot_id)


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_lease_keeps_a_capture_readable(source: Source, kind: str) -> None:
    """Compaction and expiry take nothing from a leased capture, whatever it references; the tags go with the commit."""
    _fill(source, kind)
    source.advance()
    _change(source)
    before, after = source.at(source.plan().from_snapshot_id), source.at(source.head)
    report = source.capture(lease=True)
    table = report.tables[0]
    assert 1 <= len(_tags(source)) <= 2
    source.compact()
    source.call("expire_snapshots", older_than="now()", retain_last="1")
    assert source.rows(table.relation) == after - before
    assert source.rows(table.deletes_relation) == before - after
    assert source.captures.files(str(report.capture_id), check=True)
    source.commit(report)
    assert _tags(source) == []
    source.expire()
    with pytest.raises(FilesLost):
        source.captures.files(str(report.capture_id), check=True)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_lease_holds_what_a_compaction_inside_the_range_removed(source: Source, kind: str) -> None:
    """Appended files that are gone from the table again belong to the capture all the same."""
    _fill(source, kind)
    source.advance()
    start = source.head
    source.run("INSERT INTO {t} SELECT id, 'one' FROM range(20, 24, 1, 2)")
    source.compact()
    source.run("INSERT INTO {t} SELECT id, 'two' FROM range(30, 34, 1, 2)")
    source.compact()
    truth = source.at(source.head) - source.at(start)
    report = source.capture(lease=True)
    unsafe = source.capture("without a lease", start=str(start))
    source.call("expire_snapshots", older_than="now()", retain_last="1")
    assert source.rows(report.tables[0].relation) == truth
    source.captures.abandon(str(report.capture_id))
    assert _tags(source) == []
    source.expire()
    with pytest.raises(FilesLost) as lost:
        source.captures.files(str(unsafe.capture_id), check=True)
    assert len(lost.value.context["paths"]) == 4


@pytest.mark.parametrize("kind", ["v2 copy-on-write", "v3 copy-on-write"])
def test_a_lease_taken_after_the_start_was_expired_holds_what_is_left(source: Source, kind: str) -> None:
    """The first snapshot of the range then stands in for the start."""
    _fill(source, kind)
    source.advance()
    start = source.head
    before = source.at(start)
    source.run("INSERT INTO {t} VALUES (40, 'new')", "DELETE FROM {t} WHERE id IN (1, 5)")
    after = source.at(source.head)
    source.expire(start)
    report = source.capture(lease=True)
    source.call("expire_snapshots", older_than="now()", retain_last="1")
    assert source.rows(report.tables[0].relation) == after - before
    assert source.rows(report.tables[0].deletes_relation) == before - after


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_lease_has_an_age_limit(source: Source, kind: str) -> None:
    """A consumer that never comes back does not hold the source's files for ever."""
    _fill(source, kind)
    source.capture(lease=True)
    (tag,) = _tags(source)
    ref: dict[str, Any] = source.metadata["refs"][tag]
    assert (ref["type"], ref["max-ref-age-ms"]) == ("tag", 7 * 24 * 3600 * 1000)
    with pytest.raises(RequestInvalid):
        source.capture("a view", lease=True, mode=Mode.VIEW)
