"""``calve sql`` without Spark: its arguments."""

from pathlib import Path

import pytest

from calve.cli import entry


@pytest.mark.parametrize("arguments", [[], ["SELECT 1", "-f", "-"], ["-- nothing"], ["--limit", "x", "SELECT 1"]])
def test_a_senseless_request_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No Spark is started for a request that cannot work."""
    assert entry.run(["sql", *arguments]) == 2
    assert "Error:" in capsys.readouterr().err


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
