"""What ``calve.testing`` gives to users: copies kept by captures, and the fuzzer over a writer of their own."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from calve import settings
from calve.app import open_captures
from calve.capture import Operation, TableReport, Wanted
from calve.errors import EnvironmentUnfit
from calve.lake import Lake
from calve.testing import Ability, PyIcebergWriter, Record, apply_change, run_histories
from calve.testing.replicas import applied, rows_at

ROWS = st.lists(st.integers(0, 3)).map(Counter)


@given(before=ROWS, after=ROWS)
def test_a_difference_takes_a_copy_from_one_state_to_the_other(before: Counter[int], after: Counter[int]) -> None:
    """Rows that came and went, duplicates too, make the new state of the old one."""
    assert applied(before, after - before, before - after) == after


def test_rows_that_are_not_there_cannot_leave() -> None:
    """A change that takes away what the copy does not have is wrong, and says which rows."""
    with pytest.raises(AssertionError, match="'b' x 2"):
        applied(Counter("aab"), Counter(), Counter("abbb"))


def test_a_copy_follows_a_table_by_its_captures(tmp_path: Path) -> None:
    """A pipeline's test: apply each captured change, and compare with the table."""
    lake_settings = settings.load(tmp_path, {})
    writer, lake = PyIcebergWriter(lake_settings), Lake(lake_settings)
    writer.create("db.orders", {"id": "long", "day": "int", "v": "string"}, days=True)
    copy: Counter[tuple[tuple[int, object], ...]] = Counter()

    def change(report: TableReport) -> Counter[tuple[tuple[int, object], ...]]:
        return apply_change(copy, report, lambda relation: rows_at(lake, relation).elements())

    events: list[Callable[[], None]] = [
        lambda: writer.append([{"id": 1, "day": 0, "v": "a"}, {"id": 2, "day": 1, "v": "b"}]),
        lambda: writer.delete_partition(1),
        lambda: writer.append([{"id": 3, "day": 1, "v": "c"}]),
    ]
    with open_captures(lake_settings) as captures:
        for event in events:
            event()
            wanted = Wanted(operations=frozenset(Operation) - {Operation.REPLACE})
            report = captures.capture(["db.orders"], "copy", wanted)
            copy = change(report.tables[0])
            captures.commit(str(report.capture_id))
            assert copy == rows_at(lake, "db.orders"), asdict(report)
    writer.close()
    lake.close()


def test_a_writer_of_ones_own_takes_a_few_lines(tmp_path: Path) -> None:
    """A pipeline that only appends is fuzzed by overriding how it does so, and naming what else may happen."""
    appended: list[Record] = []

    class Pipeline(PyIcebergWriter):
        def append(self, records: Sequence[Record]) -> None:
            appended.extend(records)
            super().append(records)

    pipeline = Pipeline(settings.load(tmp_path, {}), abilities={Ability.APPEND, Ability.COMPACT, Ability.EXPIRE})
    run_histories(pipeline, examples=3, steps=5)
    pipeline.close()
    assert appended


def test_a_failure_tells_its_history_and_its_seed(tmp_path: Path) -> None:
    """What went wrong comes with all that happened before it, and with how to see it again."""

    class Broken(PyIcebergWriter):
        def append(self, records: Sequence[Record]) -> None:
            raise RuntimeError(f"{len(records)} rows do not fit")

    broken = Broken(settings.load(tmp_path, {}))
    with pytest.raises(RuntimeError, match="do not fit") as caught:
        run_histories(broken, examples=3, steps=5, shrink=False, seed=7)
    broken.close()
    notes = "\n".join(caught.value.__notes__)
    assert "  0. create a table with PyIcebergWriter" in notes
    assert "append rows of days" in notes
    assert "seed=7" in notes


def test_without_hypothesis_the_fuzzer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the fuzzer needs the extra, and it says so."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(EnvironmentUnfit) as caught:
        run_histories()
    assert "calve[testing]" in caught.value.remedy
