"""``calve sql`` without Spark: its arguments."""

import pytest

from calve.cli import entry


@pytest.mark.parametrize("arguments", [[], ["SELECT 1", "-f", "-"], ["-- nothing"], ["--limit", "x", "SELECT 1"]])
def test_a_senseless_request_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No Spark is started for a request that cannot work."""
    assert entry.run(["sql", *arguments]) == 2
    assert "Error:" in capsys.readouterr().err
