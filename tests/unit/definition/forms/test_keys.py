"""Keys that are one slip away from a known one do not become params."""

import pytest
from tests.unit.definition.forms.writing import written

from calve.definition.forms.keys import misspelt, snake

KNOWN = ("failure_mode", "timeout", "name", "tags", "dag")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("failure_mod", "failure_mode"),
        ("failure_modes", "failure_mode"),
        ("failuer_mode", "failure_mode"),
        ("failure-mode", "failure_mode"),
        ("failureMode", "failure_mode"),
        ("Timeout", "timeout"),
        ("nmae", "name"),
        ("daag", "dag"),
        ("timeout", None),
        ("timeout1", None),
        ("tag5", None),
        ("tag", None),
        ("tagging", None),
        ("timeouts<string>", None),
        ("!timeouts", None),
        ("timeouts(constant)", None),
        ("fail_mode", None),
        ("eman", None),
    ],
)
def test_a_slip_is_one_edit(key: str, meant: str | None) -> None:
    """One letter more, less, other or swapped; never a number at the end, never a key that says it is a param."""
    assert misspelt(key, KNOWN) == meant


def test_humps_become_underscores() -> None:
    """Also after digits; what has none stays."""
    assert [snake(key) for key in ("sourceTable", "a1B", "already_so", "Type")] == [
        "source_table",
        "a1_b",
        "already_so",
        "type",
    ]


def test_a_misspelt_key_is_an_error_that_says_how_to_mean_a_param() -> None:
    """At the key, in the workflow and in each kind of job."""
    found = written("""
        Workflow:
          id: w
          onwer: me
          jobs:
            - job: {id: a, type: Spark, failure_mod: x, spakr: {script: x}}
            - foreach: {id: b, lop_params: {i: [1]}, jobs: [{job: {id: c, type: NoOp}}]}
        """)
    assert found.said == [
        ("misspelt_key", "onwer looks like owner"),
        ("misspelt_key", "failure_mod looks like failure_mode"),
        ("misspelt_key", "spakr looks like spark"),
        ("misspelt_key", "lop_params looks like loop_params"),
    ]
    first = next(iter(found.problems))
    assert (first.line, first.column, first.path) == (4, 3, "Workflow.onwer")
    assert first.hint == "write onwer<string> if you mean a param of that name"


def test_one_thing_is_said_once() -> None:
    """Two spellings of the same key are a mistake, not a choice."""
    found = written("""
        Workflow:
          id: w
          jobs:
            - subworkflow: {id: a, workflow_id: x, subworkflow_id: y}
        """)
    assert found.said == [("said_twice", "subworkflow_id means the same as workflow_id, which is already given")]


def test_an_empty_key_is_an_absent_one() -> None:
    """As in Maestro; only params need a value."""
    found = written("""
        Workflow:
          id: w
          description:
          jobs:
            - job: {id: a, type: NoOp, tags: , dependsOn: }
          dag:
        """)
    assert found.plain == {"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}
