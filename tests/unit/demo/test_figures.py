"""What follows from what was measured."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from calve.demo import Day, Lane, Part, Result, Stage
from calve.demo.figures import PAYS_FROM, STAGES, bytes_written, merged, seconds
from calve.demo.report import headline, report, rows
from calve.steps.spark import size


def _stage(took: float, written: int, *parts: Part) -> Stage:
    return Stage(took, 1_000, 10_000, 100, written, 0.0, parts)


def _day(number: int, *, is_equal: bool = True) -> Day:
    lookback = Lane({"daily": _stage(8.0 * number, 800), "aggregates": _stage(2.0 * number, 200)})
    merge = Part("daily: merge, <MERGE INTO t>", 0.5)
    incremental = Lane(
        {
            "daily": Stage(0.6, 70, 700, 7, 70, 0.1, (Part("daily: capture", 0.1), merge)),
            "aggregates": _stage(0.4, 30, Part("aggregates: accumulate", 0.4)),
        }
    )
    return Day(date(2026, 1, number), lookback, incremental, is_equal)


@pytest.fixture
def result() -> Result:
    """Three days, the lookback slower each day."""
    return Result(1_000, 0.03, tuple(_day(number) for number in (1, 2, 3)))


def test_a_ratio_is_of_all_days_together(result: Result) -> None:
    """Three times one second, of 10 + 20 + 30 seconds."""
    assert result.ratio(seconds) == pytest.approx(3 / 60)
    assert result.ratio(bytes_written, "daily") == pytest.approx(70 / 800)


def test_a_median_ratio_is_of_the_days_in_the_middle(result: Result) -> None:
    """One second of twenty."""
    assert result.median_ratio(seconds) == pytest.approx(1 / 20)
    assert result.median_ratio(seconds, "aggregates") == pytest.approx(0.4 / 4)


def test_results_are_equal_if_they_were_after_every_day() -> None:
    """One day that differs is enough; no day at all proves nothing."""
    assert Result(1, 0.0, (_day(1), _day(2))).is_equal
    assert not Result(1, 0.0, (_day(1), _day(2, is_equal=False))).is_equal
    assert not Result(1, 0.0, ()).is_equal


def test_parts_of_one_name_are_added_up(result: Result) -> None:
    """The profile is that of a day on average."""
    assert [part.name for part in result.profile()] == [
        "daily: capture",
        "daily: merge, <MERGE INTO t>",
        "aggregates: accumulate",
    ]
    assert merged([Part("a", 1.0), Part("b", 2.0), Part("a", 3.0)], days=2) == [Part("a", 2.0), Part("b", 1.0)]


def test_json_holds_what_programs_ask_for(result: Result) -> None:
    """Its first keys are documented."""
    found = result.as_json()
    assert found["equal"] is True
    assert found["ratio"] == pytest.approx(found["incremental_seconds"] / found["lookback_seconds"], abs=1e-4)
    assert found["capture_seconds"] == pytest.approx(0.3)
    assert [day["day"] for day in found["days"]] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert found["stages"]["daily"]["lookback"]["bytes_written"] == 2_400


def test_the_table_ends_with_what_is_saved(result: Result) -> None:
    """A row for each pipeline and stage, sums, ratio and saving."""
    found = rows(result)
    assert [row[:2] for row in found[:6]] == [
        ("lookback", "daily"),
        ("lookback", "aggregates"),
        ("incremental", "daily"),
        ("incremental", "aggregates"),
        ("lookback", "both"),
        ("incremental", "both"),
    ]
    assert found[6][-1] == "5.0%"
    assert found[7][-1] == "95.0%"


def test_the_report_is_a_page_of_its_own(result: Result) -> None:
    """No script, nothing from elsewhere, nothing unescaped."""
    page = report(result)
    assert "<script" not in page
    assert "http" not in page
    assert "&lt;MERGE INTO t&gt;" in page
    assert page.count("<svg") == 4
    assert ">equal<" in page


def test_results_that_differ_are_called_that() -> None:
    """Nobody is to overlook it."""
    differing = Result(1, 0.0, (_day(1, is_equal=False),))
    assert ">different<" in report(differing)
    assert "DIFFER" in headline(differing)[0]


def test_what_holds_at_every_size_comes_first(result: Result) -> None:
    """Equality, what was written, and the captures; the time comes after them."""
    assert headline(result) == [
        "Both pipelines made the same tables, by a hash over all rows after each of 3 days.",
        "Written: 300 B instead of 3.0 kB (10.0%), 321 rows instead of 600 (53.5%).",
        "A capture took 50 ms: it reads metadata, no data.",
        "Time: 3.0 s instead of 60.0 s (5.0%).",
    ]
    page = report(result)
    assert page.index("of the bytes written") < page.index("of the time")


def test_a_stage_that_is_slower_or_reads_more_is_explained() -> None:
    """Why, and from which size on it pays: on the console, in the report and for programs."""
    slow = Stage(5.0, 9_000, 10_000, 10, 20)
    day = _day(1)
    slower = replace(day, incremental=Lane({**day.incremental.stages, "aggregates": slow}))
    result = Result(1_000, 0.03, (slower,))
    longer, more = result.notes()
    assert longer.startswith("Stage aggregates took 5.0 s, its lookback 2.0 s: ")
    assert "14 days of 1,000 events" in longer
    assert longer.endswith("is faster from about 1,000,000 events a day.")
    assert more.startswith("Stage aggregates read 9,000 rows, its lookback 1,000: ")
    assert headline(result)[-2:] == [longer, more]
    assert longer in report(result)
    assert result.as_json()["notes"] == [longer, more]


@pytest.mark.parametrize("stage", STAGES)
def test_the_size_from_which_a_stage_pays_is_documented(stage: str) -> None:
    """With the benchmark it comes from."""
    page = (Path(__file__).parents[3] / "docs/explain/playback-benchmark.md").read_text(encoding="utf-8")
    assert f"{PAYS_FROM[stage]:,}" in page


def test_bytes_are_shown_for_people() -> None:
    """In the largest unit that leaves a digit before the point."""
    assert [size(number) for number in (0, 999, 1_000, 1_500_000, 2e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "2000.0 TB",
    ]
