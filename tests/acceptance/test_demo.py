"""``calve demo`` as a user runs it: both pipelines, on a real Spark, with few rows."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.spark


def test_the_demo_gives_equal_results_and_a_report(tmp_path: Path) -> None:
    """Two days of 300 events: the JSON holds what it promises, and the run can be seen as it says."""
    command = [sys.executable, "-m", "calve", "demo", "--rows", "300", "--days", "2", "--late", "0.2", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["equal"] is True
    assert found["ratio"] == pytest.approx(found["incremental_seconds"] / found["lookback_seconds"], abs=1e-3)
    assert 0 < found["capture_seconds"] < found["incremental_seconds"]
    assert [day["day"] for day in found["days"]] == ["2026-01-15", "2026-01-16"]
    for stage in ("daily", "aggregates"):
        lookback, incremental = (found["stages"][stage][lane] for lane in ("lookback", "incremental"))
        assert 0 < incremental["rows_written"] < lookback["rows_written"]
        assert incremental["rows_read"] > 0
        assert 0 < incremental["bytes_written"] < lookback["bytes_written"]
    assert found["profile"]
    page = Path(found["report"])
    assert "<svg" in page.read_text(encoding="utf-8")
    _, *arguments = shlex.split(found["view"]["command"])
    with subprocess.Popen([sys.executable, "-m", "calve", *arguments, "--json"], stdout=subprocess.PIPE) as up:
        try:
            assert up.stdout is not None
            up.stdout.readline()
            shown = httpx.get(found["view"]["url"], timeout=30)
            tables = httpx.get(httpx.URL(found["view"]["url"]).join("/tables"), timeout=60)
        finally:
            up.send_signal(signal.SIGTERM)
            up.communicate(timeout=60)
    assert (shown.status_code, tables.status_code) == (200, 200)
    assert "merge" in shown.text
    assert "playback_daily_table" in tables.text
