"""Edges in all their spellings."""

import pytest
from tests.unit.definition.forms.writing import Written, edges, written

from calve.definition.problems import Severity

C = "x > 1"


def wired(dag: str, *, first: str = "", last: str = "") -> Written:
    """Return a workflow of the jobs a, b, c and d with a dag; jobs a and d may have more keys."""
    return written(
        "Workflow:\n  id: w\n  jobs:\n"
        f"  - job: {{id: a, type: NoOp{first}}}\n"
        "  - job: {id: b, type: NoOp}\n"
        "  - job: {id: c, type: NoOp}\n"
        f"  - job: {{id: d, type: NoOp{last}}}\n" + (f"  dag: {dag}\n" if dag else "")
    )


@pytest.mark.parametrize(
    ("dag", "expected"),
    [
        ("", {}),
        ("parallel", {}),
        ("Parallel", {}),
        ("SEQUENTIAL", {"ab": "true", "bc": "true", "cd": "true"}),
        ("a -> b -> d", {"ab": "true", "bd": "true"}),
        ("['a->b', 'c -> d', b]", {"ab": "true", "cd": "true"}),
        ("{a: b}", {"ab": "true"}),
        ("{a: [b, c], b: [d], c: }", {"ab": "true", "ac": "true", "bd": "true"}),
        ("{a: ['IF x > 1 THEN b', OTHERWISE c]}", {"ab": C, "ac": "!((x > 1))"}),
        ("{a: 'if x > 1 then b -> d'}", {"ab": C, "bd": "true"}),
        ("{a: b -> c}", {"ab": "true", "bc": "true"}),
        ("{a: {IF x > 1: b -> d, otherwise: [c, d]}}", {"ab": C, "bd": "true", "ac": "!((x > 1))", "ad": "!((x > 1))"}),
        ("{a: {IF x > 1: [b -> d, c]}}", {"ab": C, "ac": C, "bd": "true"}),
        ("[a: {IF x > 1: b}, a: {OTHERWISE: c}]", {"ab": C, "ac": "!((x > 1))"}),
        ("[a: [IF x > 1: b, 'IF y THEN c', OTHERWISE d]]", {"ab": C, "ac": "y", "ad": "!((x > 1) || (y))"}),
        ("{a: [b, OTHERWISE c]}", {"ab": "true", "ac": "true"}),
        ("[a -> b -> c, b -> c, {a: b}]", {"ab": "true", "bc": "true"}),
        ("['a -> a']", {"aa": "true"}),
    ],
)
def test_each_spelling_gives_its_edges(dag: str, expected: dict[str, str]) -> None:
    """Words, chains, lists, maps, and branches as texts or as maps."""
    assert edges(wired(dag).steps) == {(pair[0], pair[1]): condition for pair, condition in expected.items()}


@pytest.mark.parametrize(
    ("dag", "code", "message"),
    [
        ("sequental", "dag_unknown", "'sequental' is not a dag"),
        ("5", "dag_unknown", "a dag is a word, a list or a map"),
        ("['a => b']", "chain_malformed", "this is not a chain of jobs"),
        ("a ->", "chain_malformed", "this is not a chain of jobs"),
        ("[[a, b]]", "chain_malformed", "this is not a chain of jobs"),
        ("[e]", "unknown_step", "there is no job e here"),
        ("[a -> e -> b]", "unknown_step", "there is no job e here"),
        ("{e: a}", "unknown_step", "there is no job e here"),
        ("{a: e}", "unknown_step", "there is no job e here"),
        ("{a: invalid value}", "transition_malformed", "'invalid value' is not a transition"),
        ("{a: [[b]]}", "transition_malformed", "a transition is a text or a map of IF"),
        ("{a: {WHEN x: b}}", "transition_malformed", "'WHEN x' is not a condition"),
        ("{a: {IF x: [5]}}", "chain_malformed", "what follows IF x is not a chain of jobs"),
        ("{a: {IF x: b c}}", "chain_malformed", "what follows IF x is not a chain of jobs"),
        ("{a: {OTHERWISE: b, IF x: c}}", "otherwise_not_last", "OTHERWISE must come last after a"),
        ("{a: [IF x THEN b, IF y THEN b]}", "edge_twice", "a -> b is given twice: if x, and if y"),
        ("[a -> b, {a: IF x THEN b}]", "edge_twice", "a -> b is given twice: if true, and if x"),
    ],
)
def test_each_mistake_is_told_apart(dag: str, code: str, message: str) -> None:
    """At its place, once."""
    found = wired(dag)
    assert found.said == [(code, message)]
    assert next(iter(found.problems)).line == 8


def test_the_nearest_job_is_named() -> None:
    """A job that is not there is usually one whose id was misspelt."""
    found = written("""
        Workflow:
          id: w
          jobs:
            - job: {id: extract, type: NoOp}
            - job: {id: load, type: NoOp}
          dag: [extrat -> load]
        """)
    assert [problem.hint for problem in found.problems] == ["did you mean extract?"]


def test_a_job_may_say_itself_what_it_waits_for() -> None:
    """In both spellings, one job or several, beside a dag."""
    found = wired("[a -> b]", last=", dependsOn: [b, c]")
    assert edges(found.steps) == {("a", "b"): "true", ("b", "d"): "true", ("c", "d"): "true"}
    assert edges(wired("", last=", depends_on: c").steps) == {("c", "d"): "true"}


def test_what_a_job_waits_for_must_be_a_job() -> None:
    """Neither a stranger nor something that is no id."""
    assert wired("", last=", dependsOn: [e, 5]").said == [
        ("unknown_step", "there is no job e here"),
        ("dependency_malformed", "depends_on of d must list the ids of jobs"),
    ]


def test_a_jobs_own_transition_wins_over_the_dag() -> None:
    """As in Maestro, with a warning where the two differ."""
    found = wired("sequential", first=", transition: [c]")
    assert found.codes == ["edge_unused"]
    assert [problem.severity for problem in found.problems] == [Severity.WARNING]
    assert found.node is not None
    assert edges(found.node.plain()["workflow"]["steps"]) == {
        ("a", "c"): "true",
        ("b", "c"): "true",
        ("c", "d"): "true",
    }


def test_a_transition_that_agrees_with_the_dag_is_fine() -> None:
    """So is an empty one, which says nothing."""
    assert edges(wired("[a -> b]", first=", transition: [b]").steps) == {("a", "b"): "true"}
    assert edges(wired("[a -> b]", first=", transition: []").steps) == {("a", "b"): "true"}
    assert edges(wired("[a -> b]", first=", transition: ['']").steps) == {("a", "b"): "true"}


def test_a_loop_has_a_dag_of_its_own() -> None:
    """Its jobs and those outside do not see one another."""
    found = written("""
        Workflow:
          id: w
          jobs:
            - job: {id: a, type: NoOp}
            - foreach:
                id: loop
                loop_params: {i: [1]}
                jobs:
                  - job: {id: b, type: NoOp}
                  - job: {id: c, type: NoOp}
                dag: [b -> c, b -> a]
          dag: [a -> loop]
        """)
    assert found.said == [("unknown_step", "there is no job a here")]
    assert found.node is not None
    steps = found.node.plain()["workflow"]["steps"]
    assert edges(steps) == {("a", "loop"): "true"}
    assert edges(steps[1]["foreach"]["steps"]) == {("b", "c"): "true"}
