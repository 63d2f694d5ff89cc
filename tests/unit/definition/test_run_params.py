"""The params that a run can be given, and the ones that nothing in a definition knows."""

from pathlib import Path

import pytest
from tests.unit.definition.templates.makers import template, text_param

from calve.definition import ProjectFiles, StepFiles, installed, load
from calve.definition.model import Workflow
from calve.definition.run_params import (
    KnownParams,
    UnknownParam,
    known_to_step,
    known_to_workflow,
    refusal,
    unknown_params,
)
from calve.definition.step_types import StepTypes
from calve.definition.templates import JobTemplate, JobTemplates
from calve.definition.vocabulary import Vocabulary
from calve.errors import RequestInvalid

WORDS = installed()
LOADING = "Workflow: {id: w, jobs: [{job: {id: a, type: Load}}]}"


def _words(*templates: JobTemplate) -> Vocabulary:
    known = JobTemplates.of(templates)
    return Vocabulary(StepTypes(templates=known), known)


def _workflow(text: str) -> Workflow:
    return load(text, name="test", vocabulary=WORDS).required().workflow


def _unknown(text: str, *given: str, others: dict[str, str] | None = None) -> list[str]:
    """Return the given names that a workflow does not know, with what it says of them."""
    children = {name: _workflow(child) for name, child in (others or {}).items()}
    known = known_to_workflow(_workflow(text), WORDS, lambda name, _: children.get(name))
    return known.unknown_among(given)


def test_a_name_that_nothing_knows_is_unknown() -> None:
    """The nearest declared name is proposed; the reference test of the issue."""
    text = "Workflow: {id: w, day: '20260101', jobs: [{job: {id: a, type: NoOp, x: '${day}'}}]}"
    known = known_to_workflow(_workflow(text), WORDS, lambda *_: None)
    assert known.unknown_among(["day", "dya"]) == ["dya"]
    assert known.hint("dya") == "Did you mean day?"


@pytest.mark.parametrize(
    "job",
    [
        "{id: a, type: NoOp, x: 'since ${day}'}",
        "{id: a, type: NoOp, x: 'since $day'}",
        "{id: a, type: NoOp, x: ['${day}']}",
        "{id: a, type: NoOp, x: {inner: {deep: '${day}'}}}",
        "{id: a, type: NoOp, x: '${day.year}'}",
        "{id: a, type: NoOp, '!x': 'day + 1'}",
        "{id: a, type: NoOp, '!x': \"params.get('day')\"}",
        "{id: a, type: NoOp, '!x': \"params['day']\"}",
        "{id: a, type: NoOp, day: 5}",
        "{id: a, type: NoOp, timeout: '${day}'}",
        "{id: a, type: Spark, spark: {script: SELECT 1}, targets: ['db.t_${day}']}",
        "{id: a, type: NoOp, tags: ['${day}']}",
        "{id: a, type: Shell, shell: {script: 'echo ${day}'}}",
        "{id: a, type: Shell, shell: {script: 'true'}, retry_policy: {error_retry_limit: '${day}'}}",
    ],
)
def test_what_a_step_refers_to_is_known(job: str) -> None:
    """In any text or expression: it is meant to be given at the start."""
    assert _unknown(f"Workflow: {{id: w, jobs: [{{job: {job}}}]}}", "day", "dya") == ["dya"]


@pytest.mark.parametrize(
    "jobs",
    [
        "{foreach: {id: l, loop_params: {'!i<long_array>': most}, jobs: [{job: {id: a, type: NoOp}}]}}",
        "{while: {id: l, condition: i < most, loop_params: {i: 0}, jobs: [{job: {id: a, type: NoOp}}]}}",
        "{job: {id: a, type: NoOp, transition: [{IF most == 1: b}]}}, {job: {id: b, type: NoOp}}",
    ],
)
def test_loops_and_edges_refer_to_params_too(jobs: str) -> None:
    """What a foreach goes over, what a while or an edge asks."""
    assert _unknown(f"Workflow: {{id: w, jobs: [{jobs}]}}", "most", "moist") == ["moist"]


def test_an_output_of_a_step_is_no_run_param() -> None:
    """Nor is the id of a step."""
    text = """
Workflow:
  id: w
  jobs:
    - job: {id: load, type: Shell, shell: {script: 'true'}}
    - job: {id: b, type: NoOp, x: '${load.exit_code}'}
"""
    assert _unknown(text, "load", "load.exit_code") == ["load", "load.exit_code"]


def test_what_the_product_gives_by_itself_is_known() -> None:
    """The run's own date can be changed; a dollar that is escaped refers to nothing."""
    text = "Workflow: {id: w, jobs: [{job: {id: a, type: Shell, shell: {script: 'echo $$home $${user}'}}}]}"
    assert _unknown(text, "RUN_TS", "job_template_version", "home", "user") == ["home", "user"]


def test_params_of_a_trigger_are_known() -> None:
    """A person may start what a signal starts otherwise."""
    text = """
Workflow:
  id: w
  signal_triggers:
    - {definitions: {s: {}}, params: {part: {type: STRING, value: x}}}
  jobs: [{job: {id: a, type: NoOp}}]
"""
    assert _unknown(text, "part", "prat") == ["prat"]


def test_a_subworkflow_takes_what_its_parent_is_given() -> None:
    """Unless its step is explicit; around any number of corners, and back."""
    sub = "Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: %s}}]}"
    leaf = "Workflow: {id: leaf, day: x, jobs: [{job: {id: a, type: NoOp}}]}"
    others = {"leaf": leaf, "middle": sub.replace("id: w,", "id: middle,") % "leaf"}
    assert _unknown(sub % "middle", "day", "dya", others=others) == ["dya"]
    explicit = "Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: leaf, explicit_params: true}}]}"
    assert _unknown(explicit, "day", others=others) == ["day"]
    assert _unknown(sub % "w", "day") == ["day"]


@pytest.mark.parametrize(
    "text",
    [
        "Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: gone}}]}",
        "Workflow: {id: w, which: x, jobs: [{subworkflow: {id: s, workflow_id: '${which}'}}]}",
        "Workflow: {id: w, v: '1', jobs: [{subworkflow: {id: s, workflow_id: leaf, version: '${v}'}}]}",
        "Workflow: {id: w, n: d, jobs: [{job: {id: a, type: NoOp, '!x': \"params.get('a' + n)\"}}]}",
    ],
)
def test_where_only_the_run_can_tell_no_name_is_wrong(text: str) -> None:
    """A subworkflow that is not there or that a param names, a name that is computed."""
    leaf = "Workflow: {id: leaf, day: x, jobs: [{job: {id: a, type: NoOp}}]}"
    assert _unknown(text, "whatever", others={"leaf": leaf}) == []


def test_an_expression_that_cannot_be_read_leaves_all_names_open() -> None:
    """A definition from before a check was stricter is started as it was; the run says what is wrong."""
    workflow = _workflow("Workflow: {id: w, '!x<long>': 1 + 1, jobs: [{job: {id: a, type: NoOp}}]}")
    broken = workflow.params["x"].model_copy(update={"expression": "1 +"})
    broken_workflow = workflow.model_copy(update={"params": {"x": broken}})
    assert known_to_workflow(broken_workflow, WORDS, lambda *_: None).is_open


def test_the_params_of_a_job_template_are_known() -> None:
    """A workflow's param of the same name changes them; where the template is gone, any name may be right."""
    params = {"limit": {"type": "LONG", "value": 5}, "at": text_param("${zone}")}
    words = _words(template("Load", params=params))
    workflow = load(LOADING, name="test", vocabulary=words).required().workflow
    assert known_to_workflow(workflow, words, lambda *_: None).unknown_among(["limit", "zone", "limt"]) == ["limt"]
    (step,) = workflow.steps
    assert known_to_step(step, workflow, words).unknown_among(["limit", "zone", "limt"]) == ["limt"]
    without = _words(template("Load", inherit_from={"Gone": "1"}))
    assert known_to_workflow(workflow, without, lambda *_: None).is_open


def test_a_step_knows_its_own_params() -> None:
    """Its config, what every step has, and what it refers to; not what other steps do."""
    workflow = _workflow("""
Workflow:
  id: w
  jobs:
    - job: {id: load, type: Shell, shell: {script: 'echo ${day}'}, limit: 5}
    - foreach: {id: loop, loop_params: {i: [1]}, jobs: [{job: {id: inner, type: NoOp, z: '${other}'}}]}
    - subworkflow: {id: sub, workflow_id: x}
""")
    load_step, loop, inner, sub = workflow.all_steps()
    assert known_to_step(load_step, workflow, WORDS).unknown_among(
        ["limit", "shell", "script", "day", "step_id", "lmit", "other"]
    ) == ["script", "lmit", "other"]
    assert known_to_step(loop, workflow, WORDS).unknown_among(["loop_params", "other"]) == ["other"]
    assert known_to_step(inner, workflow, WORDS).unknown_among(["other", "z", "i"]) == ["i"]
    assert known_to_step(sub, workflow, WORDS).unknown_among(["subworkflow_version", "n"]) == ["n"]


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        (KnownParams(frozenset({"day", "Limit"}), ("day", "Limit")), "Did you mean Limit?"),
        (KnownParams(frozenset({"limits", "limit_all"}), ("day",)), "Did you mean limits?"),
        (KnownParams(frozenset({"RUN_TS"})), "It declares no params."),
        (KnownParams(frozenset({"day", "zone"}), ("day", "zone")), "It declares day, zone."),
        (KnownParams(frozenset("abcdefghijklmn"), tuple("abcdefghijklmn")), ""),
    ],
)
def test_what_may_have_been_meant(known: KnownParams, hint: str) -> None:
    """The nearest of those that are declared, else the nearest at all, else a short list."""
    assert known.hint("limit") == hint


def test_nothing_is_looked_up_where_nothing_is_given() -> None:
    """Most starts have no params."""

    def never() -> KnownParams:
        raise AssertionError

    assert unknown_params("Workflow w", {}, never) == []


def test_the_refusal_names_each_of_them() -> None:
    """With what was probably meant, once."""
    first = UnknownParam("Workflow w", "dya", "Did you mean day?")
    second = UnknownParam("Workflow w", "dyaa", "Did you mean day?")
    error = refusal([first, second])
    assert isinstance(error, RequestInvalid)
    assert error.message == "Workflow w has no param dya. Workflow w has no param dyaa."
    assert error.remedy == "Did you mean day?"
    assert [one["param"] for one in error.context["unknown_params"]] == ["dya", "dyaa"]


IN_FILE = "Workflow: {{id: w, jobs: [{{job: {{id: a, type: SQL, sql: {{url: 'sqlite:///x', file: {path}}}}}}}]}}"


def test_names_in_files_are_known(tmp_path: Path) -> None:
    """As those of texts; where a file cannot be read here, no name can be called wrong."""
    files = ProjectFiles(tmp_path, tmp_path)
    (tmp_path / "load.sql").write_text("SELECT '${day}'")
    (tmp_path / "odd.sql").write_bytes(b"\xff")

    def unknown(path: str, given: StepFiles | None) -> list[str]:
        workflow = _workflow(IN_FILE.format(path=path))
        return known_to_workflow(workflow, WORDS, lambda *_: None, given).unknown_among(["day", "dya"])

    assert unknown("load.sql", files) == ["dya"]
    for path, given in (("load.sql", None), ("nope.sql", files), ("odd.sql", files), ("'${where}.sql'", files)):
        assert unknown(path, given) == []
