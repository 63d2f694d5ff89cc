"""``calve up`` tells others of what happens, as the settings say."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from tests.engines import wait_for
from tests.http_receiver import receiving

from calve.cli import entry

WORKFLOW = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Shell, shell: {script: exit 3}, retry_policy: {error_retry_limit: 0}}
"""
SETTINGS = """
[alerts.channels.hook]
type = "webhook"
url = "{url}/alerts"

[[alerts.rules]]
on = ["failure"]
channels = ["hook"]

[telemetry]
otlp_url = "{url}/v1/traces"

[lineage]
file = "lineage.jsonl"

[log]
format = "json"
level = "info"
"""


def test_a_failure_is_reported_while_calve_is_up(tmp_path: Path) -> None:
    """By a real process, to a real receiver: an alert at once, with a link that works; spans before it ends."""
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    with receiving() as receiver, (tmp_path / "err").open("w") as errors:
        (tmp_path / "calve.toml").write_text(SETTINGS.format(url=receiver.url))
        command = [sys.executable, "-m", "calve", "-C", str(tmp_path), "up", "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as up:
            try:
                assert up.stdout is not None
                started = json.loads(up.stdout.readline())
                assert started["event"] == "up"
                assert entry.run(["-C", str(tmp_path), "push", str(tmp_path / "w.yaml")]) == 0
                assert entry.run(["-C", str(tmp_path), "run", "w", "--no-wait"]) == 0
                wait_for(lambda: any(path == "/alerts" for path, _, _ in receiver.requests), 120)
                (alert,) = (json.loads(body) for path, _, body in receiver.requests if path == "/alerts")
                assert alert["url"] == f"{started['url']}/workflows/w/instances/1"
                assert "Instance 1" in httpx.get(alert["url"]).text
            finally:
                up.send_signal(signal.SIGTERM)
                up.communicate(timeout=60)
        assert (alert["type"], alert["title"]) == ("STEP_FAILURE", "w 1 failed")
        assert any(path == "/v1/traces" for path, _, _ in receiver.requests)
    for line in (tmp_path / "err").read_text().splitlines():
        assert json.loads(line)["level"] in {"info", "warning"}
