"""Whatever happens to a table that PyIceberg writes, the union of its committed captures is the truth, once."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.memory_folders import folder_in_memory
from tests.scope import in_ci

from calve import settings
from calve.capture import Artifacts, Checkpoint, Operation, StoredCapture, appends, artifacts, snapshot_diff, snapshots
from calve.errors import HistoryExpired, NotAnAncestor
from calve.settings import Settings
from calve.store.captures import captures as store
from calve.testing import PyIcebergWriter, run_histories

MORE = os.environ.get("CALVE_TEST_HISTORIES")  # noqa: TID251 - a flag of the tests alone
HISTORIES = int(MORE or in_ci(30, otherwise=200))
SEED = None if MORE else 2026
"""A landing is judged by the same histories each time; new ones are looked for with the flag."""
MERGING = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}


@pytest.fixture
def lake_settings() -> Iterator[Settings]:
    """Give the settings of a lake of its own, in memory where that can be."""
    with folder_in_memory() as folder:
        yield settings.load(folder, {})


@pytest.fixture
def writers(lake_settings: Settings) -> Iterator[list[PyIcebergWriter]]:
    """Give writers of both formats, with and without manifest merging, expiring as PyIceberg does and as Java does."""
    made = [
        PyIcebergWriter(lake_settings, 1),
        PyIcebergWriter(lake_settings, 2),
        PyIcebergWriter(lake_settings, 1, properties=MERGING, expires_like_java=True),
        PyIcebergWriter(lake_settings, 2, properties=MERGING, expires_like_java=True),
    ]
    yield made
    for writer in made:
        writer.close()


def test_captures_are_the_truth_whatever_the_history(writers: list[PyIcebergWriter]) -> None:
    """Over v1 and v2 tables, every capture brings a copy of the table from one snapshot to the next, row by row."""
    run_histories(*writers, examples=HISTORIES, steps=12, seed=SEED)


# The fuzzer itself: each of these mistakes must be found.


def _lose_a_file(patch: pytest.MonkeyPatch) -> None:
    real = appends.all_appended

    def all_but_one(*arguments: Any, **options: Any) -> appends.Taken:
        taken = real(*arguments, **options)
        return replace(taken, data=taken.data[1:])

    patch.setattr(appends, "all_appended", all_but_one)


def _take_a_file_twice(patch: pytest.MonkeyPatch) -> None:
    real = appends.all_live

    def one_twice(*arguments: Any, **options: Any) -> appends.Taken:
        taken = real(*arguments, **options)
        return replace(taken, data=(*taken.data, *taken.data[:1]))

    patch.setattr(appends, "all_live", one_twice)


def _count_a_replace_as_a_change(patch: pytest.MonkeyPatch) -> None:
    real = snapshots.step_of

    def appended(snapshot: Any) -> snapshots.RangeSnapshot:
        step = real(snapshot)
        return replace(step, operation=Operation.APPEND) if step.operation is Operation.REPLACE else step

    patch.setattr(snapshots, "step_of", appended)


def _skip_a_pending_file(patch: pytest.MonkeyPatch) -> None:
    real = appends._added_by

    def without_the_second(*arguments: Any, **options: Any) -> list[appends.Placed]:
        placed = real(*arguments, **options)
        return placed[:1] + placed[2:]

    patch.setattr(appends, "_added_by", without_the_second)


def _forget_what_left(patch: pytest.MonkeyPatch) -> None:
    real = snapshot_diff.net_change

    def without_removed(*arguments: Any, **options: Any) -> snapshot_diff.NetChange:
        return replace(real(*arguments, **options), removed=())

    patch.setattr("calve.capture.changes.net_change", without_removed)


def _commit_without_moving(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "_carry_out", lambda *_: None)


def _move_without_committing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "_close", lambda *_: None)


def _blame_a_rollback(patch: pytest.MonkeyPatch) -> None:
    def never_expired(source: Any, goal: Checkpoint | None, end: int | None) -> list[snapshots.RangeSnapshot]:
        try:
            return real(source, goal, end)
        except HistoryExpired as error:
            raise NotAnAncestor from error

    real = snapshots.steps_between
    patch.setattr(snapshots, "steps_between", never_expired)


def _leave_a_file_behind(patch: pytest.MonkeyPatch) -> None:
    real = artifacts.remove

    def most(lake: Any, made: Artifacts) -> artifacts.Removal:
        return real(lake, replace(made, files=made.files[1:]))

    patch.setattr(artifacts, "remove", most)


def _collect_what_is_open(patch: pytest.MonkeyPatch) -> None:
    real = store.SqlCaptureState.garbage

    def too_much(state: store.SqlCaptureState, *arguments: Any) -> list[StoredCapture]:
        return [*state.captures(), *real(state, *arguments)]

    patch.setattr(store.SqlCaptureState, "garbage", too_much)
    patch.setattr(store.SqlCaptureState, "mark_collected", lambda *_: None)


@pytest.mark.parametrize(
    "mistake",
    [
        _lose_a_file,
        _take_a_file_twice,
        _count_a_replace_as_a_change,
        _skip_a_pending_file,
        _forget_what_left,
        _commit_without_moving,
        _move_without_committing,
        _blame_a_rollback,
        _leave_a_file_behind,
        _collect_what_is_open,
    ],
    ids=lambda mistake: mistake.__name__.strip("_"),
)
def test_the_fuzzer_finds_a_mistake(
    mistake: Callable[[pytest.MonkeyPatch], None], writers: list[PyIcebergWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture that is wrong on purpose does not get past the fuzzer, which then tells the whole history."""
    mistake(monkeypatch)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - wrong rows, a wrong error, or any crash
        run_histories(*writers, examples=200, steps=12, shrink=False, seed=4)  # finds most of them soon
    assert any(note.startswith("The history:\n  0. create a table") for note in caught.value.__notes__)
