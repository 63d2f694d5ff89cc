"""What differs between two definitions of a step, and on which params a step depends."""

import pytest

from calve.definition import installed, load
from calve.definition.differences import (
    around_body,
    body_differences,
    condition_depends_on,
    depends_on,
    step_differences,
)
from calve.definition.model import ForeachStep, Step

JOB = "{id: a, type: Shell, shell: {script: 'echo 1', env: {X: a}}, n: 1}"
LOOP = """{id: a, loop_params: {i: [1, 2]}, more: 1, concurrency: 1, dag: sequential, jobs: [
  {job: {id: b, type: Sleep, x: 1}}, {job: {id: c, type: Sleep, y: "${p}"}}]}"""

BRANCHED = """{id: a, loop_params: {i: [1]}, jobs: [
  {job: {id: b, type: NoOp, transition: [IF day > 1 THEN c]}}, {job: {id: c, type: NoOp}}]}"""


def step(written: str, kind: str = "job") -> Step:
    """Return the one step of a workflow."""
    text = f"Workflow: {{id: w, jobs: [{{{kind}: {written}}}]}}"
    return load(text, name="test", vocabulary=installed()).required().workflow.steps[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("echo 1", "echo 2"), ("shell.script",)),
        (("X: a", "X: b"), ("shell.env",)),
        (("n: 1", "n: 2"), ("n",)),
        (("n: 1", "n: 1, m: 1"), ("m",)),
        (("n: 1", "n: {x: 1}"), ("n",)),
        (("type: Shell", "type: NoOp"), ("type",)),
        (("n: 1", "n(constant): 1"), ("n",)),
        (("shell: ", "shell(constant): "), ("shell",)),
        (("n: 1", "n: 1, signal_outputs: {definitions: [{name: s}]}"), ("signal_outputs",)),
        (("n: 1", "n: 1, description: more, tags: [x], timeout: 1 hour, failure_mode: ignore_failure"), ()),
    ],
)
def test_what_a_step_does_depends_on_some_fields(change: tuple[str, str], named: tuple[str, ...]) -> None:
    """Not on how it is called, limited or retried."""
    assert step_differences(step(JOB), step(JOB.replace(*change))) == named


def test_the_same_definition_differs_in_nothing() -> None:
    """Nor does it from itself."""
    one = step(JOB)
    assert step_differences(one, one) == step_differences(one, step(JOB)) == ()
    loop = step(LOOP, "foreach")
    assert body_differences(loop, loop) == ()


def test_another_kind_of_step_differs() -> None:
    """Whatever it holds."""
    assert step_differences(step(JOB), step(LOOP, "foreach")) == ("type",)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("x: 1", "x: 2"), ("b.x",)),
        (("dag: sequential, ", ""), ("b.transition",)),
        (("{job: {id: b, type: Sleep, x: 1}}, ", ""), ("b",)),
        (("{job: {id: b, type: Sleep, x: 1}}", "{subworkflow: {id: b, subworkflow_id: x}}"), ("b",)),
        (("concurrency: 1", "concurrency: 2"), ()),
    ],
)
def test_a_loop_differs_where_its_steps_do(change: tuple[str, str], named: tuple[str, ...]) -> None:
    """And in the ways between them."""
    one, other = step(LOOP, "foreach"), step(LOOP.replace(*change), "foreach")
    assert step_differences(one, other) == body_differences(one, other) == named


def test_what_a_loop_goes_over_is_not_around_its_iterations() -> None:
    """Each of them has values of its own."""
    one = step(LOOP, "foreach")
    assert isinstance(one, ForeachStep)
    for change, is_around in ((("[1, 2]", "[1]"), False), (("x: 1", "x: 2"), False), (("more: 1", "more: 2"), True)):
        other = step(LOOP.replace(*change), "foreach")
        assert isinstance(other, ForeachStep)
        assert step_differences(one, other)
        assert bool(step_differences(around_body(one), around_body(other))) is is_around


@pytest.mark.parametrize(
    ("written", "kind", "named"),
    [
        ("{id: a, type: NoOp, x: day}", "job", ()),
        ("{id: a, type: NoOp, x: '$day and ${night.x}', y: ['${noon}']}", "job", ("day", "night", "noon")),
        ("{id: a, type: NoOp, '!x<long>': day + 1}", "job", ("day",)),
        ("{id: a, type: NoOp, '!x': \"params.get('night')\"}", "job", ("night",)),
        ("{id: a, type: NoOp, '!x': \"n = 'night'; return params.get(n);\"}", "job", ("day", "night", "noon")),
        ("{id: a, type: NoOp, m: {x: 1, '!y<long>': day + 1}}", "job", ("day",)),
        ("{id: a, type: Spark, targets: ['db.${day}'], spark: {script: SELECT 1}}", "job", ("day",)),
        ("{id: a, subworkflow_id: x}", "subworkflow", ("day", "night", "noon")),
        ("{id: a, subworkflow_id: x, explicit_params: true, y: $day}", "subworkflow", ("day",)),
        ("{id: a, loop_params: {i: [1]}, jobs: [{job: {id: b, type: NoOp, x: $day}}]}", "foreach", ("day",)),
        (BRANCHED, "foreach", ("day",)),
        ("{id: a, condition: day < 3, loop_params: {i: 1}, jobs: [{job: {id: b, type: NoOp}}]}", "while", ("day",)),
    ],
)
def test_a_step_depends_on_what_it_refers_to(written: str, kind: str, named: tuple[str, ...]) -> None:
    """In texts, in expressions, and wherever else; on all, where that cannot be told."""
    found = step(written, kind)
    assert depends_on(found, {"day", "night", "noon"}) == named
    assert depends_on(found, ()) == ()


def test_a_job_template_depends_on_all() -> None:
    """Its params take the values of the workflow's that have the same names."""
    found = step(JOB).model_copy(update={"sub_type": "any"})
    assert depends_on(found, {"day"}) == ("day",)


def test_a_condition_depends_on_what_it_refers_to() -> None:
    """One that cannot be read depends on everything."""
    assert condition_depends_on("day > 1", {"day"})
    assert not condition_depends_on("day > 1", {"night"})
    assert not condition_depends_on("day > 1", ())
    assert condition_depends_on("1 +", {"night"})
