"""From a canonical document to the model: each mistake at its place, with what was probably meant."""

from typing import Any

import pytest
from tests.unit.definition.placing import definition, only, placed, step

from calve.definition.problems import MOST, Problems, TooManyProblems, did_you_mean
from calve.definition.validation import validated
from calve.errors import DefinitionInvalid


def _only(document: dict[str, Any]) -> tuple[str, str, str, str]:
    problems = Problems()
    assert validated(placed(document), problems) is None
    problem = only(problems)
    return problem.code, problem.path, problem.message, problem.hint


def _param(**param: Any) -> dict[str, Any]:
    return definition(step("a"), params={"p": param})


CASES: list[tuple[dict[str, Any], tuple[str, str, str, str]]] = [
    (
        definition(step("a"), nmae="x"),
        ("unknown_field", "workflow.nmae", "there is no field nmae here", "did you mean name?"),
    ),
    (
        definition(step("a", failure_mod="x")),
        (
            "unknown_field",
            "workflow.steps[0].step.failure_mod",
            "there is no field failure_mod here",
            "did you mean failure_mode?",
        ),
    ),
    (
        _param(type="LNG", value=1),
        ("unknown_kind", "workflow.params.p", "there is no LNG here", "did you mean LONG?"),
    ),
    (
        _param(type="MAP", value={"x": {"type": "LONG", "value": "1"}}),
        ("wrong_type", "workflow.params.p.value.x.value", "value must be a whole number, not '1'", ""),
    ),
    (_param(value=1), ("missing_kind", "workflow.params.p", "type is missing", "")),
    (
        definition({"step": {}, "foreach": {}}),
        (
            "missing_kind",
            "workflow.steps[0]",
            "a step is a map with one key: step, subworkflow, foreach, while or template",
            "",
        ),
    ),
    (
        definition({"stp": {}}),
        ("unknown_kind", "workflow.steps[0]", "there is no stp here", "did you mean step?"),
    ),
    (
        definition(step("a", failure_mode="IGNORE")),
        (
            "unknown_word",
            "workflow.steps[0].step.failure_mode",
            "failure_mode cannot be 'IGNORE'",
            "did you mean IGNORE_FAILURE?",
        ),
    ),
    (definition(), ("empty", "workflow.steps", "steps cannot be empty", "")),
    (
        definition(step("a"), timeout=True),
        (
            "not_a_duration",
            "workflow.timeout",
            "timeout must be a whole number or a text such as 2 hours, not True",
            "",
        ),
    ),
    (
        definition(step("a"), instance_step_concurrency=1000),
        (
            "less_than",
            "workflow.instance_step_concurrency",
            "instance_step_concurrency must be less than 1000, not 1000",
            "",
        ),
    ),
    (
        definition(step("a"), instance_step_concurrency=[1]),
        (
            "wrong_type",
            "workflow.instance_step_concurrency",
            "instance_step_concurrency must be a whole number, not a list",
            "",
        ),
    ),
    (
        definition(step("a"), params={"a b": 3}),
        ("wrong_type", "workflow.params.a b", "a b must be a mapping, not 3", ""),
    ),
    (
        definition(step("a"), incremental_triggers=[3]),
        (
            "wrong_type",
            "workflow.incremental_triggers[0]",
            "an item of incremental_triggers must be a mapping, not 3",
            "",
        ),
    ),
    (
        {**definition(step("a")), "properties": {"owner": ["x"]}},
        ("wrong_type", "properties.owner", "owner must be a mapping, not a list", ""),
    ),
    (
        definition(step("a"), description={"x": 1}),
        ("wrong_type", "workflow.description", "description must be text, not a mapping", ""),
    ),
]


@pytest.mark.parametrize(
    ("document", "expected"), CASES, ids=lambda value: value[2] if isinstance(value, tuple) else ""
)
def test_a_mistake_is_reported_with_its_place(document: dict[str, Any], expected: tuple[str, str, str, str]) -> None:
    """The code, the path, the message and the hint."""
    assert _only(document) == expected


def test_a_mistake_deep_in_loops_is_reported_like_any_other() -> None:
    """The misspelt field and the one that is missing because of it."""
    inner = {"while": {"id": "w", "steps": [step("a")], "conditoin": "x"}}
    problems = Problems()
    validated(placed(definition({"foreach": {"id": "f", "steps": [inner]}})), problems)
    missing, unknown = problems.errors
    assert (missing.message, missing.path) == ("condition is missing", "workflow.steps[0].foreach.steps[0].while")
    assert (unknown.code, unknown.hint) == ("unknown_field", "did you mean condition?")


def test_all_mistakes_are_reported_at_once() -> None:
    """Not the first one only; a list whose items are all wrong is not called empty."""
    problems = Problems()
    document = definition(
        {"step": {"id": "a b", "type": 3, "x": 1}}, name=4, params={"p": {"type": "LONG", "value": 1.5}}
    )
    assert validated(placed(document), problems) is None
    assert {problem.code for problem in problems} == {"name_malformed", "wrong_type", "unknown_field"}
    assert len(problems.errors) == 5


def test_all_errors_are_raised_at_once() -> None:
    """The first is the message, the others are counted."""
    problems = Problems()
    node = placed({"x": 1})
    problems.warn(node, "odd", "looks odd")
    problems.raise_if_any("w.yaml")
    problems.add(node, "bad", "is bad", hint="mend it")
    with pytest.raises(DefinitionInvalid):
        problems.raise_if_any("w.yaml")
    one = problems.as_error("w.yaml")
    assert (one.message, one.remedy) == ("w.yaml:1:1: is bad", "mend it")
    problems.add(node, "worse", "is worse")
    assert problems.as_error("w.yaml").message.endswith("(and 1 more)")
    assert [problem.code for problem in problems.warnings] == ["odd"]


def test_a_document_full_of_mistakes_is_not_read_to_its_end() -> None:
    """Nobody reads so many."""
    problems = Problems()
    for _ in range(MOST):
        problems.add(placed(1), "bad", "is bad")
    with pytest.raises(TooManyProblems):
        problems.add(placed(1), "bad", "is bad")
    assert len(problems.errors) == MOST


def test_the_nearest_name_is_found_whatever_its_case() -> None:
    """If none is near, few names are listed, and many are not."""
    assert did_you_mean("NOOP", ["NoOp", "Sleep"]) == "did you mean NoOp?"
    assert did_you_mean("xyz", ["NoOp", "Sleep"]) == "one of NoOp, Sleep"
    assert did_you_mean("xyz", [f"name{number}" for number in range(20)]) == ""
    assert did_you_mean("xyz", []) == ""
