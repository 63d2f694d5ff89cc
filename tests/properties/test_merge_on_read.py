"""Merge-on-read over many partitions and specs: whatever is left unread, no row is lost and none is too many."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.merge_on_read import SPECS, Listed, MergeOnRead
from tests.scope import in_ci

from calve.capture import CaptureLimits, Operation, Wanted, appends, delete_scopes, file_search, own_manifests
from calve.capture.avro import Container
from calve.capture.changes import TableChange, find_change
from calve.capture.delete_scopes import DeleteScope, Partitions, _Field, _OfSpec, _Side
from calve.capture.file_search import PathSearch
from calve.capture.manifests import EQUALITY_DELETES, Manifest

EVERYTHING = Wanted(operations=frozenset(Operation))
HOW = ("partition", "named", "truncated", "one file", "without bounds")
PLAIN = ("append", "append", "append", "merge", "manifests", "compact")
EVENTS = (*PLAIN, "delete", "delete", "delete", "delete", "delete", "keys", "keys", "rewrite", "remove")
STEPS = 9
HISTORIES = in_ci(120, otherwise=4_000)


def _written(seed: int) -> MergeOnRead:
    """Write a history: appends to several specs, deletes of each kind, compaction, removal, other manifests."""
    chance = random.Random(seed)
    table = MergeOnRead(
        version=chance.choice((2, 3)),
        chance=chance,
        block=chance.choice((1, 3, 100)),
        summaries=chance.choice(("exact", "exact", "wide", "nothing")),
    )
    _append(table, chance, chance.randint(3, 12))
    some = PLAIN if chance.random() < 0.25 else EVENTS
    for _ in range(chance.randint(2, STEPS)):
        _go_on(table, chance, chance.choice(some))
    return table


def _go_on(table: MergeOnRead, chance: random.Random, event: str) -> None:
    some = sorted(chance.sample(sorted(table.data), min(len(table.data), chance.randint(1, 3))))
    match event:
        case "append":
            _append(table, chance, chance.randint(1, 4))
        case "delete" if some:
            gone = {path: chance.sample(range(5), chance.randint(1, 3)) for path in some}
            table.delete_rows(gone, chance.choice(HOW))
        case "keys":
            table.delete_keys(*_partition(chance))
        case "manifests":
            table.rewrite_manifests()
        case "merge":
            table.merge_manifests(chance.randrange(len(SPECS)))
            _append(table, chance, 1)
        case "compact" if some:
            table.rewrite(some)
        case "rewrite" if some:
            table.rewrite(some, operation="overwrite")
        case "remove" if len(table.data) > len(some):
            table.remove(some[:1])


def _partition(chance: random.Random) -> tuple[int, list[Any]]:
    spec_id = chance.randrange(len(SPECS))
    return spec_id, [chance.choice(part.values) for part in SPECS[spec_id]]


def _append(table: MergeOnRead, chance: random.Random, files: int) -> None:
    table.append([(*_partition(chance), chance.randint(5, 8)) for _ in range(files)])


def _check(table: MergeOnRead) -> None:
    """Compare every change with the truth: that to the last snapshot from each one before it."""
    end = table.snapshots[-1]["snapshot-id"]
    for start in range(1_000_000, end):
        source = table.source()
        change = find_change(source, source.checkpoint(start), EVERYTHING)
        if change.net is None:
            _check_appended(table, change, start)
            continue
        before, after = table.visible(start), table.visible(end)
        assert _removed(change) == before - after, start
        assert _added(table, change, end) == after - before, start
        _check_keys(table, change, start, end)
        for item in change.removed:
            assert item.entry.first_row_id == table.row_ids.get(item.entry.file_path), start


def _check_appended(table: MergeOnRead, change: TableChange, start: int) -> None:
    """Check that a change of appends alone is the files that they added, whole and in parts."""
    kinds = {one["snapshot-id"]: one["summary"]["operation"] for one in table.snapshots}
    assert {kind for number, kind in kinds.items() if number > start} <= {"append", "replace"}
    appended = [path for number, paths in table.appended.items() if number > start for path in paths]
    assert sorted(_paths(change)) == sorted(appended), start
    for size in (1, 3, 7):
        found: list[str] = []
        part = replace(change, to=table.source().checkpoint(start), has_more=True)
        while part.has_more:
            limited = replace(EVERYTHING, limits=CaptureLimits(max_files=size))
            part = find_change(table.source(), part.to, limited)
            assert 0 < len(_paths(part)) <= size or not part.has_more
            found += _paths(part)
        assert sorted(found) == sorted(appended), (start, size)


def _paths(change: TableChange) -> list[str]:
    return [entry.file_path for manifest in change.data for entry in manifest.entries()]


def _removed(change: TableChange) -> set[tuple[str, int]]:
    found = [
        (item.entry.file_path, position)
        for item in change.removed
        for position in range(item.entry.record_count)
        if position not in item.hidden
    ]
    assert len(found) == len(set(found)) == change.deleted_records
    return set(found)


def _added(table: MergeOnRead, change: TableChange, end: int) -> set[tuple[str, int]]:
    """Return the rows that a reader of the ICDC table sees: those of its data files that its deletes do not hide."""
    deletes = _listed(change.deletes, table.states[end][1])
    data = table.states[end][0]
    paths = _paths(change)
    assert len(paths) == len(set(paths))
    found = set()
    for path in paths:
        hidden = {n for delete in deletes if delete.hides(data[path]) for n in delete.positions.get(path, ())}
        found |= {(path, position) for position in range(data[path].records) if position not in hidden}
    return found


def _listed(manifests: tuple[Manifest, ...], known: dict[str, Listed]) -> list[Listed]:
    by_name = {
        (one.more.get("file_path", path), one.more.get("referenced_data_file")): one for path, one in known.items()
    }
    entries = [entry for manifest in manifests for entry in manifest.entries()]
    return [by_name[entry.file_path, entry.referenced_data_file] for entry in entries]


def _check_keys(table: MergeOnRead, change: TableChange, start: int, end: int) -> None:
    """Check that all equality deletes are there that Iceberg applies to the files of the change."""
    assert change.net is not None
    parts: list[tuple[set[str], tuple[Manifest, ...], int]] = [
        (set(_paths(change)), change.deletes, end),
        ({item.entry.file_path for item in change.removed}, change.net.removed_deletes, start),
    ]
    for paths, deletes, at in parts:
        data, known = table.states[at]
        there = {entry.file_path for manifest in deletes for entry in manifest.entries()}
        for one in known.values():
            if one.content == EQUALITY_DELETES and any(one.hides(data[path]) for path in paths):
                assert one.path in there, (start, one)


@settings(max_examples=HISTORIES, deadline=None)
@given(st.integers(0, 2**32))
def test_merge_on_read_is_exact_over_partitions_and_specs(number: int) -> None:
    """Every change between two snapshots is the rows that one shows and the other does not."""
    _check(_written(number))


# The test itself: each of these mistakes must be found.


def _forget_deletes_without_partition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeleteScope, "_is_global", lambda *_: False)


def _forget_nulls(patch: pytest.MonkeyPatch) -> None:
    real = _Side.may_meet
    patch.setattr(_Side, "may_meet", lambda side, _, extent: real(side, False, extent))


def _take_bounds_for_exact(patch: pytest.MonkeyPatch) -> None:
    def is_named(scope: DeleteScope, entry: Any) -> bool:
        low = (entry.lower_bounds or {}).get(delete_scopes.PATH_COLUMN)
        return low is None or low.decode() in scope._paths

    patch.setattr(DeleteScope, "_is_within", is_named)


def _compare_what_cannot_be(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Field, "_is_comparable", lambda *_: True)


def _leave_out_the_last_partition(patch: pytest.MonkeyPatch) -> None:
    real = _OfSpec.may_hold
    patch.setattr(_OfSpec, "may_hold", lambda spec, values: real(spec, values) and len(spec._exact) != 2)


def _look_in_likely_manifests_only(patch: pytest.MonkeyPatch) -> None:
    def batches(_: Any, rows: Any, where: Partitions) -> Iterator[Any]:
        yield [row for row in rows if where.may_list(row)]

    patch.setattr(file_search, "_batches", batches)
    _compare_what_cannot_be(patch)


def _miss_a_path(patch: pytest.MonkeyPatch) -> None:
    real = PathSearch.__call__
    patch.setattr(PathSearch, "__call__", lambda search, block: real(search, block[: len(block) // 2]))


def _count_row_ids_from_a_block(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Container, "of_blocks", lambda file, numbers: replace(file, blocks=(file.blocks[[*numbers][-1]],)))


def _believe_a_later_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(own_manifests, "_total", lambda rows, _: _Any() if rows else 0)


class _Any:
    """Equals every number."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def _believe_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(appends, "_by_snapshot", lambda _: defaultdict(_Any))


@pytest.mark.parametrize(
    "mistake",
    [
        _forget_deletes_without_partition,
        _forget_nulls,
        _take_bounds_for_exact,
        _compare_what_cannot_be,
        _leave_out_the_last_partition,
        _look_in_likely_manifests_only,
        _miss_a_path,
        _count_row_ids_from_a_block,
        _believe_a_later_list,
        _believe_the_end,
    ],
    ids=lambda mistake: mistake.__name__.strip("_"),
)
def test_too_much_left_unread_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture that leaves out what it must read does not get past these histories."""
    mistake(monkeypatch)
    with pytest.raises((AssertionError, KeyError, TypeError)):  # wrong rows, or values that cannot be compared
        _check_many(1_000)


def _check_many(histories: int) -> None:
    for number in range(histories):
        _check(_written(number))
