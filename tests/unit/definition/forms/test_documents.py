"""Which form a document has, what stands beside the workflow, and where everything keeps its place."""

import json
from typing import Any

import pytest
from tests.unit.definition.forms.writing import FewTypes, written

from calve.definition.document import Mark, Node
from calve.definition.forms import canonical
from calve.definition.model import Definition
from calve.definition.problems import Problems
from calve.definition.validation import validated

STEP = {"step": {"id": "a", "type": "NoOp"}}


@pytest.mark.parametrize(
    "text",
    [
        "Workflow: {id: w, jobs: [job: {id: a, type: NoOp}]}",
        "workflow: {id: w, jobs: [job: {id: a, type: NoOp}]}",
        "{id: w, jobs: [job: {id: a, type: NoOp}]}",
        "{id: w, steps: [job: {id: a, type: NoOp}]}",
        "{id: w, steps: [step: {id: a, type: NoOp}]}",
        "{id: w, steps: [{id: a, type: NoOp}]}",
        "Workflow: {id: w, steps: [{id: a, type: NoOp}]}",
        "Workflow: {id: w, steps: [step: {id: a, type: NoOp}]}",
        '{"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}',
    ],
)
def test_each_form_means_the_same(text: str) -> None:
    """Whatever the words, one definition comes out."""
    assert written(text).plain == {"workflow": {"id": "w", "steps": [STEP]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Worklfow: {id: w, jobs: []}", "Worklfow looks like workflow"),
        ("Workflow: {id: w, jbos: []}", "jbos looks like jobs"),
        ("{id: w, step: []}", "step looks like steps"),
        ("Workflow: {id: w}", "this is not a workflow: it has neither jobs nor steps"),
        ("Workflow:", "this is not a workflow: it has neither jobs nor steps"),
        ("Workflow: 5", "this is not a workflow: it has neither jobs nor steps"),
        ("{a: 1}", "this is not a workflow: it has neither jobs nor steps"),
        ("[1]", "this is not a workflow: it has neither jobs nor steps"),
        ("5", "this is not a workflow: it has neither jobs nor steps"),
    ],
)
def test_what_has_no_form_is_told_which_forms_there_are(text: str, message: str) -> None:
    """Once, and nothing else is looked for."""
    found = written(text)
    assert found.node is None
    assert found.said == [("form_unknown", message)]
    assert "Maestro's YAML" in next(iter(found.problems)).hint


def test_jobs_and_steps_are_the_same_thing() -> None:
    """So a workflow has one of them."""
    found = written("{id: w, jobs: [job: {id: a, type: NoOp}], steps: [{id: b}]}")
    assert found.said == [("said_twice", "steps means the same as jobs, which is already given")]


def test_a_workflow_in_yaml_has_properties_among_its_keys() -> None:
    """Those that Maestro's YAML knows, and those that it does not."""
    found = written("""
        is_active: false
        git_info: {branch: main}
        Workflow:
          id: w
          name: W
          description: does w
          owner: me
          run_strategy: parallel
          workflow_concurrency: 5
          step_concurrency: 7
          instance_step_concurrency: 9
          time_trigger_disabled: true
          alerting: {emails: [me@example.com], pagerduty_config: {severity: error}}
          tags: [x]
          timeout: 2h
          criticality: high
          jobs: [job: {id: a, type: NoOp}]
        """)
    assert found.plain == {
        "properties": {
            "owner": "me",
            "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 5},
            "step_concurrency": 7,
            "time_trigger_disabled": True,
            "alerting": {"emails": ["me@example.com"], "pagerduty_config": {"severity": "ERROR"}},
        },
        "workflow": {
            "id": "w",
            "name": "W",
            "description": "does w",
            "instance_step_concurrency": 9,
            "tags": ["x"],
            "timeout": "2h",
            "criticality": "HIGH",
            "steps": [STEP],
        },
        "is_active": False,
        "git_info": {"branch": "main"},
    }


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("run_strategy: 5", {"rule": "PARALLEL", "workflow_concurrency": 5}),
        ("run_strategy: {rule: parallel}, workflow_concurrency: 5", {"rule": "PARALLEL", "workflow_concurrency": 5}),
        ("run_strategy: true", True),
        ("run_strategy: true, workflow_concurrency: 5", True),
        ("run_strategy: [x]", ["x"]),
    ],
)
def test_a_run_strategy_in_short(strategy: str, expected: Any) -> None:
    """A number stands for so many at once; what is no strategy is left to the model."""
    found = written(f"{{id: w, {strategy}, jobs: [job: {{id: a, type: NoOp}}]}}")
    assert found.plain["properties"] == {"run_strategy": expected}


@pytest.mark.parametrize(
    ("strategy", "code"),
    [("workflow_concurrency: 5", "concurrency_alone"), ("run_strategy: 5, workflow_concurrency: 5", "said_twice")],
)
def test_a_concurrency_belongs_to_one_strategy(strategy: str, code: str) -> None:
    """Maestro drops it without a word where it has none."""
    assert written(f"{{id: w, {strategy}, jobs: [job: {{id: a, type: NoOp}}]}}").codes == [code]


def test_properties_may_stand_beside_a_workflow_in_yaml() -> None:
    """But each is said once."""
    body = "Workflow: {id: w, owner: me, jobs: [job: {id: a, type: NoOp}]}"
    assert written(f"properties: {{run_strategy: sequential}}\n{body}").plain["properties"] == {
        "owner": "me",
        "run_strategy": {"rule": "SEQUENTIAL"},
    }
    assert written(f"properties: {{owner: you}}\n{body}").said == [
        ("said_twice", "owner is already given in properties")
    ]
    assert written(f"properties: 5\n{body}").plain["properties"] == 5


def test_a_description_stands_inside_or_beside() -> None:
    """Not both."""
    found = written("Description: x\nWorkflow: {id: w, description: y, jobs: [job: {id: a, type: NoOp}]}")
    assert found.said == [("said_twice", "the workflow already has a description")]
    bare = written("{Description: x, id: w, jobs: [job: {id: a, type: NoOp}]}")
    assert bare.workflow["description"] == "x"


def test_what_is_beside_a_workflow_in_yaml_must_mean_something() -> None:
    """The nearest key is named."""
    found = written("Triger: {cron: '@daily'}\nOwnership: me\nWorkflow: {id: w, jobs: [job: {id: a, type: NoOp}]}")
    assert found.said == [
        ("unknown_key", "Triger is not a known key next to a workflow"),
        ("unknown_key", "Ownership is not a known key next to a workflow"),
    ]
    assert next(iter(found.problems)).hint == "did you mean trigger?"


def test_a_document_may_not_be_deeper_than_it_can_be_walked() -> None:
    """It is refused before anything falls over."""
    node = Node("x", Mark(1, 1), "")
    for _ in range(5000):
        node = Node({"jobs": node}, Mark(1, 1), "")
    problems = Problems()
    assert canonical(node, problems, FewTypes()) is None
    assert [problem.code for problem in problems] == ["too_deep"]


def test_a_number_too_large_to_be_written_is_left_as_it_is() -> None:
    """What reads texts refuses it; what builds documents may not know better."""
    place, huge = Node(None, Mark(1, 1), ""), 10**5000
    problems = Problems()
    found = canonical(place.made({"id": huge, "!x": huge, "jobs": [{"job": {"id": "a"}}]}), problems, FewTypes())
    assert found is not None
    assert found.plain()["workflow"]["id"] == huge
    assert [problem.code for problem in problems] == ["expression_not_text"]


def test_a_mistake_that_the_model_finds_is_where_the_user_wrote_it() -> None:
    """Each part of the definition keeps its line, whatever shape it had."""
    found = written("""
        Trigger: {cron: 5}
        Workflow:
          id: w
          step_concurrency: many
          jobs:
            - job:
                id: a
                type: NoOp
                failure_mode: ignore
            - foreach:
                id: b
                concurrency: 1.5
                jobs:
                  - job: {type: NoOp}
                  - job: {id: c__d, type: NoOp}
        """)
    assert found.node is not None
    assert validated(found.node, found.problems) is None
    assert [(problem.line, problem.path) for problem in found.problems] == [
        (2, "Trigger.cron"),
        (5, "Workflow.step_concurrency"),
        (10, "Workflow.jobs[0].job.failure_mode"),
        (13, "Workflow.jobs[1].foreach.concurrency"),
        (15, "Workflow.jobs[1].foreach.jobs[0].job"),
        (16, "Workflow.jobs[1].foreach.jobs[1].job.id"),
    ]


def test_edges_and_params_keep_their_places() -> None:
    """A condition stands where the branch is written, a param where its value is."""
    found = written("""
        Workflow:
          id: w
          x<long>: 5
          jobs:
            - job: {id: a, type: NoOp}
            - job: {id: b, type: NoOp}
          dag:
            - a:
                IF x > 1: b
        """)
    assert found.node is not None
    condition = found.node.at(("workflow", "steps", 0, "step", "transition", "successors", "b"))
    assert (condition.value, condition.mark.line, condition.path) == ("x > 1", 10, 'Workflow.dag[0].a["IF x > 1"]')
    value = found.node.at(("workflow", "params", "x", "value"))
    assert (value.value, value.mark, value.key_mark) == (5, Mark(4, 12), Mark(4, 3))


def test_all_mistakes_are_found_at_once() -> None:
    """Not only the first."""
    found = written("""
        Trigger: {corn: '@daily'}
        Workflow:
          id: w
          timeuot: 5
          x<lnog>: 5
          y:
          jobs:
            - job: {id: a, type: NoOp, transition: [what is this]}
            - forech: {id: b}
            - foreach: {id: c, ranges: {i: {from: 1}}, jobs: [job: {id: d, type: NoOp, '!e': []}]}
          dag: [a -> cc]
        """)
    assert found.codes == [
        "unknown_key",
        "misspelt_key",
        "param_type_unknown",
        "param_without_value",
        "transition_malformed",
        "job_malformed",
        "range_malformed",
        "expression_not_text",
        "unknown_step",
    ]


def test_a_definition_is_a_form_of_itself() -> None:
    """What was pushed can be fetched, and pushed again."""
    found = written("""
        Trigger: {cron: '@daily', signal: {s: {match_params: {p: 1}}}, incremental: t}
        Workflow:
          id: w
          owner: me
          x: {a: b, c: {d: 1}}
          jobs:
            - job: {id: a, type: Spark, targets: [t], spark: {script: x}, signal_dependencies: {definitions: [s]}}
            - while: {id: b, condition: i < 3, params: {i: 0}, jobs: [job: {id: c, type: NoOp}], tags: [t]}
          dag: {a: IF x THEN b}
        """)
    definition = Definition.model_validate(found.plain)
    again = written(json.dumps(definition.as_json()))
    assert Definition.model_validate(again.plain) == definition
