"""The fields of a step are checked once more when they have values, and completed."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.definition.model import ParamType
from calve.definition.step_types import STEP_TYPES, Choose, Field, StepType
from calve.engine import Outcome, State
from calve.errors import StepFailed
from calve.steps.config import fields, texts
from calve.steps.failures import interrupted, settled

USER = Field("user", (ParamType.STRING,), "A text.", required=True)
KIND = StepType(
    "Kind",
    "A type to test with.",
    config="kind",
    fields=(
        Field("name", (ParamType.STRING,), "A text.", required=True),
        Field("count", (ParamType.LONG,), "A number.", default=1, minimum=1, maximum=9),
        Field("share", (ParamType.DOUBLE,), "A number."),
        Field("is_on", (ParamType.BOOLEAN,), "A truth.", default=False),
        Field("size", (ParamType.STRING, ParamType.LONG), "Either."),
        Field("words", (ParamType.STRING_ARRAY,), "A list."),
        Field("colour", (ParamType.STRING,), "A word.", default="red", choices=("red", "blue")),
        Field("auth", (ParamType.MAP,), "A map.", fields=(USER,)),
        Field("codes", (ParamType.LONG_ARRAY,), "A list of numbers.", default=[0], minimum=0),
        Field("tones", (ParamType.STRING_ARRAY,), "A list of words.", choices=("a", "b")),
        Field(
            "mix",
            (ParamType.STRING, ParamType.MAP),
            "A word, or a map.",
            choices=("a", "b"),
            values=(ParamType.STRING,),
        ),
        Field("left", (ParamType.STRING,), "One side."),
        Field("right", (ParamType.STRING,), "The other."),
    ),
    choose=(Choose(("left", "right"), least=0),),
    params=(Field("mood", (ParamType.STRING,), "A param of the step itself.", default="good"),),
)


def _read(folder: Path, **kind: Any) -> dict[str, Any]:
    return fields(FakeContext(folder, {"kind": {"name": "n", **kind}}), KIND)


def test_what_is_omitted_has_its_default(tmp_path: Path) -> None:
    """Or is not there."""
    found = _read(tmp_path)
    assert found == {"name": "n", "count": 1, "is_on": False, "colour": "red", "codes": [0], "mood": "good"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"count": "7"}, 7),
        ({"share": 1}, 1),
        ({"share": "0.5"}, 0.5),
        ({"is_on": "TRUE"}, True),
        ({"size": 5}, 5),
        ({"size": "5g"}, "5g"),
        ({"words": ("a", "b")}, ("a", "b")),
        ({"auth": {"user": "u"}}, {"user": "u"}),
    ],
)
def test_a_value_is_made_to_fit(tmp_path: Path, given: dict[str, Any], found: Any) -> None:
    """A reference may have given a number as text."""
    ((name, _),) = given.items()
    assert _read(tmp_path, **given)[name] == found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": None}, "kind.name is missing."),
        ({"count": "many"}, "kind.count"),
        ({"count": True}, "kind.count"),
        ({"count": 0}, "kind.count is 0; the minimum is 1."),
        ({"count": "10"}, "kind.count is 10; the maximum is 9."),
        ({"is_on": 1}, "kind.is_on"),
        ({"words": "a"}, "kind.words"),
        ({"colour": "green"}, "kind.colour must be red or blue, not 'green'."),
        ({"codes": [1, -1]}, "kind.codes is -1; the minimum is 0."),
        ({"tones": ["a", "z"]}, "kind.tones must be a or b, not 'z'."),
        ({"auth": {}}, "kind.auth.user is missing."),
        ({"left": "a", "right": "b"}, "2 of kind.left, kind.right are set, but 0 to 1 must be."),
    ],
)
def test_a_value_that_does_not_fit_is_reported(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """By the name of its field."""
    with pytest.raises(StepFailed) as failure:
        _read(tmp_path, **given)
    assert said in failure.value.message
    assert failure.value.context["state"] is State.FATAL_ERROR


def test_a_config_that_is_not_a_map_is_reported(tmp_path: Path) -> None:
    """As an expression may have made it."""
    with pytest.raises(StepFailed, match="kind is not a map"):
        fields(FakeContext(tmp_path, {"kind": "text"}), KIND)


@pytest.mark.parametrize("name", STEP_TYPES)
def test_the_defaults_of_every_type_fit(tmp_path: Path, name: str) -> None:
    """So that a step of only its required fields can be carried out."""
    step_type = STEP_TYPES[name]
    chosen = {choose.names[0] for choose in step_type.choose if choose.least}
    needed = [item for item in step_type.fields if item.required or item.name in chosen]
    config = {item.name: "x" if ParamType.STRING in item.types else ["x"] for item in needed}
    params = {item.name: {} if ParamType.MAP in item.types else "x" for item in step_type.params if item.required}
    found = fields(FakeContext(tmp_path, {step_type.config or "": config, **params}), step_type)
    assert set(config) <= set(found)


def test_scalars_are_texts_as_programs_want_them() -> None:
    """True and false as JSON has them."""
    assert texts({"a": True, "b": 1, "c": 1.5, "d": "x"}) == {"a": "true", "b": "1", "c": "1.5", "d": "x"}


@pytest.mark.parametrize(("timeout", "state"), [(None, State.STOPPED), (1.0, State.STOPPED), (0.0, State.TIMED_OUT)])
def test_an_interruption_is_a_timeout_if_the_time_is_up(tmp_path: Path, timeout: float | None, state: State) -> None:
    """Whoever noticed it."""

    def work(_: object) -> Outcome:
        raise interrupted("The work")

    context = FakeContext(tmp_path, timeout=timeout)
    assert settled(work, context) == Outcome(state, message="The work was interrupted.")


def test_a_map_in_place_of_a_word_is_no_choice(tmp_path: Path) -> None:
    """Choices are of the word."""
    assert _read(tmp_path, mix={"red": "1 + 1"})["mix"] == {"red": "1 + 1"}
    with pytest.raises(StepFailed, match="must be a or b, not"):
        _read(tmp_path, mix="c")
