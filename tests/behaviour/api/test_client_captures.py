"""Commands about captures, in the project and from afar: the same answers, word for word."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engines import Playground
from tests.servers import services_on, site_on

from calve.app import captures_on
from calve.capture import Captures
from calve.cli import entry
from calve.client import Client
from calve.lake import Lake
from calve.settings import load
from calve.testing import PyIcebergWriter

PASSING = re.compile(r'("(?:age|expires_in)_seconds": )[-\d.]+|[\d.]+ (?:ms|s|min)\b')
"""What changes from one second to the next."""


@dataclass
class Places:
    """A project with a lake, a server of it, and commands that are run in both."""

    project: Path
    elsewhere: Path
    url: str
    captures: Captures
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def here(self, *arguments: str) -> str:
        """Run a command in the project."""
        self.monkeypatch.delenv("CALVE_URL", raising=False)
        return self._run(self.project, *arguments)

    def afar(self, *arguments: str, code: int = 0) -> str:
        """Run a command in an empty folder, against the server."""
        self.monkeypatch.setenv("CALVE_URL", self.url)
        return self._run(self.elsewhere, *arguments, code=code)

    def both(self, *arguments: str) -> str:
        """Run a command in both; they must print the same, as text and as JSON."""
        said, there = (PASSING.sub("…", run(*arguments, "--json")) for run in (self.here, self.afar))
        assert said == there
        text = PASSING.sub("…", self.here(*arguments))
        assert PASSING.sub("…", self.afar(*arguments)) == text
        return text

    def json(self, *arguments: str) -> Any:
        """Return what a command prints for programs, from afar."""
        return json.loads(self.afar(*arguments, "--json"))

    def _run(self, folder: Path, *arguments: str, code: int = 0) -> str:
        self.monkeypatch.chdir(folder)
        self.capsys.readouterr()
        result = entry.run(list(arguments))
        said = self.capsys.readouterr()
        assert result == code, said.out + said.err
        return said.out + said.err


@pytest.fixture
def places(
    playground: Playground,
    store_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Places]:
    """Give a project with a table of two rows, and a server of it."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project, elsewhere):
        folder.mkdir()
    settings = load(project, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    writer.append([{"id": number, "day": 1, "n": 0} for number in (1, 2)])
    captures = captures_on(lake, playground.store)
    monkeypatch.setenv("CALVE_STORE__URL", store_url)
    with site_on(playground, services_on(playground, captures=captures)) as site:
        yield Places(project, elsewhere, site.url, captures, monkeypatch, capsys)
        assert not (elsewhere / ".calve").exists(), "a command made state here, though a server was named"
    writer.close()
    lake.close()


def taken(places: Places) -> str:
    """Take a capture; return which."""
    return places.captures.capture(["db.events"], "demo.daily", key="one").capture_id or ""


def test_captures_are_listed_and_shown(places: Places) -> None:
    """Down to their files, which are looked for if so asked."""
    assert "2 rows" in places.both("plan", "db.events", "-c", "demo.daily", "--range", "day", "--max-files", "9")
    capture_id = taken(places)
    assert capture_id in places.both("captures")
    assert places.json("captures")[0]["records"] == 2
    assert places.json("captures", "-c", "nobody") == []
    assert ".parquet" in places.both("show", capture_id)
    assert places.json("show", capture_id, "--check")["status"] == "open"
    assert "There is no capture" in places.afar("show", "none", code=1)


def test_checkpoints_and_lag_are_shown(places: Places) -> None:
    """With every move, and why."""
    places.captures.commit(taken(places))
    places.captures.set_checkpoint("db.events", "demo.daily", "latest", "begin today")
    assert "begin today" in places.both("checkpoint", "show")
    moves = places.both("checkpoint", "show", "--log", "-c", "demo.daily").splitlines()
    assert "begin today" in moves[-1]
    assert "demo.daily" in places.both("lag")
    assert places.json("lag", "-c", "demo.daily")[0]["pending_commits"] == 0
    assert places.json("checkpoint", "show", "-c", "nobody") == []


def test_what_messages_offer_works_from_afar(places: Places) -> None:
    """To commit or abandon a capture, and to move a checkpoint."""
    capture_id = taken(places)
    assert f"{capture_id} committed" in places.both("commit", capture_id)
    assert "was committed" in places.afar("abandon", capture_id, code=1)
    other = places.captures.capture(["db.events"], "demo.other")
    assert f"{other.capture_id} abandoned" in places.both("abandon", str(other.capture_id))
    where = ("db.events", "-c", "demo.daily", "--reason", "why")
    assert "demo.daily is now at" in places.afar("checkpoint", "set", *where, "--to", "latest")
    stood = places.json("checkpoint", "set", *where, "--to", "latest")
    assert (stood["table"], stood["moved_by"]) == ("db.events", "why")
    assert "no longer has a checkpoint for db.events" in places.afar("checkpoint", "reset", *where)
    assert "has no checkpoint" in places.afar("checkpoint", "reset", *where, code=1)


def test_files_that_are_gone_are_said_from_afar(places: Places) -> None:
    """As the error that it is in the project."""
    capture_id = taken(places)
    with Client(places.url) as client:
        ((listed,),) = client.capture_files(capture_id).values()
        Path(listed["path"].removeprefix("file://")).unlink()
    assert "error" in places.afar("show", capture_id, "--check", code=1)


def test_changes_are_captured_from_afar(places: Places) -> None:
    """As in the project: a second capture is refused, unless it supersedes the first one."""
    first = places.json("capture", "db.events", "-c", "demo.daily", "--key", "one")
    assert places.captures.show(first["capture_id"]).as_json() == first
    assert places.json("capture", "db.events", "-c", "demo.daily", "--key", "one")["capture_id"] == first["capture_id"]
    assert "demo.daily has capture" in places.afar("capture", "db.events", "-c", "demo.daily", code=1)
    assert places.json("capture", "db.events", "-c", "demo.daily", "--supersede")["status"] == "open"
