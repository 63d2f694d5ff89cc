"""The registry knows every runtime that is built, makes it when it is needed, and takes those of other packages."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.steps.services import services_in

from calve.definition.step_types import STEP_TYPES
from calve.errors import EnvironmentUnfit
from calve.steps import BUILT_IN, Services, load_runtimes

OF_THE_ENGINE = {"NoOp", "Approval", "subworkflow", "foreach", "while", "template"}


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Return what runtimes are given."""
    with services_in(tmp_path) as services:
        yield services


def test_every_step_type_is_carried_out_by_someone() -> None:
    """By a runtime or the engine."""
    usable = {name for name, step_type in STEP_TYPES.items() if not step_type.refused}
    assert set(BUILT_IN) == usable - OF_THE_ENGINE


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_runtime_can_be_made(services: Services, name: str) -> None:
    """And has what the engine calls."""
    runtime = load_runtimes(services)[name]()
    assert type(runtime).__name__.lower() == name.lower()
    assert callable(runtime.execute)
    assert callable(runtime.terminate)


def test_the_registry_imports_nothing_heavy() -> None:
    """A worker pays only for the steps that it carries out."""
    heavy = ("httpx", "sqlalchemy", "kubernetes", "pyspark", "pyarrow")
    script = f"import sys, calve.steps; print([name for name in {heavy!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def _package(folder: Path, name: str, value: str) -> None:
    """Make a package known that adds a runtime."""
    info = folder / f"some_{name.lower()}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: some-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[calve.step_runtimes]\n{name} = {value}\n")


def test_a_package_that_is_broken_is_reported_when_it_is_needed(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other runtimes are not touched by it."""
    _package(tmp_path, "Broken", "no_such_module:Runtime")
    monkeypatch.syspath_prepend(tmp_path)
    runtimes = load_runtimes(services)
    runtimes["Sleep"]()
    with pytest.raises(EnvironmentUnfit, match="Broken steps, no_such_module:Runtime, cannot be loaded"):
        runtimes["Broken"]()


def test_a_package_may_replace_a_runtime(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own one is called without arguments."""
    (tmp_path / "calve_test_other_sleep.py").write_text("class Sleep:\n    is_other = True\n")
    _package(tmp_path, "Sleep", "calve_test_other_sleep:Sleep")
    monkeypatch.syspath_prepend(tmp_path)
    assert getattr(load_runtimes(services)["Sleep"](), "is_other", False)
