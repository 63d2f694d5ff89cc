"""``calve validate``, ``render`` and ``schema``."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from calve.cli import entry

GOOD = "Workflow:\n  id: good\n  n: 1\n  jobs:\n    - job: {id: a, type: NoOp, x: $n}\n"
BAD = """\
Workflow:
  id: bad
  jobs:
    - job: {id: a, type: NoOp, transition: [b]}
    - job: {id: b, type: NoOp, transition: [a]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_valid_definition_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its id and how many steps it has."""
    (folder / "w.yaml").write_text(GOOD)
    assert entry.run(["validate", "w.yaml"]) == 0
    assert capsys.readouterr().out == "w.yaml: ok good, 1 step\n"


def test_a_problem_is_shown_with_its_place_and_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1."""
    (folder / "w.yaml").write_text(BAD)
    assert entry.run(["validate", "w.yaml"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "w.yaml:4:12: error: DAG contains cycle: a -> b -> a  (Workflow.jobs[0].job)"
    assert said[1:] == ["    a ──▶ b", "    ▲     │", "    └─────┘"]


def test_a_hint_follows_its_problem(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After an arrow."""
    (folder / "w.yaml").write_text(GOOD.replace("NoOp", "NoOpp"))
    assert entry.run(["validate", "w.yaml"]) == 1
    assert "  → did you mean NoOp?" in capsys.readouterr().out.splitlines()


def test_problems_are_json_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that people see, too."""
    (folder / "w.yaml").write_text(BAD)
    (folder / "g.yaml").write_text(GOOD)
    assert entry.run(["validate", "w.yaml", "g.yaml", "--json"]) == 1
    found = _json(capsys)
    assert found["ok"] is False
    assert [file["ok"] for file in found["files"]] == [False, True]
    assert found["files"][1]["workflow_id"] == "good"
    problem = found["files"][0]["problems"][0]
    assert (problem["code"], problem["severity"], problem["line"], problem["column"]) == ("cycle", "error", 4, 12)


def test_a_folder_stands_for_its_definitions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no workflow is named and left out; Python counts if it uses the DSL."""
    (folder / "sub").mkdir()
    (folder / "sub" / "w.yml").write_text(GOOD)
    (folder / "x.json").write_text('{"a": 1}')
    (folder / "other.py").write_text("raise SystemExit")
    (folder / "w.py").write_text(
        "from calve.dsl import Workflow, noop\n"
        "with Workflow('one') as one:\n    noop('a')\n"
        "with Workflow('two'):\n    noop('a')\n"
    )
    assert entry.run(["validate", "."]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2] for line in said[:-1]] == [
        "ok good, 1 step",
        "ok one, 1 step",
        "ok two, 1 step",
        "not a workflow, left out",
    ]
    assert said[-1] == "3 of 3 definitions are valid"


def test_a_file_that_is_not_a_workflow_is_an_error_if_it_is_named(folder: Path) -> None:
    """Only in a folder it may stand by."""
    (folder / "x.json").write_text('{"a": 1}')
    assert entry.run(["validate", "x.json"]) == 1


def test_standard_input_is_a_file_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name is a dash, and its scripts are in the current folder."""
    (folder / "q.sql").write_text("SELECT 1")
    text = GOOD.replace("$n", "'$S3{q.sql}'")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert entry.run(["validate", "-"]) == 0
    assert capsys.readouterr().out == "-: ok good, 1 step\n"


@pytest.mark.parametrize("arguments", [["none.yaml"], ["empty"], ["plain.py"]])
def test_a_file_that_gives_nothing_is_refused(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a sentence each."""
    (folder / "empty").mkdir()
    (folder / "plain.py").write_text("x = 1\n")
    assert entry.run(["validate", *arguments]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_render_shows_yaml_that_is_a_definition_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was given."""
    (folder / "w.yaml").write_text(GOOD)
    assert entry.run(["render", "w.yaml", "-p", "n=5"]) == 0
    shown = capsys.readouterr().out
    assert "value: '5'" in shown
    (folder / "again.yaml").write_text(shown)
    assert entry.run(["validate", "again.yaml"]) == 0


def test_render_shows_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it would be stored."""
    (folder / "w.yaml").write_text(GOOD)
    assert entry.run(["render", "w.yaml", "--json"]) == 0
    assert _json(capsys)["workflow"]["steps"][0]["step"]["params"]["x"]["value"] == "1"


def test_render_refuses_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the first problem and how many more there are."""
    (folder / "w.yaml").write_text(BAD)
    assert entry.run(["render", "w.yaml", "--json"]) == 1
    error = _json(capsys)["error"]
    assert error["code"] == "definition_invalid"
    assert error["context"]["problems"][0]["code"] == "cycle"


def test_a_param_that_is_not_an_assignment_is_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it should be."""
    (folder / "w.yaml").write_text(GOOD)
    assert entry.run(["render", "w.yaml", "-p", "n"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_the_schema_is_a_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """For editors."""
    assert entry.run(["schema"]) == 0
    assert "$schema" in _json(capsys)


COPY = """\
Workflow:
  id: copying
  day: 20260301
  jobs:
    - job:
        id: copy
        type: Spark
        spark: {file: sql/copy.sql}
"""


def test_references_in_files_are_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the place in the definition, and the place in the file."""
    (folder / "w.yaml").write_text(COPY)
    (folder / "sql").mkdir()
    (folder / "sql" / "copy.sql").write_text("SELECT 1;\nSELECT '${dya}'")
    assert entry.run(["validate", "w.yaml"]) == 0
    said = capsys.readouterr().out
    assert "w.yaml:8:23: warning: spark.file refers to dya, which is not defined (sql/copy.sql:2:9)" in said
    assert "→ did you mean day?" in said
    (folder / "sql" / "copy.sql").write_text("SELECT '${ day }'")
    assert entry.run(["validate", "w.yaml"]) == 1
    said = capsys.readouterr().out
    assert "w.yaml:8:23: error: sql/copy.sql:1:9: ${ day } is not a reference" in said


def test_files_are_looked_for_in_the_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is warned of, and so is one that only lies beside the definition."""
    (folder / "flows").mkdir()
    (folder / "flows" / "w.yaml").write_text(COPY)
    assert entry.run(["validate", "flows/w.yaml"]) == 0
    assert "warning: spark.file: there is no file sql/copy.sql here" in capsys.readouterr().out
    (folder / "flows" / "sql").mkdir()
    (folder / "flows" / "sql" / "copy.sql").write_text("SELECT '${dya}'")
    assert entry.run(["validate", "flows/w.yaml"]) == 0
    said = capsys.readouterr().out
    assert "sql/copy.sql is next to the definition, but not in the project folder" in said
    assert "(sql/copy.sql:1:9)" in said
    (folder / "sql").mkdir()
    (folder / "sql" / "copy.sql").write_text("SELECT '${day}'")
    assert entry.run(["validate", "flows/w.yaml"]) == 0
    assert "warning" not in capsys.readouterr().out


def test_files_are_shown_with_their_values(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In place of their names."""
    (folder / "w.yaml").write_text(COPY)
    (folder / "sql").mkdir()
    (folder / "sql" / "copy.sql").write_text("SELECT '${day}'")
    assert entry.run(["render", "w.yaml", "-p", "day=5", "--json"]) == 0
    [wrapper] = _json(capsys)["workflow"]["steps"]
    assert wrapper["step"]["params"]["spark"]["value"] == {"script": {"type": "STRING", "value": "SELECT '5'"}}


def test_a_push_checks_files_where_they_are(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it goes to a server; what is wrong is not sent, and warnings are shown."""
    (folder / "w.yaml").write_text(COPY)
    assert entry.run(["push", "w.yaml"]) == 0
    assert "there is no file sql/copy.sql here" in capsys.readouterr().err
    assert entry.run(["push", "w.yaml", "--json"]) == 0
    assert [problem["code"] for problem in _json(capsys)["problems"]] == ["file_missing"]
    (folder / "sql").mkdir()
    (folder / "sql" / "copy.sql").write_text("SELECT '${}'")
    monkeypatch.setenv("CALVE_URL", "http://127.0.0.1:1")
    assert entry.run(["push", "w.yaml"]) == 1
    assert "sql/copy.sql:1:9: ${} is not a reference" in capsys.readouterr().out
