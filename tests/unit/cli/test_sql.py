"""``calve sql`` without Spark: its arguments, and what it makes of Spark's errors."""

import pytest

from calve.cli import entry
from calve.cli.sql import reason


@pytest.mark.parametrize("arguments", [[], ["SELECT 1", "-f", "-"], ["-- nothing"], ["--limit", "x", "SELECT 1"]])
def test_a_senseless_request_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No Spark is started for a request that cannot work."""
    assert entry.run(["sql", *arguments]) == 2
    assert "Error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "[NOT_FOUND] No `t`. SQLSTATE: 42P01; line 1 pos 14;\n'Project [*]\n+- 'Relation [t]\n",
            "[NOT_FOUND] No `t`. SQLSTATE: 42P01; line 1 pos 14",
        ),
        ("[SYNTAX] near 'x'. SQLSTATE: 42601 (line 1, pos 7)\n\n== SQL ==\nSELEC 1\n", None),
        ("Job aborted\nDriver stacktrace:\n\tat a.b(C.scala)", "Job aborted"),
        ("boom\n\tat a.b(C.java:1)\n", "boom"),
        ("boom\n\nJVM stacktrace:\nx", "boom"),
    ],
)
def test_errors_keep_the_message_and_lose_the_stack(said: str, kept: str | None) -> None:
    """Plans, repeated SQL and stacks are cut."""
    assert reason(ValueError(said)) == (kept or "[SYNTAX] near 'x'. SQLSTATE: 42601 (line 1, pos 7)")
