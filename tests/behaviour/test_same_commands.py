"""The same commands on a project and on a server of it: what they print for programs is the same."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calve.access import LOOPBACK
from calve.app import open_project
from calve.cli import entry
from calve.cli.commands.server import served
from calve.settings import load
from calve.testing import PyIcebergWriter

SETTINGS = """
[alerts.channels.hook]
type = "webhook"
url = "http://127.0.0.1:9/"
"""
DEFINITIONS = """
Workflow:
  id: w
  n: 1
  triggers: [{cron: "0 0 * * *"}]
  jobs:
    - job: {id: a, type: NoOp}
    - job: {id: b, type: Shell, shell: {script: "echo one; echo two; exit 3"}, retry_policy: {error_retry_limit: 0}}
    - job: {id: c, type: NoOp}
  dag: sequential
"""
ASKING = """
Workflow:
  id: asking
  jobs: [{job: {id: ask, type: Approval, approval: {message: Go?}}}]
"""
READS = [
    "status",
    "status w",
    "status w 1",
    "status w 1 --run 1",
    "instances",
    "instances w --status FAILED --limit 1",
    "approvals",
    "logs w 1 b",
    "logs w 1 b --tail 1",
    "logs w 1 b --offset 2 --limit 3",
    "logs w 1 b --find two -i",
    "restart w 1 --dry-run",
    "restart w 1 --dry-run --step b -p n=2 --skip c",
    "permits",
    "alerts",
    "triggers",
    "triggers w",
    "signal list",
    "signal show team/ready",
    "plan db.events -c demo.daily",
    "captures",
    "lag",
    "checkpoint show",
    "checkpoint show --log",
    "prune --dry-run",
    "user list",
    "token list",
    "audit list",
    "audit verify",
    "secret list",
]
"""Commands that change nothing."""
CHANGES = [
    "push w.yaml",
    "activate w",
    "deactivate w",
    "run asking --no-wait",
    "pause w b; resume w",
    "permits set gold 4; permits delete gold",
    "signal announce team/ready day=1",
    "checkpoint set db.events -c demo.daily --to latest --reason same",
]
"""Commands that change something, each run first without and then with the server."""
REFUSALS = [
    "status nope",
    "status w 99",
    "logs w 1 nope",
    "stop w 99",
    "resume w b",
    "permits delete none",
    "signal show none",
    "show none",
    "alerts test none",
    "run w --param strange=1 --no-wait",
    "status w 0",
    "status w 99999999999999999999",
    "logs w 99999999999999999999 b",
    "stop w 99999999999999999999",
]
PASSING = re.compile(
    r'"(age_seconds|expires_in_seconds|\w*time|timestamp|\w*_at|at|since|\w*uuid|\w*instance_id|\w*run_id|\w*version_id|'
    r'seq_id|capture_id|token|token_id|version|status|path|table|icdc_table|relation|location|step_attempt_id)": '
    r'("(?:[^"\\]|\\.)*"|-?[\d.]+|null)'
)
"""What differs from one time to the next."""


@dataclass
class Places:
    """A project, a server of it, and commands on both."""

    project: Path
    elsewhere: Path
    url: str
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def here(self, command: str) -> tuple[int, Any]:
        """Run a command in the project; return its exit code and what it prints."""
        self.monkeypatch.delenv("CALVE_URL", raising=False)
        return self._run(self.project, command)

    def there(self, command: str) -> tuple[int, Any]:
        """Run a command on the server, in a folder that has nothing but definitions."""
        self.monkeypatch.setenv("CALVE_URL", self.url)
        return self._run(self.elsewhere, command)

    def _run(self, folder: Path, command: str) -> tuple[int, Any]:
        self.monkeypatch.chdir(folder)
        self.capsys.readouterr()
        code = entry.run([*command.split(), "--json"])
        return code, json.loads(self.capsys.readouterr().out)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Places]:
    """Yield a project with instances, signals and a capture, and a server of it."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project, elsewhere):
        folder.mkdir()
        (folder / "w.yaml").write_text(DEFINITIONS)
        (folder / "asking.yaml").write_text(ASKING)
    (project / "calve.toml").write_text(SETTINGS)
    settings = load(project)
    writer = PyIcebergWriter(settings)
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    writer.append([{"id": number, "day": 1, "n": 0} for number in (1, 2)])
    writer.close()
    # On a loopback address, the server knows nobody by name.
    monkeypatch.setattr("getpass.getuser", lambda: LOOPBACK.name)
    with open_project(settings) as opened, served(opened, "127.0.0.1", 0) as serving:
        places = Places(project, elsewhere, serving.url, monkeypatch, capsys)
        assert places.here("run w.yaml")[0] == 1
        assert places.here("push asking.yaml")[0] == 0
        assert places.here("run asking --no-wait")[0] == 0
        places.here("signal announce team/ready day=0")
        _, captured = places.here("capture db.events -c demo.daily")
        places.here(f"commit {captured['capture_id']}")
        yield places
    assert not (elsewhere / ".calve").exists(), "a command made state here, though a server was named"


def _lasting(document: Any) -> str:
    text = PASSING.sub(r'"\1": …', json.dumps(document, sort_keys=True))
    return re.sub(r'"view_url": "[^"]*", ', "", text)  # only a server has pages


def test_what_is_read_is_the_same(places: Places) -> None:
    """Of a project, and through its server."""
    for command in READS:
        (code, here), (code_there, there) = places.here(command), places.there(command)
        assert code == code_there == 0, (command, here, there)
        if command == "lag":
            assert _lasting(there) == _lasting(here), command
        else:
            assert there == here, command


def test_what_is_done_is_the_same(places: Places) -> None:
    """But for the numbers of what it makes, and the time."""
    for commands in CHANGES:
        here = [places.here(command) for command in commands.split(";")]
        there = [places.there(command) for command in commands.split(";")]
        assert {code for code, _ in here + there} == {0}, (commands, here, there)
        assert _lasting(there) == _lasting(here), commands


def test_what_is_refused_is_the_same(places: Places) -> None:
    """With the same code and message."""
    for command in REFUSALS:
        (code, here), (code_there, there) = places.here(command), places.there(command)
        assert code == code_there == 1, (command, here, there)
        assert there == here, command


def test_commands_that_need_the_project_itself_report_it(places: Places) -> None:
    """Rather than work on another one."""
    code, said = places.there("sql SELECT")
    assert (code, said["error"]["code"]) == (1, "request_invalid")
    assert "works on the project's own files and databases" in said["error"]["message"]
