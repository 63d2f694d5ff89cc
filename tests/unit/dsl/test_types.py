"""The functions for step types follow from the declarations, whatever these hold."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from calve import dsl
from calve.definition.model import ParamType
from calve.definition.step_types import STEP_TYPES, Field, StepType
from calve.dsl import Workflow, types
from calve.dsl.signatures import docstring, function_name, signature
from calve.dsl.step_functions import step_function

ROOT = Path(__file__).parents[3]


def test_the_stub_and_the_reference_page_are_up_to_date() -> None:
    """They are made from the declarations: ``make step-types``."""
    command = [sys.executable, str(ROOT / "scripts" / "step_types.py"), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")


def test_every_type_has_a_function() -> None:
    """The same as the function of ``calve.dsl``, for built-in types."""
    assert dir(types) == sorted(dsl.steps.__all__)
    assert inspect.signature(types.spark) == inspect.signature(dsl.spark)
    assert inspect.getdoc(types.while_) == inspect.getdoc(dsl.while_)


def test_a_function_that_is_not_there_is_reported_with_the_nearest() -> None:
    """As an attribute that is missing."""
    with pytest.raises(AttributeError, match=r"calve\.dsl\.types has no function sprak: did you mean spark\?"):
        types.sprak  # noqa: B018


def _of(*fields: Field) -> StepType:
    return StepType("Odd-Type", "Does something.", config="odd-type", fields=fields)


def test_names_that_python_does_not_take_are_changed() -> None:
    """And stay as they are in the definition."""
    text = (ParamType.STRING,)
    odd = _of(Field("class", text, "One."), Field("max-rows", text, "Two."), Field("more", text, "Three."))
    assert function_name(odd) == "odd_type"
    with Workflow("w") as wf:
        made = step_function(odd)("a", class_="x", max_rows="y", more_="z")
    assert made.fields["params"]["odd-type"]["value"] == {
        name: {"type": "STRING", "value": value} for name, value in {"class": "x", "max-rows": "y", "more": "z"}.items()
    }
    assert wf.id == "w"


@pytest.mark.parametrize(
    ("field", "annotation"),
    [
        (Field("x", (ParamType.STRING_MAP,), "X."), "TextMap"),
        (Field("x", (ParamType.MAP,), "X.", values=(ParamType.STRING,)), "TextMap"),
        (Field("x", (ParamType.SECRET,), "X."), "Text"),
        (Field("x", (ParamType.DOUBLE_ARRAY, ParamType.DOUBLE), "X."), "Number | Sequence[float] | Param"),
        (Field("x", (ParamType.STRING_ARRAY,), "X.", choices=("a", "b")), 'Sequence[Literal["a", "b"]] | Param'),
    ],
)
def test_what_a_keyword_takes_follows_from_the_types_of_its_field(field: Field, annotation: str) -> None:
    """In the names of ``calve.dsl.values``."""
    assert signature(_of(field)).parameters["x"].annotation == f"{annotation} | None"


def test_a_docstring_tells_defaults_and_what_is_inside_a_map() -> None:
    """Beside what the declaration says."""
    text = docstring(STEP_TYPES["Spark"])
    assert 'deploy_mode: Where the driver runs. Default: ``"client"``.' in text
    assert "A map of ``into``, ``using``, ``keys``" in " ".join(text.split())


def test_arguments_that_do_not_fit_are_told_as_python_does() -> None:
    """With the name of the function."""
    with Workflow("w"):
        with pytest.raises(TypeError, match=r"^http\(\) missing a required.* argument: 'url'$"):
            dsl.http("a")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"^noop\(\) too many positional arguments$"):
            dsl.noop("a", "b")  # type: ignore[call-arg]
