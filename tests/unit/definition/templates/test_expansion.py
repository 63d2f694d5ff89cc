"""A template step is replaced by the steps of its template."""

import pytest
from tests.unit.definition.placing import only, placed
from tests.unit.definition.templates.makers import edges_of, expanded, noop, steps_of, template, text_param

from calve.definition.document import all_steps, entry
from calve.definition.problems import Problems
from calve.definition.step_types import StepTypes
from calve.definition.templates import JobTemplate, JobTemplates, expand, shipped
from calve.definition.validation import validated

PIECE = template("piece", steps=[noop("one", "two", "three"), noop("two"), noop("three")])


def _found(yaml: str, *templates: JobTemplate) -> Problems:
    return expanded(yaml, *templates)[1]


def _workflow(body: str, *, dag: str = "parallel") -> str:
    return f"Workflow:\n  id: w\n  jobs:\n{body}\n  dag: {dag}\n"


def test_a_document_without_templates_is_left_alone() -> None:
    """It is the same value."""
    document = placed({"workflow": {"id": "w", "steps": [noop("a")]}})
    assert expand(document, JobTemplates({}), Problems()) is document


def test_edges_lead_into_the_first_steps_and_out_of_the_last() -> None:
    """The conditions stay where they were."""
    yaml = _workflow(
        "    - job: {id: a, type: NoOp, transition: [IF x > 1 THEN t, OTHERWISE z]}\n"
        "    - template: {id: t, type: piece, transition: [IF y THEN z]}\n"
        "    - job: {id: z, type: NoOp}"
    )
    document, problems = expanded(yaml, PIECE)
    assert not problems.found
    assert edges_of(document) == {
        "a": {"t_one": "x > 1", "z": "!((x > 1))"},
        "t_one": {"t_two": "true", "t_three": "true"},
        "t_two": {"z": "y"},
        "t_three": {"z": "y"},
        "z": {},
    }


def test_templates_in_a_row_and_inside_each_other_are_tied_together() -> None:
    """A template may hold a template step."""
    inner = {"template": {"id": "in", "sub_type": "piece", "transition": {"successors": {"end": "true"}}}}
    outer = template("outer", steps=[inner, noop("end")])
    yaml = _workflow("    - template: {id: a, type: outer}\n    - template: {id: b, type: outer}", dag="sequential")
    document, problems = expanded(yaml, PIECE, outer)
    assert not problems.found
    edges = edges_of(document)
    assert edges["a_in_two"] == {"a_end": "true"}
    assert edges["a_end"] == {"b_in_one": "true"}
    assert edges["b_end"] == {}


def test_predecessors_are_rewritten_too() -> None:
    """Where they are given."""
    steps = [
        {"template": {"id": "t", "sub_type": "piece", "transition": {"successors": {"z": "true"}}}},
        noop("z", transition={"predecessors": ["t", "x"]}),
    ]
    problems = Problems()
    found = expand(placed({"workflow": {"id": "w", "steps": steps}}), JobTemplates.of([PIECE]), problems)
    assert steps_of(found)["z"]["transition"] == {"predecessors": ["t_two", "t_three", "x"]}


def test_templates_inside_loops_are_expanded_there() -> None:
    """And so are loops inside templates."""
    loop = {
        "foreach": {
            "id": "each",
            "params": {"loop_params": {"type": "MAP", "value": {"i": {"type": "LONG_ARRAY", "value": [1]}}}},
            "steps": [noop("body", params={"said": text_param("${word} ${i}")})],
        }
    }
    looping = template("looping", steps=[loop], params={"word": text_param(internal_mode="REQUIRED")})
    yaml = _workflow(
        "    - foreach:\n        id: f\n        params: {j: [1]}\n        jobs:\n"
        "          - template: {id: t, type: looping, word: hello}"
    )
    document, problems = expanded(yaml, looping)
    assert not problems.found
    assert list(steps_of(document)) == ["f", "t_each", "t_body"]
    assert steps_of(document)["t_body"]["params"]["word"]["value"] == "hello"
    assert "word" not in steps_of(document)["t_each"]["params"]


def test_references_between_the_steps_of_a_template_follow_their_new_ids() -> None:
    """In texts, expressions, edges and commits; the user's own texts are left alone."""
    steps = [
        noop("a", params={"mine": text_param("${user}")}),
        noop(
            "b",
            params={
                "text": text_param("${a.x} ${ab.x} $a a"),
                "code": {"type": "STRING", "expression": "a__x + params.getFromStep('a', 'x') + ba__x"},
                "ip_commit": {"type": "MAP", "value": {"capture_step": text_param("a")}},
                "list": {"type": "STRING_ARRAY", "value": ["${a.x}"]},
                "id": text_param("a"),
                "count": {"type": "LONG", "value": 3},
            },
        ),
    ]
    piece = template("piece", steps=steps)
    document, problems = expanded(_workflow("    - template: {id: t, type: piece, user: '${a.x}'}"), piece)
    assert not problems.found
    found = steps_of(document)
    assert found["t_a"]["params"]["user"]["value"] == "${a.x}"
    params = found["t_b"]["params"]
    assert params["text"]["value"] == "${t_a.x} ${ab.x} $a a"
    assert params["code"]["expression"] == "t_a__x + params.getFromStep('t_a', 'x') + ba__x"
    assert params["ip_commit"]["value"]["capture_step"]["value"] == "t_a"
    assert params["list"]["value"] == ["${t_a.x}"]
    assert params["id"]["value"] == "a"


def test_a_step_gets_the_params_it_names_and_those_that_these_name() -> None:
    """Nothing else: a text that means nothing in a step is not evaluated there."""
    steps = [
        noop("a", params={"out": text_param("${first}")}),
        noop("b", "c", params={"spark": {"type": "MAP", "value": {"branch": text_param("x")}}}),
        noop("c", params={"spark": {"type": "MAP", "mode": "CONSTANT", "value": {}}}),
        noop("d", transition={"successors": {"c": "second == '1'"}}),
    ]
    params = {
        "first": text_param("${second}"),
        "second": text_param("2", internal_mode="RESERVED"),
        "spark": {"type": "MAP", "internal_mode": "REQUIRED"},
        "unsaid": text_param(internal_mode="OPTIONAL"),
    }
    piece = template("piece", params=params, steps=steps)
    yaml = _workflow("    - template: {id: t, type: piece, spark: {script: x, branch: y}}")
    document, problems = expanded(yaml, piece)
    assert not problems.found
    found = steps_of(document)
    assert found["t_a"]["params"] == {
        "first": text_param("${second}"),
        "second": text_param("2", mode="CONSTANT"),
        "out": text_param("${first}"),
    }
    assert found["t_b"]["params"]["spark"]["value"] == {"script": text_param("x"), "branch": text_param("x")}
    assert found["t_c"]["params"]["spark"]["value"] == {}
    assert set(found["t_d"]["params"]) == {"second"}


def test_maps_of_the_template_and_of_the_user_are_merged_key_by_key() -> None:
    """Deeply; what is no map is replaced, an expression too."""
    inside = {
        "script": text_param("mine", internal_mode="PROVIDED"),
        "conf": {"type": "STRING_MAP", "value": {"a": "1"}},
    }
    params = {"spark": {"type": "MAP", "value": inside}, "more": {"type": "MAP", "value": {}}}
    own = {"spark": {"type": "MAP", "value": {}}, "more": {"type": "MAP", "value": {}}}
    piece = template("piece", params=params, steps=[noop("a", params=own)])
    yaml = _workflow(
        "    - template:\n        id: t\n        type: piece\n"
        "        spark: {conf: {b: '2'}, max_rows: 5}\n        '!more<pmap>': settings"
    )
    document, problems = expanded(yaml, piece)
    assert not problems.found
    found = steps_of(document)["t_a"]["params"]
    assert found["spark"]["value"] == {
        "script": text_param("mine"),
        "conf": {"type": "MAP", "value": {"a": text_param("1"), "b": text_param("2")}},
        "max_rows": {"type": "LONG", "value": 5},
    }
    assert found["more"] == {"type": "MAP", "value": {}}


def test_what_a_template_step_says_goes_to_its_steps() -> None:
    """To all of them, but signals to the ends."""
    steps = [noop("a", "b", tags=["own"]), noop("b", signal_outputs=[{"name": "inner"}])]
    yaml = _workflow(
        "    - template: {id: t, type: piece, failure_mode: IGNORE_FAILURE, tags: [x], timeout: 1h,"
        " signal_dependencies: [go], signal_outputs: [done]}"
    )
    document, problems = expanded(yaml, template("piece", steps=steps))
    assert not problems.found
    found = steps_of(document)
    assert found["t_a"]["tags"] == ["own"]
    assert found["t_b"]["tags"] == ["x"]
    assert {step["failure_mode"] for step in found.values()} == {"IGNORE_FAILURE"}
    assert found["t_a"]["signal_dependencies"] == [{"name": "go"}]
    assert found["t_b"]["signal_outputs"] == [{"name": "inner"}, {"name": "done"}]
    assert "signal_dependencies" not in found["t_b"]


def test_the_version_is_chosen_as_for_jobs() -> None:
    """By the step, else by the workflow's param."""
    second = template("piece", version="v2", steps=[noop("other")])
    yaml = "Workflow:\n  id: w\n  job_template_version: v2\n  jobs:\n    - template: {id: t, type: piece}\n"
    assert list(steps_of(expanded(yaml, PIECE, second)[0])) == ["t_other"]
    yaml = yaml.replace("type: piece", "type: piece, type_version: default")
    assert list(steps_of(expanded(yaml, PIECE, second)[0])) == ["t_one", "t_two", "t_three"]


JOB = template("single", step_type="Spark")


@pytest.mark.parametrize(
    ("template_step", "code", "message", "hint"),
    [
        ("type: pieces", "unknown_template", "there is no template pieces", "did you mean piece?"),
        (
            "type: piece, type_version: v7",
            "unknown_template",
            "there is no version v7 of the template piece",
            "one of default",
        ),
        ("type: single", "unknown_template", "single is a template of a single job", "write - job: {type: single, …}"),
        ("type: asking", "missing_field", "the template asking requires table", ""),
        ("type: asking, table: t, fixed: x", "reserved_param", "the template asking sets fixed itself", "remove it"),
        (
            "type: asking, table: t, tabel: x",
            "unused_param",
            "nothing in the template asking uses tabel",
            "did you mean table?",
        ),
        (
            "type: lost",
            "definition_invalid",
            "there is no template nowhere v1: lost default -> nowhere v1",
            "Push a template nowhere first.",
        ),
        ("type: round", "template_cycle", "a template contains itself: round -> round", ""),
    ],
)
def test_a_template_that_cannot_be_expanded_is_reported_with_what_was_meant(
    template_step: str, code: str, message: str, hint: str
) -> None:
    """At the template step."""
    asking = template(
        "asking",
        params={
            "table": text_param(internal_mode="REQUIRED"),
            "fixed": text_param("1", internal_mode="RESERVED"),
        },
        steps=[noop("a", params={"said": text_param("${table} ${fixed}")})],
    )
    lost = template("lost", inherit_from={"nowhere": "v1"}, steps=[noop("a")])
    around = template("round", steps=[{"template": {"id": "in", "sub_type": "round"}}])
    yaml = _workflow(f"    - template: {{id: t, {template_step}}}")
    problem = only(_found(yaml, PIECE, JOB, asking, lost, around))
    assert (problem.code, problem.message, problem.hint, problem.line) == (code, message, hint, 4)


def test_a_template_step_without_an_id_is_left_to_the_model() -> None:
    """So is a workflow that has no steps, or steps that are none."""
    problems = Problems()
    document = placed({"workflow": {"id": "w", "steps": [{"template": {"sub_type": "piece"}}, "x"]}})
    assert expand(document, JobTemplates.of([PIECE]), problems).plain()["workflow"]["steps"] == [
        {"template": {"sub_type": "piece"}}
    ]
    assert not problems.found


def _shipped(body: str) -> tuple[dict[str, object], Problems]:
    templates = shipped()
    document, problems = expanded(body, *templates)
    types = StepTypes(templates=JobTemplates.of(templates))
    steps = [step for _, step in all_steps(entry(document, "workflow"))]
    for step in steps:
        types.check(step, problems)
    types.check_references(steps, problems)
    assert validated(document, problems) is not None
    return document.plain(), problems


INCREMENTAL = """
Workflow:
  id: w
  {}
  jobs:
    - template:
        id: load
        type: incremental
        ip_capture: {{source_tables: [db.events], range_columns: [day]}}
        spark: {{script: "MERGE INTO db.t USING ${{relation}} s ON t.id = s.id"}}
        targets: [db.t]
"""


def test_the_incremental_template_captures_runs_and_commits() -> None:
    """Only the job gets what it names; the workflow runs strictly one instance after the other."""
    plain, problems = _shipped(INCREMENTAL.format(""))
    assert not problems.found
    assert plain["properties"] == {"run_strategy": {"rule": "STRICT_SEQUENTIAL"}}
    document, _ = expanded(INCREMENTAL.format(""), *shipped())
    assert edges_of(document) == {
        "load_capture": {"load_job": "true"},
        "load_job": {"load_commit": "true"},
        "load_commit": {},
    }
    job = steps_of(document)["load_job"]
    params = job["params"]
    assert params.keys() == {"relation", "spark", "targets"}
    assert (job["targets"], params["targets"]["value"]) == (["${targets}"], ["db.t"])
    assert params["relation"]["value"] == "${load_capture.relation}"


def test_a_run_strategy_of_the_workflow_is_kept() -> None:
    """One that runs instances in parallel gives a warning."""
    plain, problems = _shipped(INCREMENTAL.format("run_strategy: first_only"))
    assert not problems.found
    assert plain["properties"] == {"run_strategy": {"rule": "FIRST_ONLY"}}
    _, problems = _shipped(INCREMENTAL.format("run_strategy: 5"))
    assert only(problems).code == "run_strategy_unfit"
    assert only(problems).hint == "write run_strategy: strict_sequential"


def test_the_other_template_writes_audits_and_publishes() -> None:
    """All on one branch, in this order; the job's own map reaches only the writing step."""
    body = """
Workflow:
  id: w
  owner: me
  jobs:
    - template: {id: t, type: write_audit_publish, target_table: db.t, spark: {file: a.sql}, audit: SELECT true}
"""
    plain, problems = _shipped(body)
    assert not problems.found
    assert plain["properties"] == {"owner": "me"}
    document, _ = expanded(body, *shipped())
    found = steps_of(document)
    assert list(found) == ["t_prepare", "t_write", "t_audit", "t_publish"]
    assert "file" in found["t_write"]["params"]["spark"]["value"]
    assert all("file" not in found[name]["params"]["spark"]["value"] for name in found if name != "t_write")
