"""The reference tables hold all that a declaration says."""

import pytest

from calve.definition.model import ParamType
from calve.definition.step_types import Choose, Field, Output, StepType, reference
from calve.definition.step_types.step_type import LISTS, MAPS, QUANTITY

TEXT = (ParamType.STRING,)
WHOLE = (ParamType.LONG,)


@pytest.mark.parametrize(
    ("field", "row"),
    [
        (Field("x", TEXT, "X.", required=True), "| `x` | text | **required** | X. |"),
        (Field("x", QUANTITY, "A|B."), "| `x` | text, whole number, number | – | A\\|B. |"),
        (Field("x", WHOLE, "X.", default=3, minimum=1), "| `x` | whole number | `3` | X. At least 1. |"),
        (Field("x", WHOLE, "X.", maximum=10_000), "| `x` | whole number | – | X. At most 10,000. |"),
        (Field("x", WHOLE, "X.", minimum=1, maximum=5), "| `x` | whole number | – | X. From 1 to 5. |"),
        (Field("x", (*MAPS, *LISTS), "X.", default=[1]), "| `x` | map, list | `[1]` | X. |"),
        (Field("x", TEXT, "X.", choices=("a", "b"), default="a"), "| `x` | text | `a` | X. One of `a`, `b`. |"),
        (Field("x", (*TEXT, *MAPS), "X.", choices=("a",)), "| `x` | text, map | – | X. One of `a`, or a map. |"),
        (Field("x", MAPS, "X.", fields=(Field("y", TEXT, "Y."),)), "| `x.y` | text | – | Y. |"),
    ],
)
def test_a_field_is_a_row(field: Field, row: str) -> None:
    """With what it accepts, its default, and its limits."""
    text = reference(StepType("Kind", "Does something.", config="kind", fields=(field,)))
    assert text.startswith("Fields of `kind`:\n\n| name | value | default | meaning |\n|---|---|---|---|\n")
    assert row in text.splitlines()


@pytest.mark.parametrize(
    ("choose", "sentence"),
    [
        (Choose(("a", "b")), "Exactly one of `a` and `b` must be given."),
        (Choose(("a", "b"), most=2), "At least one of `a` and `b` must be given."),
        (Choose(("a", "b"), least=0), "At most one of `a` and `b` may be given."),
        (
            Choose(("a", "b", "c"), beside="a", without="waits"),
            (
                "Exactly one of `a`, `b` and `c` should be given; a step without any of them waits. "
                "`a` may also be a param of the step itself."
            ),
        ),
    ],
)
def test_a_choice_is_a_sentence(choose: Choose, sentence: str) -> None:
    """After the fields."""
    assert reference(StepType("Kind", "Does something.", choose=(choose,))) == f"{sentence}\n"


def test_outputs_are_rows() -> None:
    """Those of a step that runs other steps are for these; a type without anything has no tables."""
    outputs = (Output("o", ParamType.LONG, "A number."),)
    table = "| output | type | meaning |\n|---|---|---|\n| `o` | LONG | A number. |\n"
    assert reference(StepType("Kind", "Does something.", outputs=outputs)) == f"Outputs:\n\n{table}"
    loop = StepType("Kind", "Does something.", outputs=outputs, is_leaf=False)
    assert reference(loop) == f"For the steps inside:\n\n{table}"
    assert reference(StepType("Kind", "Does something.")) == ""
