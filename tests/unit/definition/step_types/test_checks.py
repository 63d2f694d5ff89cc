"""A step is checked against what its type declares."""

from typing import Any

import pytest
from tests.unit.definition.placing import only, placed
from tests.unit.definition.step_types.steps import step, with_fields

from calve.definition.document import Mark, Node
from calve.definition.problems import Problem, Problems, Severity
from calve.definition.step_types import STEP_TYPES, Field, StepType, StepTypes
from calve.definition.step_types.step_type import MAPS, NUMBER, TEXT


def _found(node: Node, *, kind: str = "step") -> list[Problem]:
    problems = Problems()
    StepTypes().check(node, problems, kind=kind)
    return list(problems)


def _one(node: Node, *, kind: str = "step") -> Problem:
    (problem,) = _found(node, kind=kind)
    return problem


PROGRAMS = [f"spark.{name}" for name in ("script", "file", "application", "jar", "function", "merge")]
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("NoOp", {}),
    ("NoOp", {"anything": 5}),
    ("Sleep", {"sleep_seconds": 5}),
    ("Sleep", {"sleep_seconds": "${delay}"}),
    ("Shell", {"shell": {"command": "echo hi", "env": {"N": 1, "T": True}, "args": [1, 2]}}),
    ("Shell", {"shell": {"command": ["ls", "-l"], "success_codes": []}}),
    ("Python", {"python": {"callable": "pkg.mod:fn", "kwargs": {"n": 1, "tables": ["a"]}}}),
    ("SQL", {"sql": {"url": {"type": "SECRET", "value": "warehouse_url"}, "query": "SELECT 1", "fetch": "value"}}),
    ("Spark", {"spark": {"script": "${my_query}"}}),
    ("Spark", {"spark": {"jar": "a.jar", "main_class": "A", "conf": {"spark.sql.shuffle.partitions": 8}}}),
    ("Spark", {"spark": {"jar": "a.jar", "conf": {"spark.sql.variable.substitute": True}}}),
    ("Spark", {"spark": {"script": "x", "conf": {"spark.sql.variable.substitute": "false"}}}),
    ("Spark", {"spark": {"script": "x", "conf": {"type": "MAP", "expression": "m"}}}),
    ("Spark", {"spark": {"file": "${folder}/job.py"}}),
    ("Spark", {"spark": {"application": "jobs/merge"}}),
    ("Spark", {"spark": {"function": "jobs.daily:run", "args": [1], "parameters": {"day": 3}}}),
    ("Spark", {"spark": {"function": "${module}"}}),
    ("Spark", {"spark": {"merge": {"into": "db.t", "using": "db.s", "keys": ["id"]}, "publish": "commit"}}),
    (
        "Spark",
        {"spark": {"merge": {"into": "t", "using": "s", "keys": ["id"], "when_matched": {"n": "t.n + s.n"}}}},
    ),
    ("Spark", {"spark": {"script": "SELECT 1", "fetch": "${how}", "max_rows": "${n}"}}),
    ("Spark", {"spark": {"expression": "settings", "type": "MAP"}}),
    ("Spark", {"spark": {"type": "STRING_MAP", "value": {"script": "SELECT 1"}}}),
    ("Notebook", {"notebook": {"input_path": "a.ipynb", "papermill_arguments": "--log-output"}}),
    ("Java", {"java": {"jar": "a.jar", "main_class": "A"}}),
    ("Java", {"java": {"main_class": "A", "classpath": ["a.jar"]}}),
    ("Docker", {"docker": {"image": "alpine", "cpu": 0.5, "user": 1000}}),
    ("Http", {"http": {"url": "https://example.com", "timeout_seconds": 5, "auth": {"token": "${t}"}}}),
    ("Http", {"http": {"url": "x", "headers": {"type": "STRING_MAP", "value": {}}, "query": {}}}),
    ("Http", {"http": {"url": "x"}, "state_expr": {"type": "STRING", "expression": "'DONE'"}}),
    ("Kubernetes", {"kubernetes": {"image": "alpine", "cpu": "500m", "memory": "1Gi"}}),
    ("Approval", {"approval": {"message": "Publish?", "timeout": "2 days"}}),
    ("IpCapture", {"ip_capture": {"source_tables": ["membership_table"], "data_operations": ["append"]}}),
    ("IpCapture", {"ip_capture": {"source_tables": {"a": "x.t", "b": "y.t"}, "data_operations": ["${op}"]}}),
    ("IpCapture", {"ip_capture": {"source_tables": "${tables}", "initial": 123}}),
    ("IpCommit", {"ip_commit": {"capture_step": "capture"}}),
    ("ICDC", {"icdc": {"source_table": "a.b", "target_table": "c.d"}}),
]


@pytest.mark.parametrize(("name", "params"), GOOD)
def test_a_step_that_says_what_it_needs_has_no_problems(name: str, params: dict[str, Any]) -> None:
    """Literals of the accepted types, references and expressions are all fine."""
    assert not _found(step(name, **params))


WARNED: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "Shell",
        {},
        [("does_nothing", "a Shell step without shell.command, shell.script or shell.file does nothing")],
    ),
    (
        "Shell",
        {"shell": {"env": {"A": "b"}}},
        [("does_nothing", "a Shell step without shell.command, shell.script or shell.file does nothing")],
    ),
    ("Shell", {"script": "echo hi"}, []),
    (
        "Shell",
        {"shell": {"command": "x", "cpu": 2, "image": "python:3"}},
        [
            ("kubernetes_only", "shell.cpu has no effect: a Shell step does not run on Kubernetes"),
            ("kubernetes_only", "shell.image has no effect: a Shell step does not run on Kubernetes"),
        ],
    ),
    (
        "Notebook",
        {"notebook": {"input_path": "x"}, "kubernetes": {"image": "python:3", "env": {"A": "b"}, "mine": 1}},
        [
            ("kubernetes_only", "kubernetes.image has no effect: a Notebook step does not run on Kubernetes"),
            ("kubernetes_only", "kubernetes.env has no effect: a Notebook step does not run on Kubernetes"),
        ],
    ),
    ("NoOp", {"kubernetes": "production"}, []),
    ("Kubernetes", {"kubernetes": {"image": "x", "cpu": 1}}, []),
    ("Docker", {"docker": {"image": "x", "cpu": 1}}, []),
    (
        "Notebook",
        {"notebook": {"input_path": "x", "init_command": "pip install x"}},
        [
            (
                "prefix_takes_arguments",
                "notebook.init_command is a prefix of papermill's command line, which becomes its arguments",
            )
        ],
    ),
    *(
        ("Notebook", {"notebook": {"input_path": "x", "init_command": prefix}}, [])
        for prefix in ("pip install x &&", "pip install x;", "cd a\n", "", "A=b C='d e'", "${prepare}", "echo a | ")
    ),
]


@pytest.mark.parametrize(("name", "params", "wanted"), WARNED)
def test_what_looks_wrong_is_a_warning(name: str, params: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    """The definition is taken: Maestro takes it too."""
    found = _found(step(name, **params))
    assert [(problem.code, problem.message) for problem in found] == wanted
    assert all(problem.severity is Severity.WARNING for problem in found)


BAD: list[tuple[str, dict[str, Any], str, str, str]] = [
    (
        "Spark",
        {"spark": {"script": "x", "scirpt": "y"}},
        "unknown_field",
        "spark of a Spark step has no field scirpt",
        "did you mean script?",
    ),
    (
        "Spark",
        {"spark": {"script": ["a"]}},
        "wrong_type",
        "spark.script must be a text, not a list of texts",
        "SQL: one or more statements, separated by semicolons.",
    ),
    (
        "Notebook",
        {"notebook": {"input_path": "x", "git_branch": 1.5}},
        "wrong_type",
        "notebook.git_branch must be a text, not a number",
        "write it in quotes",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "max_rows": "10"}},
        "wrong_type",
        "spark.max_rows must be a whole number, not a text",
        "write it without quotes",
    ),
    ("Spark", {"spark": "x"}, "wrong_type", "spark must be a map, not a text", ""),
    (
        "Spark",
        {"spark": {"script": "x", "file": "y"}},
        "exclusive_fields",
        "spark.script and spark.file cannot be given together",
        "give one of script, file, application, jar, function or merge",
    ),
    (
        "Spark",
        {"spark": {}},
        "missing_field",
        f"a Spark step needs one of {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]}",
        "",
    ),
    (
        "Shell",
        {"shel": {"command": "x"}},
        "missing_field",
        "a Shell step needs one of shell.command, shell.script or shell.file",
        "name the map shell",
    ),
    (
        "Shell",
        {"command": "x"},
        "missing_field",
        "a Shell step needs one of shell.command, shell.script or shell.file",
        "move command into shell",
    ),
    ("Docker", {}, "missing_field", "a Docker step needs docker.image", "The image to run."),
    (
        "SQL",
        {"sql": {"connection": "w", "query": "x", "fetch": "row_s"}},
        "unknown_word",
        "sql.fetch must be none, value, row or rows, not 'row_s'",
        "did you mean rows?",
    ),
    (
        "IpCapture",
        {"ip_capture": {"source_tables": ["t"], "data_operations": ["append", "upsert"]}},
        "unknown_word",
        "ip_capture.data_operations must be append, overwrite or delete, not 'upsert'",
        "one of append, overwrite, delete",
    ),
    (
        "IpCapture",
        {"ip_capture": {"source_tables": ["t"], "max_files": 0}},
        "out_of_bounds",
        "ip_capture.max_files is 0; the minimum is 1",
        "",
    ),
    (
        "Spark",
        {"spark": {"file": "jobs/merge.py"}},
        "wrong_file",
        "spark.file is jobs/merge.py, which looks like a .py file",
        "write application: jobs/merge.py",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "conf": {"spark.sql.variable.substitute": "TRUE"}}},
        "wrong_value",
        "spark.conf: spark.sql.variable.substitute cannot be true, as calve resolves ${…} in SQL",
        "leave it out, or run an application or a jar",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "main_class": "A"}},
        "missing_field",
        "spark.main_class needs spark.jar",
        "",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "args": ["A"]}},
        "missing_field",
        "spark.args needs spark.application or spark.jar or spark.function",
        "",
    ),
    (
        "Spark",
        {"spark": {"function": "jobs.daily"}},
        "wrong_value",
        "spark.function is jobs.daily, which does not name a function",
        "write jobs.daily:run, or jobs/daily.py:run",
    ),
    (
        "Spark",
        {"spark": {"merge": {"into": "t", "using": "s"}}},
        "missing_field",
        "spark.merge needs keys",
        "The columns that identify a row.",
    ),
    (
        "Spark",
        {"spark": {"merge": {"into": "t", "using": "s", "keys": ["k"], "when_matched": "replace"}}},
        "unknown_word",
        "spark.merge.when_matched must be update, ignore or delete, not 'replace'",
        "one of update, ignore, delete",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "audit": "SELECT true"}},
        "missing_field",
        "spark.audit needs targets",
        "write targets: [db.table] next to the type",
    ),
    (
        "Shell",
        {"shell": {"command": "x", "fatal_codes": [3, 300]}},
        "out_of_bounds",
        "shell.fatal_codes is 300; the maximum is 255",
        "",
    ),
    (
        "Http",
        {"http": {"url": "x", "auth": {"user": "u"}}},
        "unknown_field",
        "http.auth has no field user",
        "did you mean username?",
    ),
    (
        "Http",
        {"http": {"url": "x", "headers": {"A": [1]}}},
        "wrong_type",
        "http.headers.A must be a text or a whole number, not a list of whole numbers",
        "Headers by name.",
    ),
    (
        "Spark",
        {"spark": {"script": "x", "packages": {"a": 1}}},
        "wrong_type",
        "spark.packages must be a list of texts, not a map",
        "Libraries to download, as group:artifact:version.",
    ),
    (
        "Sleep",
        {"sleep_seconds": -1},
        "out_of_bounds",
        "sleep_seconds is -1; the minimum is 0",
        "",
    ),
    (
        "IpCapture",
        {"ip_capture": {"source_tables": []}},
        "missing_field",
        "ip_capture.source_tables names no table",
        "",
    ),
    (
        "IpCapture",
        {"ip_capture": {"source_tables": ["a.t", "b.t"]}},
        "duplicate_alias",
        "two tables of ip_capture.source_tables are called t",
        "write source_tables as a map: {some_name: db.table, other_name: db.table}",
    ),
    (
        "IpCapture",
        {"ip_capture": {"source_tables": {"files": "a.t"}}},
        "duplicate_alias",
        "files cannot name a source table: it is an output of every capture",
        "write source_tables as a map: {some_name: db.table, other_name: db.table}",
    ),
    ("Sprak", {}, "unknown_step_type", "there is no step type Sprak", "did you mean Spark?"),
    (
        "Titus",
        {},
        "step_type_refused",
        "Titus is Netflix's own platform: use Docker, or Kubernetes on a cluster",
        "",
    ),
    (
        "foreach",
        {},
        "step_type_refused",
        "foreach is not the type of a job",
        "write it as a job of its own kind: - foreach: {id: …}",
    ),
]


@pytest.mark.parametrize(("name", "params", "code", "message", "hint"), BAD, ids=[item[3][:50] for item in BAD])
def test_a_mistake_is_named_with_what_was_meant(
    name: str, params: dict[str, Any], code: str, message: str, hint: str
) -> None:
    """One mistake, one problem: what is wrong, and what to do."""
    problem = _one(step(name, **params))
    assert (problem.code, problem.message, problem.hint) == (code, message, hint)


def test_all_mistakes_of_a_step_are_found_at_once() -> None:
    """The first one does not hide the others."""
    wrong = {"image": 1, "imgae": "x", "pull": "sometimes"}
    assert len(_found(step("Docker", docker=wrong))) == 3


def test_an_unknown_field_is_placed_at_its_key() -> None:
    """The mistake is the name, not the value."""
    value = Node("y", Mark(9, 20), "spark.scirpt", Mark(9, 5))
    written = placed({"type": "STRING", "value": "y"})
    spark = Node({"scirpt": Node(written.value, value.mark, value.path, value.key_mark)}, Mark(8, 5), "spark")
    config = Node({"type": placed("MAP"), "value": spark}, Mark(8, 5), "spark")
    params = Node({"spark": config}, Mark(7, 5), "")
    node = with_fields(Node({"type": placed("Spark"), "params": params}, Mark(6, 1), ""), sub_type="x")
    problem = _one(node)
    assert (problem.line, problem.column, problem.path) == (9, 5, "spark.scirpt")


def test_a_value_that_is_wrong_is_placed_at_itself() -> None:
    """The path leads to the item of the list."""
    node = step("IpCapture", ip_capture={"source_tables": ["t"], "data_operations": ["append", "x"]})
    assert _one(node).path.endswith("data_operations.value[1]")


def test_what_a_job_template_may_give_is_not_missed() -> None:
    """A step with a sub_type is checked for what it says only."""
    assert not _found(with_fields(step("Docker"), sub_type="our_image"))
    assert _one(with_fields(step("Docker", docker={"imag": "x"}), sub_type="our_image")).code == "unknown_field"


def test_a_step_without_a_type_or_with_a_broken_one_is_left_to_others() -> None:
    """The model says what is missing."""
    assert not _found(step(None))
    assert not _found(placed({"type": ["Spark"]}))
    assert not _found(placed("Spark"))


def test_a_param_that_is_malformed_is_left_to_others() -> None:
    """The model says what a param looks like."""
    broken = {"id": "s", "type": "Spark", "params": {"spark": {"type": "MAP", "value": {"script": "bare"}}}}
    assert not _found(placed(broken))
    unknown = {"id": "s", "type": "Sleep", "params": {"sleep_seconds": {"type": "LNG", "value": "x"}}}
    assert not _found(placed(unknown))


def test_the_composite_kinds_are_checked_by_their_params() -> None:
    """A subworkflow needs an id, a loop needs its params."""
    problem = _one(step(None), kind="subworkflow")
    assert problem.message == "a subworkflow step needs the param subworkflow_id"
    assert not _found(step(None, subworkflow_id="w", subworkflow_version=3), kind="subworkflow")
    wrong = step(None, loop_params={"i": 5})
    assert _one(wrong, kind="foreach").message.startswith("loop_params.i must be a list of texts")
    assert not _found(wrong, kind="while")
    texts = step(None, loop_params={"type": "STRING_MAP", "value": {"i": "x"}})
    assert _one(texts, kind="foreach").code == "wrong_type"
    assert not _found(step(None), kind="template")


def test_an_unknown_kind_is_left_to_others() -> None:
    """The model says which kinds there are."""
    assert not _found(step(None), kind="fore")


def test_nested_fields_may_be_required_and_bounded() -> None:
    """A map inside the config map is checked as deeply."""
    inner = (Field("a", TEXT, "The first.", required=True), Field("b", NUMBER, "The second.", maximum=2))
    own = StepType("Own", "Does it.", config="own", fields=(Field("deep", MAPS, "Deep.", fields=inner),))
    types = StepTypes(STEP_TYPES | {"Own": own})
    problems = Problems()
    types.check(step("own", own={"deep": {"a": "x", "b": 2.0}}), problems)
    assert not problems.found
    types.check(step("own", own={"deep": {"b": 1}}), problems)
    assert only(problems).message == "own.deep needs a"
    problems = Problems()
    types.check(step("own", own={"deep": {"a": "x", "b": 2.5}}), problems)
    assert only(problems).message == "own.deep.b is 2.5; the maximum is 2"


def test_only_what_writes_exactly_once_may_have_targets() -> None:
    """Any other step would leave them unheeded."""
    fields = {"targets": ["db.t"]}
    assert not _found(with_fields(step("Spark", spark={"script": "x", "publish": "commit"}), **fields))
    problem = _one(with_fields(step("NoOp"), **fields))
    assert problem.code == "targets_unsupported"
    assert problem.message == "a NoOp step cannot have targets: it does not write tables exactly once"
    assert problem.hint == "leave targets out, or write the tables in a Spark step"
    assert not _found(with_fields(step("NoOp"), targets=[]))
