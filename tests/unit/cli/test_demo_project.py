"""The project that a demo leaves: what it prints at its end is true."""

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from calve.app import open_project
from calve.cli.demo_project import clear, tidy, view_of
from calve.definition import installed, load as load_definition
from calve.demo import settings_in
from calve.errors import StoreBusy
from calve.settings import Settings, load

ONE = b"Workflow:\n  id: w\n  jobs:\n    - job: {id: a, type: NoOp}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a demo in a project that has a lake of its own."""
    (tmp_path / "calve.toml").write_text('[catalogs.own]\ntype = "sql"\nuri = "sqlite:///own.db"\nwarehouse = "own"\n')
    return settings_in(tmp_path / ".calve" / "demo", load(tmp_path, {}))


def test_the_command_that_is_printed_shows_the_page_that_is_printed(settings: Settings) -> None:
    """Also if another server has the usual port."""
    clear(settings)
    with open_project(settings) as project:
        definition = load_definition(ONE, name="w.yaml", vocabulary=installed()).definition
        assert definition is not None
        project.engine.push(definition)
        project.engine.start("w")
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind(("127.0.0.1", settings.server.port))
            usual.listen()
        except OSError:
            pass  # someone has it: all the same
        view = view_of(settings, "/workflows/w/instances/1")
        assert view is not None
        assert "--port" in view["command"]
        _, *arguments = shlex.split(view["command"])
        command = [sys.executable, "-m", "calve", *arguments, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as up:
            try:
                assert up.stdout is not None
                assert any(json.loads(line)["event"] == "up" for line in up.stdout)
                shown = httpx.get(view["url"])
                with pytest.raises(StoreBusy, match="The last demo is still open"):
                    clear(settings)
            finally:
                up.send_signal(signal.SIGTERM)
                up.communicate(timeout=60)
    assert shown.status_code == 200
    assert "Instance 1" in shown.text


def test_a_new_demo_deletes_the_last_one_whatever_it_is(settings: Settings) -> None:
    """Even if its state cannot be read; and ``tidy`` leaves the report only."""
    clear(settings)
    (settings.home / "state.db").write_text("no database")
    (settings.home / "lake").mkdir()
    clear(settings)
    assert [found.name for found in settings.home.iterdir()] == ["calve.toml"]
    (settings.home / "report.html").touch()
    (settings.home / "lake").mkdir()
    tidy(settings.home)
    assert [found.name for found in settings.home.iterdir()] == ["report.html"]


def test_nothing_is_promised_where_variables_lead_elsewhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command would show another project."""
    clear(settings)
    monkeypatch.setenv("CALVE_HOME", str(tmp_path / "other"))
    assert view_of(settings, "/") is None
