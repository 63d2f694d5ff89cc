"""A package of someone else adds a step type: the example, installed as a user would."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.services import services_in

from calve.definition.step_types import load_step_types
from calve.engine import State
from calve.steps import load_runtimes

EXAMPLE = Path(__file__).parents[3] / "examples" / "step-type"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the example is installed."""
    folder = tmp_path_factory.mktemp("site")
    where = ["--python", sys.executable, "--target", str(folder)]
    _run(
        "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation", *where, str(EXAMPLE)
    )
    return folder


def _run(*arguments: str, site: Path | None = None, cwd: Path | None = None) -> str:
    environment = os.environ | ({"PYTHONPATH": str(site)} if site else {})  # noqa: TID251 - passed on
    command = [sys.executable, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=cwd)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def test_its_workflow_is_valid_only_where_it_is_installed(site: Path, tmp_path: Path) -> None:
    """Its fields are checked as those of built-in types are."""
    workflow = EXAMPLE / "workflow.yaml"
    _run("-m", "calve", "validate", str(workflow), site=site, cwd=tmp_path)
    with pytest.raises(AssertionError, match="there is no step type Greet"):
        _run("-m", "calve", "validate", str(workflow), cwd=tmp_path)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(workflow.read_text(encoding="utf-8").replace("times: 2", "time: 2"))
    with pytest.raises(AssertionError, match="has no field time"):
        _run("-m", "calve", "validate", str(wrong), site=site, cwd=tmp_path)


def test_its_runtime_is_found_and_runs(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of its type."""
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    assert "Greet" in load_step_types()
    context = FakeContext(tmp_path, {"greet": {"name": "world"}})
    with services_in(tmp_path) as services:
        outcome = load_runtimes(services)["Greet"]().execute(context)
    assert (outcome.state, outcome.outputs) == (State.DONE, {"greeting": "Hello, world!"})


def test_its_workflow_runs(site: Path, tmp_path: Path) -> None:
    """Through the command line, as any other; with the output of one step as the input of the next."""
    _run("-m", "calve", "run", str(EXAMPLE / "workflow.yaml"), site=site, cwd=tmp_path)
    said = _run("-m", "calve", "logs", "demo.greetings", "1", "again", site=site, cwd=tmp_path)
    assert said.strip() == "Hello, Hello, world!!"


def test_its_own_tests_pass(site: Path) -> None:
    """Those that its authors run."""
    said = _run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE), str(EXAMPLE / "tests"), site=site
    )
    assert "3 passed" in said
