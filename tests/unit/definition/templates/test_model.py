"""Templates as they are pushed, kept and read."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.definition.placing import only
from tests.unit.definition.templates.makers import noop, template

from calve.definition.problems import Problems
from calve.definition.step_types import StepTypes
from calve.definition.templates import JobTemplate, read_template, shipped

REQUEST: dict[str, Any] = {
    "owner": "tester",
    "status": "alpha",
    "support": "support-team",
    "test_workflows": ["sample-dag-test-1"],
    "git_info": {"branch": "foo", "sha": "121EF7", "timestamp": 1627332490},
    "foo": "bar",
    "definition": {
        "job_type": "shell",
        "step_type": "Notebook",
        "version": "v1",
        "description": "Runs a shell script.",
        "tags": ["example", {"name": "notebook", "namespace": "JOB_TEMPLATE", "attributes": {"foo": "bar"}}],
        "inherit_from": {"base": "v1"},
        "params": {
            "notebook": {
                "type": "MAP",
                "internal_mode": "PROVIDED",
                "value": {"input_path": {"type": "STRING", "value": "demo.ipynb", "internal_mode": "PROVIDED"}},
            },
            "script": {"type": "STRING", "value": "echo hello world", "internal_mode": "REQUIRED"},
        },
    },
}


def _read(text: str, name: str = "t.yaml") -> tuple[JobTemplate | None, Problems]:
    problems = Problems()
    return read_template(text, name=name, problems=problems, types=StepTypes()), problems


def test_a_request_of_maestro_is_read() -> None:
    """What nobody knows is kept beside the metadata."""
    found, problems = _read(json.dumps(REQUEST), "t.json")
    assert not problems.found
    assert found is not None
    assert found.metadata.extra_info == {"foo": "bar"}


def test_the_kept_form_is_read_again() -> None:
    """Metadata and definition stand beside each other."""
    found = JobTemplate.model_validate(REQUEST)
    assert JobTemplate.model_validate(found.as_json()) == found
    assert found.definition.step_type == "Notebook"
    assert JobTemplate.model_validate(found) == found


def test_a_template_has_a_step_type_or_steps() -> None:
    """Not both, and not neither."""
    with pytest.raises(ValidationError, match="either a step_type or steps"):
        template("t", step_type="NoOp", steps=[noop("a")])
    with pytest.raises(ValidationError, match="either a step_type or steps"):
        template("t", steps=[])
    assert template("t", steps=[noop("a")]).definition.is_workflow
    assert not template("t").definition.is_workflow


def test_steps_may_be_written_as_jobs_with_a_dag() -> None:
    """As in a workflow."""
    text = """
owner: me
status: alpha
support: us
definition:
  job_type: piece
  jobs:
    - job: {id: a, type: NoOp}
    - job: {id: b, type: spark, spark: {script: SELECT 1}}
  dag: sequential
"""
    found, problems = _read(text)
    assert not problems.found
    assert found is not None
    first, second = found.definition.steps
    assert first.transition.successors == {"b": "true"}
    assert second.params["spark"].type == "MAP"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("[", "syntax", ""),
        ("a: 1", "missing", "metadata: Field required"),
        (
            "owner: x\nstatus: x\nsupport: x\ndefinition: {job_type: t, step: NoOp}",
            "extra_forbidden",
            "definition.step",
        ),
        ("owner: x\nstatus: x\nsupport: x\ndefinition: {job_type: t}", "template_kind", "definition: a template has"),
        (
            "owner: x\nstatus: x\nsupport: x\ndefinition: {job_type: t, step_type: NoOp, params: {a: 1}}",
            "param_without_type",
            "the param a has no type",
        ),
        (
            "owner: x\nstatus: x\nsupport: x\ndefinition: {job_type: t, dag: x}",
            "form_unknown",
            "this is not a workflow",
        ),
    ],
)
def test_what_is_wrong_with_a_template_is_reported_with_its_place(text: str, code: str, message: str) -> None:
    """All at once, none of them as a crash."""
    found, problems = _read(text)
    assert found is None
    told = next(problem for problem in problems if problem.code == code)
    assert told.message.startswith(message)


def test_a_wrong_field_is_placed_at_its_value() -> None:
    """The path leads there."""
    _, problems = _read("owner: x\nstatus: x\nsupport: x\ndefinition:\n  job_type: t\n  step_type: [a]")
    assert (only(problems).line, only(problems).message) == (6, "definition.step_type: Input should be a valid string")


def test_two_templates_come_with_the_product() -> None:
    """Each is documented by its description."""
    found = {item.definition.job_type: item.definition for item in shipped()}
    assert set(found) == {"incremental", "write_audit_publish"}
    assert all(item.description and item.is_workflow for item in found.values())
