"""``calve sql`` without Spark: its arguments, and what it makes of Spark's errors."""

from pathlib import Path

import pytest

from calve.cli import entry
from calve.cli.sql import reason
from calve.cli.statements import reference_index, unescaped


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


@pytest.mark.parametrize(
    ("text", "place"),
    [("SELECT 1;\nSELECT '${day}'", "2:9: ${day} is a reference"), ("SELECT '$$${ x'", "1:11: ${ x' is a reference")],
)
def test_references_are_refused_with_their_place(
    text: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There are no params; no Spark is started."""
    (tmp_path / "copy.sql").write_text(text)
    assert entry.run(["-C", str(tmp_path), "sql", "-f", str(tmp_path / "copy.sql")]) != 0
    assert f"copy.sql:{place}" in capsys.readouterr().err
    assert entry.run(["-C", str(tmp_path), "sql", text]) != 0
    assert f"STATEMENTS:{place}" in capsys.readouterr().err


def test_an_escaped_brace_is_a_brace() -> None:
    """So that any text can be written."""
    assert reference_index("$1 $a $${x} $$$${") is None
    assert unescaped("$1 $a $${x} $$") == "$1 $a ${x} $$"
