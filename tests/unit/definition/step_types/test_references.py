"""The texts that calve resolves: SQL, values and files."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import params

from calve.definition.step_types import STEP_TYPES, files_of, unresolved_references
from calve.definition.step_types.programs import parameters_files
from calve.definition.step_types.step_type import DYNAMIC

SPARK, SQL, NOTEBOOK, SHELL = (STEP_TYPES[name] for name in ("Spark", "SQL", "Notebook", "Shell"))


def config(**members: Any) -> dict[str, Any]:
    """Return a config map as a definition."""
    return {"type": "MAP", "value": params(**members)}


def found(step_type: Any, given: Any, result: Any = None, **workflow: Any) -> list[tuple[str, str]]:
    """Return the fields and messages that are told of a config map."""
    name, results = step_type.config, {} if result is None else {step_type.config: result}
    faults = unresolved_references(step_type, params(**{name: given}), results, params(**workflow).get)
    return [(field, error.message) for field, error in faults]


@pytest.mark.parametrize(
    ("given", "field", "place"),
    [
        (config(script="SELECT 1;\nSELECT '${ day }'"), "spark.script", "spark.script, line 2, column 9: ${ day }"),
        (config(audit=["SELECT true", "${x+1}"]), "spark.audit[1]", "spark.audit[1], line 1, column 1: ${x+1}"),
        (config(parameters=config(day="${ day}")), "spark.parameters.day", "spark.parameters.day, line 1, column 1"),
        (
            config(parameters={"type": "STRING_MAP", "value": {"a": "${"}}),
            "spark.parameters.a",
            "spark.parameters.a, line 1, column 1: ${",
        ),
        (config(merge=config(into="db.t", using="SELECT '${:x}'")), "spark.merge.using", "spark.merge.using, line 1"),
        (
            config(merge=config(when_matched={"type": "STRING_MAP", "value": {"n": "${ n}"}})),
            "spark.merge.when_matched.n",
            "spark.merge.when_matched.n, line 1, column 1",
        ),
        ({"type": "STRING_MAP", "value": {"script": "${ x}"}}, "spark.script", "spark.script, line 1, column 1"),
    ],
)
def test_a_brace_that_is_not_a_reference_is_reported(given: Any, field: str, place: str) -> None:
    """In statements, audits, merges and values, with its place."""
    [(where, message)] = found(SPARK, given)
    assert where == field
    assert message.startswith(place)
    assert message.endswith("is not a reference")


def test_what_may_hold_such_a_brace_is_left_alone() -> None:
    """What is escaped, refers to something, or is in another language; and what a reference is replaced by."""
    assert not found(SPARK, config(script="SELECT '$${ day }', '${day}'", function="${ x}"))
    assert not found(SHELL, {"type": "MAP", "value": params(script="echo ${HOME:-none}")})
    assert not found(SPARK, config(script="SELECT '${x}'"), {"script": "SELECT '${ what a value holds }'"})
    assert not found(SPARK, config(parameters=config(x="${x}")), {"parameters": {"x": "${ data }"}})
    assert not found(NOTEBOOK, config(parameters=config(n=1)))
    assert not [*unresolved_references(SPARK, {}, {}, params().get)]


LEFT = "SELECT 1,\n '${day}'"


@pytest.mark.parametrize(
    ("given", "workflow"),
    [
        (config(script="${job.query}"), {}),
        (config(script={"expression": "'x'"}), {}),
        ({"type": "MAP", "expression": "m"}, {}),
        (config(script=" ${query}"), {"query": "$other", "other": {"expression": "'x'"}}),
        (config(script=" ${query}"), {"query": "$query"}),
    ],
)
def test_a_statement_that_is_whole_a_value_must_be_resolved(given: Any, workflow: Any) -> None:
    """Nobody resolves what an expression or a step gives, and Spark would get it as it is."""
    [(field, message)] = found(SPARK, given, {"script": LEFT}, **workflow)
    assert field == "spark.script"
    assert message == "spark.script, line 2, column 3: ${day} remains in a text from an expression or a step"
    assert not found(SPARK, given, **workflow)
    assert not found(SPARK, given, {"script": "SELECT '$1'"}, **workflow)


def test_the_place_in_the_param_that_is_taken_whole_is_reported() -> None:
    """If that is where the brace is not a reference."""
    given = config(script="${query}")
    told = found(SPARK, given, {"script": "SELECT 1,\n '${ day}'"}, query="SELECT 1,\n '${ day}'")
    assert told == [("spark.script", "query, line 2, column 3: ${ day} is not a reference")]


def test_what_was_escaped_in_another_param_passes() -> None:
    """It was resolved there, and the brace was wanted."""
    escaped = {"query": "$other", "other": "SELECT 1,\n '$${day}'"}
    assert not found(SPARK, config(script="${query}"), {"script": LEFT}, **escaped)


def test_lists_and_maps_of_statements_are_looked_into() -> None:
    """Wherever the value comes from."""
    listed = {"type": "STRING_ARRAY", "expression": "a"}
    assert [field for field, _ in found(SPARK, config(audit=listed), {"audit": ["SELECT 1", "${x}"]})] == [
        "spark.audit"
    ]
    columns = config(merge=config(when_matched={"type": "STRING_MAP", "expression": "m"}))
    result = {"merge": {"when_matched": {"n": "s.${x}"}}}
    assert [field for field, _ in found(SPARK, columns, result)] == ["spark.merge.when_matched"]


def test_the_files_of_a_step_are_listed() -> None:
    """Those whose references are resolved, as far as their paths are known."""
    given = params(spark=config(file="${name}.sql", audit=["checks/a.sql", "SELECT * FROM db.sql", "${one}"]))
    known = files_of(SPARK, given, lambda text: text.replace("${name}", "copy") if text != "${one}" else DYNAMIC)
    assert [(file.field, file.path) for file in known] == [("file", "copy.sql"), ("audit[0]", "checks/a.sql")]
    assert [file.path for file in files_of(SPARK, params(spark=config(audit=" a.SQL ")), str)] == ["a.SQL"]
    assert not files_of(SPARK, params(spark=config(audit="SELECT 1", jar="x.jar")), str)
    assert not files_of(SPARK, {}, str)
    assert not files_of(SHELL, params(shell=config(file="x.sh")), str)
    written = {"type": "STRING_MAP", "value": {"file": "load.sql"}}
    assert [(file.path, file.holds) for file in files_of(SQL, params(sql=written), str)] == [("load.sql", "query")]
    assert not files_of(SQL, params(sql=config(file={"expression": "f"})), str)


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ("-f a.yaml --parameters_file 'b c.yaml' -k x", ["nb/a.yaml", "nb/b c.yaml"]),
        ("--parameters_file=a.yaml -fb.yaml", ["nb/a.yaml", "nb/b.yaml"]),
        ("-f s3://bucket/a.yaml --parameters_file", []),
        ("'", []),
        (["-f", "a.yaml"], ["nb/a.yaml"]),
        ({"type": "LONG_ARRAY", "value": [1]}, []),
        ({"type": "MAP", "value": params(parameters_file="a.yaml", k="x", f=1)}, ["nb/a.yaml"]),
        ({"type": "MAP", "value": params(**{"-f": ["a.yaml", "b.yaml"]})}, ["nb/a.yaml", "nb/b.yaml"]),
    ],
)
def test_papermills_files_of_parameters_are_among_them(arguments: Any, files: list[str]) -> None:
    """However its options are given; they are beside the notebook."""
    given = params(notebook=config(input_path="nb/report.ipynb", papermill_arguments=arguments))
    assert [file.path for file in files_of(NOTEBOOK, given, str)] == files


def test_the_files_beside_a_notebook_elsewhere_are_up_to_the_run() -> None:
    """In a repository, or at an address."""
    for more in ({"git_repo": "git@host:x"}, {"input_path": "s3://x/y.ipynb"}, {"input_path": {"expression": "x"}}):
        given = {"input_path": "x.ipynb", "papermill_arguments": "-f a.yaml", **more}
        assert not files_of(NOTEBOOK, params(notebook=config(**given)), str)


def test_papermills_options_are_told_from_their_values() -> None:
    """By their number, so that a copy can take the place of a file."""
    words = ["-p", "-f", "a", "--parameters_file=b", "-k", "c"]
    assert [*parameters_files(words)] == [(2, "", "a"), (3, "--parameters_file=", "b")]
