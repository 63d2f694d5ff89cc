"""A step type that a package declares is everywhere: checks, JSON Schema, DSL, reference tables, runtime."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from jsonschema import Draft202012Validator

from calve.definition import installed, load
from calve.definition.schema import schema
from calve.definition.step_types import load_step_types, reference
from calve.dsl import Workflow, types
from calve.errors import DefinitionInvalid
from calve.steps import fields

if TYPE_CHECKING:
    from calve.engine import StepContext

EXAMPLE = Path(__file__).parents[3] / "examples" / "step-type"
YAML = "Workflow: {id: w, jobs: [{job: {id: hello, type: Greet, greet: {name: world, times: 2}}}]}"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder in which the example's package is installed, as pip leaves it."""
    shutil.copytree(EXAMPLE / "src" / "calve_step_greet", tmp_path / "calve_step_greet")
    about = tmp_path / "calve_step_greet-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: calve-step-greet\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[calve.step_types]\nGreet = calve_step_greet:GREET\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()
    sys.modules.pop("calve_step_greet", None)


pytestmark = pytest.mark.usefixtures("site")


def _problems(text: str) -> list[str]:
    return [problem.message for problem in load(text, name="w.yaml", vocabulary=installed()).problems]


def test_definitions_with_it_are_read_and_checked() -> None:
    """Its fields are completed and checked as those of built-in types are."""
    assert not _problems(YAML)
    assert _problems(YAML.replace("times", "time")) == ["greet of a Greet step has no field time"]
    assert _problems(YAML.replace("times: 2", "times: 0")) == ["greet.times is 0; the minimum is 1"]
    assert _problems(YAML.replace("name: world, ", "")) == ["a Greet step needs greet.name"]


def test_it_is_in_the_json_schema(site: Path) -> None:
    """Of ``calve schema`` too."""
    environment = os.environ | {"PYTHONPATH": str(site)}  # noqa: TID251 - passed on
    command = [sys.executable, "-m", "calve", "schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=site).stdout
    for made in (schema(), json.loads(printed)):
        assert "Greet" in made["$defs"]["type"]["anyOf"][0]["enum"]
        assert made["$defs"]["config.Greet"]["properties"]["name"]["description"] == "Whom to greet."
        validator = Draft202012Validator(made)
        job = {"id": "hello", "type": "Greet", "greet": {"name": "world", "times": 2}}
        document: dict[str, Any] = {"Workflow": {"id": "w", "jobs": [{"job": job}]}}
        assert validator.is_valid(document)
        job["greet"] = {"times": 2}
        assert not validator.is_valid(document)


def test_it_is_a_function_of_the_dsl() -> None:
    """Which gives the same definition as YAML; a shared keyword gives way to a field of the same name."""
    with Workflow("w") as wf:
        types.greet("hello", name="world", times=2)
    expected = load(YAML, name="w.yaml", vocabulary=installed()).definition
    assert expected is not None
    assert wf.build().workflow == expected.workflow
    with Workflow("w") as wf:
        types.greet("hello", name="world", times=0, step_name="Say hello", mood="good")
    with pytest.raises(DefinitionInvalid, match=r"test_plugin\.py:\d+: greet\.times is 0; the minimum is 1"):
        wf.build()


def test_its_function_has_a_signature_and_a_docstring() -> None:
    """For editors and ``help``."""
    assert str(inspect.signature(types.greet)).startswith(
        "(step_id: 'str', /, *, name: 'Text', times: 'Whole | None' = None, step_name: 'str | None' = None, "
    )
    text = inspect.getdoc(types.greet) or ""
    assert text.splitlines()[0] == "Describe a step that greets somebody."
    assert "    name: Whom to greet.\n    times: How often. Default: ``1``.\n    step_name: " in text
    assert "greet" in dir(types)


def test_it_has_reference_tables() -> None:
    """As those of the built-in types."""
    text = reference(load_step_types()["Greet"])
    assert "| `times` | whole number | `1` | How often. From 1 to 100. |" in text
    assert "| `greeting` | STRING | What was said. |" in text


def test_its_runtime_gets_checked_values() -> None:
    """With defaults filled in."""
    context = cast("StepContext", SimpleNamespace(params={"greet": {"name": "world"}}))
    assert fields(context, load_step_types()["Greet"]) == {"name": "world", "times": 1}
