"""Values are shown to people and to programs."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from calve.cli.output import duration, json_safe, print_json, print_table, size, working


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**62, 2**62),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), "2024-01-01T12:00:00+00:00"),
        (b"\x00\xff", "AP8="),
        ({1: [Decimal(1)]}, {"1": ["1"]}),
        ((1, {"a": date(1970, 1, 1)}), [1, {"a": "1970-01-01"}]),
        (timedelta(days=1), "1 day, 0:00:00"),
    ],
)
def test_every_value_of_spark_becomes_json(value: Any, expected: Any) -> None:
    """Dates, decimals, binaries and nested values lose nothing."""
    assert json_safe(value) == expected
    assert json.loads(json.dumps(json_safe(value), allow_nan=False)) == expected


def test_a_row_in_a_row_becomes_an_object() -> None:
    """A struct keeps the names of its fields."""
    from pyspark.sql import Row

    assert json_safe([Row(a=1, b=Row(c=b"\x00"))]) == [{"a": 1, "b": {"c": "AA=="}}]


def test_a_table_shows_numbers_to_the_right_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Piped output keeps long values whole, whatever markup they resemble."""
    print_table(["name", "n"], [("x" * 300, 1), ("[red]", 22), (None, None)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "n"]
    assert "x" * 300 in lines[2]
    assert lines[2].rstrip().endswith(" 1")
    assert lines[3].rstrip().endswith("22")
    assert "[red]" in lines[3]
    assert lines[4].split() == ["NULL", "NULL"]


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A program can read the output line by line."""
    print_json({"a": "line\nbreak"})
    assert capsys.readouterr().out == '{"a": "line\\nbreak"}\n'


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (2**60, "1048576.0 TiB")],
)
def test_sizes_are_readable(count: int, expected: str) -> None:
    """Bytes are counted in powers of 1024."""
    assert size(count) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0312, "31 ms"), (1.25, "1.2 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h")],
)
def test_durations_are_readable(seconds: float, expected: str) -> None:
    """A duration names its two largest units."""
    assert duration(seconds) == duration(timedelta(seconds=seconds)) == expected


def test_nothing_spins_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of a scheduled job stay clean."""
    with working() as say:
        say("starting")
    assert capsys.readouterr().err == ""
