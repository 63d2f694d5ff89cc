"""The files that steps read when they run: found, and their references checked before."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from calve.definition import Loaded, ProjectFiles, Severity, installed, load, rendered
from calve.definition.files import LARGEST, FoundFile
from calve.errors import RequestInvalid


class Files(dict[str, str]):
    """Files that are only names and texts."""

    def find(self, path: str) -> FoundFile | None:
        """Return the file; one cannot be read, and one lies elsewhere."""
        if path == "locked.sql":
            raise RequestInvalid("locked.sql cannot be read")
        return FoundFile(self[path], is_in_project=path != "beside.sql") if path in self else None


def loaded(spark: str, files: Any, more: str = "") -> Loaded:
    """Return what a workflow of a capture and a Spark step gives."""
    text = f"""
        Workflow:
          id: w
          dag: sequential
          day: 20260301
          folder: sql
          {more}
          jobs:
            - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [db.t]}}}}
            - job:
                id: copy
                type: Spark
                own: 1
                targets: [db.copied]
                spark: {spark}
            - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
    """
    return load(dedent(text), name="w.yaml", vocabulary=installed(), files=files)


def problems(result: Loaded) -> list[tuple[str, str]]:
    """Return the codes and messages of what was found, and see that it is told of the field's line."""
    assert {problem.line for problem in result.problems} <= {15}
    return [(problem.code, problem.message) for problem in result.problems]


def test_the_references_of_a_file_are_checked() -> None:
    """Those that something gives are fine; the path may have references of its own."""
    text = "SELECT '$day', '${own}', '${copy.own}', '$$x' FROM ${capture.icdc_table} -- ${capture__changed} ${step_id}"
    assert not problems(loaded("{file: '${folder}/copy.sql'}", Files({"sql/copy.sql": text})))
    assert not problems(loaded("{file: '${nobody}.sql', script: x}", Files()))[2:]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("\n '${dya}'", "param_not_given", "spark.file refers to dya, which is not defined (copy.sql:2:3)"),
        (
            "${capture.relatio}",
            "unknown_output",
            "spark.file refers to capture.relatio: step capture has no output relatio (copy.sql:1:1)",
        ),
        ("-- $S3{other.sql}", "param_not_given", "spark.file refers to S3, which is not defined (copy.sql:1:4)"),
        ("$day ${ dya }", "param_error", "copy.sql:1:6: ${ dya } is not a reference"),
        ("$dya ${ dya }", "param_error", "copy.sql:1:6: ${ dya } is not a reference"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported_with_its_place(text: str, code: str, message: str) -> None:
    """As it is of a text in the definition."""
    found = loaded("{file: copy.sql}", Files({"copy.sql": text}))
    assert (code, message) in problems(found)


def test_a_text_in_the_definition_has_its_place_too() -> None:
    """By the field, the line and the column."""
    found = problems(loaded('{script: "SELECT 1;\\n SELECT ${dya}", audit: ["${capture.x}"]}', None))
    assert ("param_not_given", "spark.script refers to dya, which is not defined (line 2, column 9)") in found
    found = problems(loaded('{script: "SELECT ${ day }", parameters: {x: "${"}}', None))
    assert [message for _, message in found] == [
        "spark.script, line 1, column 8: ${ day } is not a reference",
        "spark.parameters.x, line 1, column 1: ${ is not a reference",
    ]


def test_a_param_of_one_line_needs_no_place() -> None:
    """Its name is enough; of a longer one the line is told."""
    one, longer = loaded("{script: x}", None, "a: $dya"), loaded("{script: x}", None, 'a: "x\\n$dya"')
    assert [problem.message for problem in one.problems] == ["a refers to dya, which is not defined"]
    [problem] = longer.problems
    assert problem.message == "a refers to dya, which is not defined (line 2, column 1)"


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("none.sql", "file_missing", "spark.file: there is no file none.sql here"),
        ("locked.sql", "file_unreadable", "spark.file: locked.sql cannot be read"),
        (
            "beside.sql",
            "file_elsewhere",
            "spark.file: beside.sql is next to the definition, but not in the project folder",
        ),
    ],
)
def test_a_file_that_a_worker_may_not_find_is_warned_of(path: str, code: str, message: str) -> None:
    """It may be on another machine, or come to be."""
    found = loaded(f"{{file: {path}}}", Files({"beside.sql": "SELECT 1"}))
    assert problems(found) == [(code, message)]
    assert found.problems[0].severity is Severity.WARNING


def test_a_step_that_cannot_be_looked_into_has_no_files() -> None:
    """Its type is told of elsewhere, its map by the run."""
    assert not problems(loaded("{file: x.sql}", None))
    text = "{workflow: {id: w, jobs: [{job: {id: a, type: Nope}}]}}"
    found = load(text, name="w.yaml", vocabulary=installed(), files=Files())
    assert [problem.code for problem in found.problems] == ["unknown_step_type"]


def test_a_rendered_definition_shows_the_text_of_its_files() -> None:
    """Resolved as far as can be; what only the run can tell stays as it is written."""
    files = Files({"copy.sql": "SELECT '$day', '$$x'", "audit.sql": "SELECT '${capture.changed}', '$$x', '$day'"})
    found = loaded("{file: copy.sql, audit: audit.sql}", files).required()
    shown = rendered(found, {"day": 5}, installed(), files=files).as_json()
    spark = shown["workflow"]["steps"][1]["step"]["params"]["spark"]["value"]
    assert "file" not in spark
    assert spark["script"]["value"] == "SELECT '5', '$$x'"
    assert spark["audit"]["value"] == "SELECT '${capture.changed}', '$$x', '$day'"


def test_what_could_not_hold_the_text_shows_the_name() -> None:
    """One file among several audits, a file of parameters, a map that is an expression; a map of texts does hold it."""
    files = Files({"a.sql": "SELECT true", "days.yaml": "day: $day"})
    shown = rendered(loaded("{script: x, audit: [a.sql, SELECT 1]}", files).required(), {}, installed(), files=files)
    [_, copy, _] = shown.as_json()["workflow"]["steps"]
    assert copy["step"]["params"]["spark"]["value"]["audit"]["value"] == ["a.sql", "SELECT 1"]
    text = """{workflow: {id: w, steps: [
        {step: {id: a, type: Notebook, params: {notebook: {type: MAP, value: {
            input_path: {type: STRING, value: n.ipynb},
            papermill_arguments: {type: STRING, value: -f days.yaml}}}}}},
        {step: {id: b, type: SQL, params: {sql: {type: STRING_MAP, value: {url: x, file: a.sql}}}}}]}}"""
    definition = load(text, name="w.yaml", vocabulary=installed(), files=files).required()
    [a, b] = rendered(definition, {}, installed(), files=files).as_json()["workflow"]["steps"]
    assert a["step"]["params"]["notebook"]["value"]["papermill_arguments"]["value"] == "-f days.yaml"
    assert b["step"]["params"]["sql"]["value"] == {"url": "x", "query": "SELECT true"}


def test_a_path_that_is_not_a_reference_is_reported_once() -> None:
    """No file is looked for then, nor one whose path is a secret."""
    found = loaded("{file: '${ name }.sql'}", Files())
    assert problems(found) == [("param_error", "spark.file, line 1, column 1: ${ name } is not a reference")]
    assert not problems(loaded("{file: '${key}'}", Files(), "key<secret>: k"))


def test_a_reference_in_an_expression_has_no_place() -> None:
    """Its param is enough."""
    found = loaded("{script: x}", None, "'!a': dya + 1")
    assert [problem.message for problem in found.problems] == ["a refers to dya, which is not defined"]


def test_files_are_found_where_a_worker_would_look(tmp_path: Path) -> None:
    """In the project, else beside the definition; absolute paths are what they are."""
    project, beside = tmp_path / "project", tmp_path / "flows"
    for folder in (project, beside):
        folder.mkdir()
        (folder / "both.sql").write_text(folder.name)
    (beside / "one.sql").write_text("one")
    files = ProjectFiles(project, beside)
    assert files.find("both.sql") == FoundFile("project")
    assert files.find("one.sql") == FoundFile("one", is_in_project=False)
    assert files.find(str(beside / "one.sql")) == FoundFile("one")
    assert files.find("none.sql") is None
    assert files.find("") is None


@pytest.mark.parametrize("path", ["binary.sql", "large.sql", "~nobody-of-this-name/x.sql"])
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, path: str) -> None:
    """Whatever it is."""
    (tmp_path / "binary.sql").write_bytes(b"\xff")
    (tmp_path / "large.sql").write_text("-" * (LARGEST + 1))
    with pytest.raises(RequestInvalid, match=r"cannot be read|larger than"):
        ProjectFiles(tmp_path, tmp_path).find(path)
