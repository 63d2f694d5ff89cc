"""Templates are found by type and version, and inherit from each other."""

import pytest
from tests.unit.definition.templates.makers import noop, template, text_param

from calve.definition.model import Params, StringParam, TypedStep
from calve.definition.templates import JobTemplates, version_of
from calve.errors import DefinitionInvalid


def _merge(below: Params, above: Params) -> Params:
    return below | above


BASE = template("base", params={"a": text_param("base"), "b": text_param("base")}, tags=["x", "y"])
CHILD = template("child", inherit_from={"base": "default"}, params={"b": text_param("child")}, tags=["y"])
TEMPLATES = JobTemplates.of([BASE, CHILD, template("child", version="v2"), template("piece", steps=[noop("s")])])


def _values(params: Params) -> dict[str, object]:
    return {name: getattr(param, "value", None) for name, param in params.items()}


def test_a_template_is_found_by_type_and_version() -> None:
    """Without a version it is the default one."""
    assert TEMPLATES.find("child") == CHILD.definition
    assert TEMPLATES.find("child", "v2") is not None
    assert TEMPLATES.find("child", "v3") is None
    assert TEMPLATES.find("nope") is None
    assert TEMPLATES.versions("child") == ("default", "v2")
    assert TEMPLATES.step_type("child") == "NoOp"
    assert TEMPLATES.step_type("nope") is None
    assert TEMPLATES.step_type("piece") is None


def test_templates_of_jobs_and_of_workflows_are_told_apart() -> None:
    """A job may have the one, a template step the other."""
    assert TEMPLATES.names() == ("base", "child")
    assert TEMPLATES.workflow_names() == ("piece",)


def test_the_version_is_the_steps_or_the_workflows_or_the_default() -> None:
    """In this order."""
    params: Params = {"job_template_version": StringParam(value="v1")}
    assert version_of("v2", params) == "v2"
    assert version_of(None, params) == "v1"
    assert version_of(None, {}) == "default"
    assert version_of(None, {"job_template_version": StringParam(expression="'v' + 3")}) == "default"


def test_a_template_takes_the_params_and_tags_it_inherits() -> None:
    """Its own replace those of the same name."""
    assert _values(TEMPLATES.params("child")) == {"a": "base", "b": "child"}
    assert [tag.name for tag in TEMPLATES.tags("child")] == ["x", "y"]


def test_a_template_that_inherits_from_itself_names_the_way_round() -> None:
    """However long the way is."""
    round_ = JobTemplates.of(
        [template("a", inherit_from={"b": "default"}), template("b", inherit_from={"a": "default"})]
    )
    with pytest.raises(DefinitionInvalid, match="inherits from itself: a default -> b default -> a default"):
        round_.params("a")


def test_another_version_of_the_same_type_is_no_way_round() -> None:
    """v2 may inherit from v1."""
    found = JobTemplates.of(
        [template("a", params={"p": text_param("1")}), template("a", version="v2", inherit_from={"a": "default"})]
    )
    assert _values(found.params("a", "v2")) == {"p": "1"}


def test_a_parent_that_is_missing_is_named_with_the_chain() -> None:
    """And with the versions that there are."""
    lost = JobTemplates.of(
        [template("a", inherit_from={"b": "v9"}), template("b"), template("c", inherit_from={"d": "x"})]
    )
    with pytest.raises(DefinitionInvalid, match="there is no template b v9: a default -> b v9") as raised:
        lost.lineage("a")
    assert raised.value.remedy == "Versions of b: default."
    with pytest.raises(DefinitionInvalid) as raised:
        lost.lineage("c")
    assert raised.value.remedy == "Push a template d first."


def test_a_step_has_its_own_params_above_those_of_the_workflow_and_the_template() -> None:
    """A workflow's param counts only if the template has one of that name."""
    step = TypedStep(id="s", type="noop", sub_type="child", params={"c": StringParam(value="step")})
    workflow: Params = {"a": StringParam(value="workflow"), "z": StringParam(value="workflow")}
    found = TEMPLATES.step_params(step, workflow, _merge)
    assert _values(found) == {"a": "workflow", "b": "child", "c": "step"}


def test_a_sub_type_that_no_template_has_is_a_label() -> None:
    """As in Maestro."""
    for sub_type in (None, "label"):
        step = TypedStep(id="s", type="NoOp", sub_type=sub_type, params={"c": StringParam(value="step")})
        assert TEMPLATES.step_params(step, {}, _merge) == step.params


def test_a_template_of_another_step_type_is_refused() -> None:
    """Its params would mean nothing there."""
    with pytest.raises(DefinitionInvalid, match="step s is of type Spark, but its template child is of NoOp"):
        TEMPLATES.step_params(TypedStep(id="s", type="Spark", sub_type="child"), {}, _merge)
