"""A commit stands behind the work: no run commits a capture before, beside or around the steps that use it."""

from typing import Any

import pytest
from tests.unit.definition.placing import definition, placed

from calve.definition import Severity, installed, load
from calve.definition.captures.rows import SHARED, CapturedRows, Effect
from calve.definition.document import entry
from calve.definition.loader import Loaded

CAPTURE = "- job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.t]}}"
ROWS = "${capture.relation}"
MERGE = f"- job: {{id: merge, type: Spark, targets: [db.d], spark: {{script: 'INSERT INTO d SELECT * FROM {ROWS}'}}}}"
AUDIT = "- job: {id: audit, type: Spark, spark: {script: 'SELECT count(*) > 0 FROM ${capture.relation}'}}"
SHELL = "- job: {id: shell, type: Shell, shell: {script: 'run ${capture.icdc_table}'}}"
NOTHING = "- job: {id: nothing, type: NoOp}"
COMMIT = "- job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}"
SECOND = COMMIT.replace("id: commit", "id: second")


def loaded(*jobs: str, dag: str = "sequential", params: str = "x: 1") -> Loaded:
    """Read a workflow of some jobs."""
    lines = "\n".join(f"    {line}" for job in jobs for line in job.splitlines())
    text = f"Workflow:\n  id: w\n  {params}\n  dag: {dag}\n  jobs:\n{lines}\n"
    return load(text, name="w.yaml", vocabulary=installed())


def codes(*jobs: str, dag: str = "sequential", params: str = "x: 1") -> list[str]:
    """Return the codes of the problems of a workflow."""
    return [problem.code for problem in loaded(*jobs, dag=dag, params=params).problems]


def only(found: Loaded) -> tuple[str, str, str, list[str]]:
    """Return the only problem of a workflow, an error: its code, message, hint and drawing."""
    (one,) = found.problems
    assert one.severity is Severity.ERROR
    return one.code, one.message, one.hint, one.drawing.splitlines()


def test_a_commit_behind_the_work_is_accepted() -> None:
    """The usual pipeline, and one whose steps run side by side before the commit."""
    assert codes(CAPTURE, MERGE, COMMIT) == []
    assert codes(CAPTURE, MERGE, SHELL, COMMIT, dag="[capture -> merge -> commit, capture -> shell -> commit]") == []


def test_a_commit_before_the_work_is_refused_and_drawn() -> None:
    """The place is that of the capture that it names."""
    found = loaded(CAPTURE, COMMIT, MERGE)
    assert only(found) == (
        "commit_before_use",
        "commit commits what capture captured before merge uses it",
        "make merge lead to commit, not commit to merge",
        ["commit ✗ ──▶ merge"],
    )
    assert (found.problems[0].line, found.problems[0].column) == (7, 67)


def test_a_commit_beside_the_work_is_refused_and_drawn() -> None:
    """The two ways stand below each other."""
    assert only(
        loaded(
            CAPTURE,
            MERGE,
            COMMIT,
            dag="[capture -> merge, capture -> nothing, nothing -> commit]".replace(
                "capture -> nothing, nothing", "capture"
            ),
        )
    ) == (
        "commit_before_use",
        "commit may commit what capture captured before merge has used it",
        "add the edge merge -> commit",
        ["capture ──▶ commit ✗", "capture ──▶ merge"],
    )


def test_every_use_has_to_come_before_the_commit() -> None:
    """One of two is not enough."""
    code, message, *_ = only(
        loaded(CAPTURE, MERGE, SHELL, COMMIT, dag="[capture -> merge -> commit, capture -> shell]")
    )
    assert (code, message) == ("commit_before_use", "commit may commit what capture captured before shell has used it")


@pytest.mark.parametrize(
    "use",
    [
        "type: Shell, shell: {script: 'x ${capture.relation}'}",
        "type: Shell, shell: {script: 'x $capture__deletes_table'}",
        "type: Shell, table: '${capture.deletes_relation}', shell: {script: 'x $table'}",
        "type: Shell, '!table': \"params.getFromStep('capture', 'icdc_table')\", shell: {script: 'x $table'}",
        "type: Shell, '!table': \"params.getFromStep('capture', which)\", which: filter, shell: {script: 'x $table'}",
        "type: Shell, '!table': capture__filter, shell: {script: 'x $table'}",
        "type: Shell, shell: {script: x, env: {RANGE: '${capture.range_predicate}'}}",
        "type: Shell, shell: {script: 'x ${capture.to_snapshot_id}'}",
        "type: Python, python: {callable: 'a:b', args: ['--table', '${capture.icdc_table}']}",
        "type: Spark, targets: ['${capture.icdc_table}'], spark: {script: x, capture: mine}",
        "type: Spark, targets: [db.d], spark: {script: x, capture: '${capture.capture_id}'}",
        "type: NoOp, '!t<string>': \"params.nextUniqueId() + params.get('u')\", u: '$capture__relation'",
        "type: NoOp, signal_dependencies: [{name: s, match_params: {p: '${capture.icdc_table}'}}]",
        "type: NoOp, signal_outputs: [{name: s, params: {table: '${capture.icdc_table}'}}]",
    ],
)
def test_every_reference_to_the_rows_is_a_use(use: str) -> None:
    """Wherever it stands in the step, and however it is written."""
    job = f"- job: {{id: use, {use}}}"
    assert codes(CAPTURE, COMMIT, job) == ["commit_before_use"]
    assert codes(CAPTURE, job, COMMIT) == []


@pytest.mark.parametrize(
    "text",
    ["${capture.capture_id}", "${capture.records}", "${capture.changed}", "${capture.source_table}", "${capture.note}"],
)
def test_what_is_only_told_of_a_capture_is_no_use(text: str) -> None:
    """A message after the commit may name it."""
    capture = CAPTURE.replace("type:", "note: mine, type:")
    job = f"- job: {{id: tell, type: Shell, shell: {{script: 'echo {text}'}}}}"
    assert codes(capture, MERGE, COMMIT, job) == []


def test_a_param_of_another_step_passes_the_rows_on() -> None:
    """Through as many steps as it likes."""
    first = "- job: {id: first, type: NoOp, table: '${capture.icdc_table}'}"
    then = "- job: {id: then, type: NoOp, passed: '${first.table}'}"
    last = "- job: {id: last, type: Shell, shell: {script: 'x ${then.passed}'}}"
    code, message, *_ = only(loaded(CAPTURE, first, then, COMMIT, last))
    assert (code, message) == ("commit_before_use", "commit commits what capture captured before last uses it")
    assert codes(CAPTURE, first, then, last, COMMIT) == []


def test_one_of_several_tables_is_enough() -> None:
    """By the name that it has in the capture, also where only the run tells it."""
    many = CAPTURE.replace("[db.t]", "{plays: db.p, titles: db.t}")
    job = "- job: {id: job, type: Shell, shell: {script: 'x ${capture.plays.relation}'}}"
    assert codes(many, COMMIT, job) == ["commit_before_use"]
    told = job.replace("relation", "records")
    assert codes(many, COMMIT, told) == ["capture_unused"]
    assert codes(many, COMMIT, job.replace("plays.relation", "plays")) == ["commit_before_use"]
    later = CAPTURE.replace("[db.t]", "['${x}']")
    assert codes(later, COMMIT, job, params="x: db.plays") == ["commit_before_use"]
    assert codes(later, MERGE, COMMIT, told, params="x: db.plays") == []
    ranged = CAPTURE.replace("[db.t]", "[db.t], range_columns: [day]")
    assert codes(ranged, COMMIT, job.replace("plays.relation", "day_lower")) == ["commit_before_use"]


def test_a_loop_is_used_as_a_whole() -> None:
    """What stands in it, and what it goes through."""
    loop = """- foreach:
    id: days
    loop_params: {day: [a, b]}
    jobs:
      - job: {id: write, type: Shell, shell: {script: 'x ${capture.relation}'}}"""
    assert codes(CAPTURE, loop, COMMIT) == []
    assert only(loaded(CAPTURE, COMMIT, loop)) == (
        "commit_before_use",
        "commit commits what capture captured before write (in days) uses it",
        "make days lead to commit, not commit to days",
        ["commit ✗ ──▶ days"],
    )
    through = loop.replace("day: [a, b]", "'!day<array<string>>': \"capture__relation.split('x')\"")
    assert codes(CAPTURE, COMMIT, through.replace("${capture.relation}", "$day")) == ["commit_before_use"] * 2
    rounds = """- while:
    id: rounds
    loop_params: {n: 0}
    condition: n < 2 && capture__relation != ''
    jobs:
      - job: {id: count, type: NoOp, '!n<long>': n + 1}"""
    assert codes(CAPTURE, COMMIT, rounds) == ["commit_before_use"]


def test_a_commit_inside_a_loop_does_not_commit_what_was_captured_outside() -> None:
    """Its first iteration would do so for all."""
    loop = f"""- foreach:
    id: days
    loop_params: {{day: [a, b]}}
    dag: sequential
    jobs:
      {MERGE}
      {COMMIT}"""
    assert only(loaded(CAPTURE, loop)) == (
        "commit_in_loop",
        "commit would commit what capture captured in the first iteration of days, for all of them",
        "move commit out of days, and add the edge days -> commit",
        [],
    )
    inside = loop.replace("jobs:", f"jobs:\n      {CAPTURE}")
    assert codes(inside) == []
    rows = "params.getFromForeach('days', 'capture', 'relation')"
    later = f"- job: {{id: all, type: Shell, '!t<array<string>>': \"{rows}\", shell: {{script: x}}}}"
    assert codes(inside, later) == ["commit_before_use"]
    assert codes(later, inside) == []
    assert codes(inside.replace(COMMIT, NOTHING), COMMIT) == ["capture_later"]


def test_a_subworkflow_is_waited_for() -> None:
    """One that is not may still run when the capture is committed."""
    child = "- subworkflow: {id: child, workflow_id: other, SOURCE: '${capture.icdc_table}'}"
    assert codes(CAPTURE, child, COMMIT) == []
    assert codes(CAPTURE, COMMIT, child) == ["commit_before_use"]
    assert only(loaded(CAPTURE, child.replace("id: child", "id: child, sync: false"), COMMIT)) == (
        "commit_before_use",
        "commit does not wait for the work of child, which uses what capture captured",
        "remove sync: false from child",
        ["child ──▶ commit ✗"],
    )


def test_two_commits_in_one_run_are_refused() -> None:
    """One after the other, or side by side; on branches that exclude each other they are fine."""
    code, message, hint, drawing = only(loaded(CAPTURE, MERGE, COMMIT, SECOND))
    assert (code, message) == ("commit_twice", "commit and second both commit what capture captured in one run")
    assert hint == "remove one of them, or put them on branches of which only one runs: IF … and OTHERWISE"
    assert drawing == ["capture ──▶ merge ──▶ commit ──▶ second ✗"]
    beside = loaded(CAPTURE, MERGE, COMMIT, SECOND, dag="[capture -> merge, merge -> commit, merge -> second]")
    assert only(beside)[3] == ["capture ──▶ merge ──▶ commit", "capture ──▶ merge ──▶ second ✗"]
    both = "[capture: [IF x > 5 THEN merge, IF x < 9 THEN shell], merge -> commit, shell -> second]"
    assert "commit_twice" in codes(CAPTURE, MERGE, SHELL, COMMIT, SECOND, dag=both)
    for one, other in (("IF x > 5", "OTHERWISE"), ("IF x > 5", "IF x <= 5"), ("IF x == 1", "IF x == 2")):
        dag = f"[capture: [{one} THEN merge, {other} THEN shell], merge -> commit, shell -> second]".replace(
            "OTHERWISE THEN", "OTHERWISE"
        )
        assert codes(CAPTURE, MERGE, SHELL, COMMIT, SECOND, dag=dag) == []


def test_a_path_around_the_work_is_refused_and_drawn() -> None:
    """With the condition under which it is gone."""
    dag = "[capture: {IF x > 5: merge -> commit, OTHERWISE: nothing -> commit}]"
    assert only(loaded(CAPTURE, MERGE, NOTHING, COMMIT, dag=dag)) == (
        "commit_around_use",
        "a run can reach commit without merge: what capture captured would be skipped",
        "remove the edge nothing -> commit, or make every path to commit pass through merge",
        ["capture ──[!((x > 5))]─▶ nothing ──▶ commit ✗"],
    )


def test_branches_with_a_use_each_are_accepted() -> None:
    """Whichever is gone, the rows are used."""
    dag = "[capture: {IF x > 5: merge -> commit, OTHERWISE: shell -> commit}]"
    assert codes(CAPTURE, MERGE, SHELL, COMMIT, dag=dag) == []


@pytest.mark.parametrize(
    "reading", [AUDIT, SHELL.replace("id: shell", "id: audit"), AUDIT.replace("SELECT", "WITH a AS (SELECT 1) SELECT")]
)
def test_a_step_that_only_looks_does_not_stand_for_one_that_writes(reading: str) -> None:
    """Nor does one of which nobody knows whether it writes, if it runs in any case."""
    dag = "[capture -> audit, audit: {IF x > 5: merge -> commit, OTHERWISE: commit}]"
    code, message, *_ = only(loaded(CAPTURE, reading, MERGE, COMMIT, dag=dag))
    assert (code, message.partition(":")[0]) == ("commit_around_use", "a run can reach commit without merge")


def test_a_step_that_writes_besides_is_enough() -> None:
    """Rows that left may be removed by a step of its own, which does not always run."""
    deletes = MERGE.replace("id: merge", "id: deletes").replace("relation", "deletes_relation")
    dag = "[capture -> merge, merge: {IF x > 5: deletes -> commit, OTHERWISE: commit}]"
    assert codes(CAPTURE, MERGE, deletes, COMMIT, dag=dag) == []


def test_where_all_only_read_any_of_them_is_enough() -> None:
    """What they found may be all that is wanted."""
    assert codes(CAPTURE, AUDIT, COMMIT) == []
    dag = "[capture: {IF x > 5: audit -> commit, OTHERWISE: nothing -> commit}]"
    assert codes(CAPTURE, AUDIT, NOTHING, COMMIT, dag=dag) == ["commit_around_use"]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("changed", []),
        ("params.getFromStep('capture', 'changed') == true", []),
        ("capture__changed", []),
        ("records > 0", []),
        ("rows >= 1", []),
        ("files != 0", []),
        ("0 < bytes", []),
        ("records > 1", ["commit_around_use"]),
        ("records >= 2", ["commit_around_use"]),
        ("records != 1", ["commit_around_use"]),
        ("records > x", ["commit_around_use"]),
        ("pending", ["commit_around_use"]),
        ("changed != 'x'", ["commit_around_use"]),
        ("x > 0", ["commit_around_use"]),
        ("params.getFromStep('capture', 'records') > 0", []),
        ("Math.abs(x) > 1", ["commit_around_use"]),
        ("1 > 2", ["commit_around_use"]),
        ("x__y > 0", ["commit_around_use"]),
    ],
)
def test_where_nothing_changed_nothing_can_be_lost(condition: str, found: list[str]) -> None:
    """A way around the work that is gone only then is accepted."""
    dag = f'[capture: ["IF {condition} THEN merge", OTHERWISE nothing], merge -> commit, nothing -> commit]'
    jobs = [CAPTURE.replace("]}", "], when_unchanged: run}"), MERGE, NOTHING, COMMIT]
    assert [code for code in codes(*jobs, dag=dag) if code.startswith("co")] == found


def test_rows_that_left_are_not_among_the_records() -> None:
    """So of a capture of deletes, no record does not mean that nothing changed."""
    dag = "[capture: [IF records > 0 THEN merge, OTHERWISE nothing], merge -> commit, nothing -> commit]"
    deleting = CAPTURE.replace("[db.t]", "[db.t], data_operations: [append, delete]")
    assert codes(deleting, MERGE, NOTHING, COMMIT, dag=dag) == ["commit_around_use"]
    assert codes(CAPTURE.replace("[db.t]", "[db.t], data_operations: [append]"), MERGE, NOTHING, COMMIT, dag=dag) == []


IS_DONE = "params.getFromStep('merge', 'MAESTRO_STEP_STATUS')"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"{IS_DONE} == 'SUCCEEDED'", []),
        (f"{IS_DONE} != 'UNSATISFIED'", []),
        ("x > 5", []),
        ("x > 6", ["commit_around_use"]),
        (f"{IS_DONE} != 'FATALLY_FAILED'", ["commit_around_use"]),
        (f"{IS_DONE} != 'NOT_CREATED'", ["commit_around_use"]),
    ],
)
def test_what_is_asked_twice_has_one_answer(condition: str, found: list[str]) -> None:
    """A param of the workflow, or how a step ended."""
    dag = f'[capture: [IF x > 5 THEN merge, nothing], merge -> nothing, nothing: ["IF {condition} THEN commit"]]'
    assert codes(CAPTURE, MERGE, NOTHING, COMMIT, dag=dag) == found
    own = NOTHING.replace("type:", "x: 3, type:")
    hidden = codes(CAPTURE, MERGE, own, COMMIT, dag=dag)
    assert hidden == (["commit_around_use"] if condition.startswith("x") else found)


def test_a_step_that_may_not_have_begun_is_not_over() -> None:
    """How it ended says nothing to a step that does not wait for it."""
    way = f"nothing: [\"IF {IS_DONE} != 'UNSATISFIED' THEN commit\"]"
    dag = f"[capture: [IF x > 5 THEN merge, nothing], merge -> commit, {way}]"
    assert codes(CAPTURE, MERGE, NOTHING, COMMIT, dag=dag) == ["commit_around_use"]
    ended = dag.replace("!= 'UNSATISFIED'", "== 'SUCCEEDED'")
    assert codes(CAPTURE, MERGE, NOTHING, COMMIT, dag=ended) == []


def test_uses_in_two_loops_are_told_apart() -> None:
    """One may write and the other writes, in the same run."""
    loops = [
        f"- foreach:\n    id: {name}\n    loop_params: {{i: [1]}}\n    jobs:\n      {job}"
        for name, job in (("one", MERGE), ("two", SHELL))
    ]
    assert codes(CAPTURE, *loops, COMMIT) == []
    dag = "[capture -> two, two: {IF x > 5: one -> commit, OTHERWISE: commit}]"
    assert codes(CAPTURE, *loops, COMMIT, dag=dag) == ["commit_around_use"]


def test_of_too_many_questions_the_answers_are_not_tried() -> None:
    """Then each step may answer them in its own way."""
    names = [f"p{number}" for number in range(SHARED + 1)]
    params = "\n  ".join(f"{name}: 1" for name in names)
    asked = " && ".join(f"{name} > 5" for name in names)
    dag = f"[capture: [IF {asked} THEN merge, nothing], merge -> nothing, nothing: [IF {asked} THEN commit]]"
    assert codes(CAPTURE, MERGE, NOTHING, COMMIT, dag=dag, params=params) == ["commit_around_use"]


def test_the_talk_with_the_commit_at_the_end_is_accepted() -> None:
    """Both the normal workflow and its second run use the capture; the run sees to which of them succeeded."""
    child = "- subworkflow: {id: NAME, workflow_id: demo.pipeline, SOURCE_TABLE: '${capture.icdc_table}'}"
    failed = "params.getFromStep('normal', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'"
    jobs = (
        CAPTURE,
        child.replace("NAME", "normal, failure_mode: IGNORE_FAILURE"),
        NOTHING,
        "- subworkflow: {id: recovery, workflow_id: example.recovery.wf}",
        child.replace("NAME", "re_run"),
        "- job: {id: end, type: NoOp}",
        COMMIT,
    )
    branch = f'nothing: {{"IF {failed}": recovery -> re_run -> end, OTHERWISE: end}}'
    assert codes(*jobs, dag=f"[capture -> normal -> nothing, {branch}, end -> commit]") == []


def test_a_commit_comes_after_its_capture_on_every_way() -> None:
    """Else there is nothing that it could commit."""
    dag = "[nothing: {IF x > 5: capture -> merge -> commit, OTHERWISE: commit}]"
    assert only(loaded(NOTHING, CAPTURE, MERGE, COMMIT, dag=dag)) == (
        "capture_later",
        "a run can reach commit without capture, whose capture it commits",
        "remove the edge nothing -> commit, or make every path to commit pass through capture",
        ["nothing ──[!((x > 5))]─▶ commit ✗"],
    )
    given = COMMIT.replace("capture_step: capture", "capture_step: capture, capture: '${capture.capture_id}'")
    assert codes(given, CAPTURE) == ["capture_later"]


def test_a_commit_that_is_given_another_capture_is_refused() -> None:
    """It would commit what its step did not capture."""
    other = CAPTURE.replace("id: capture", "id: other")
    mixed = COMMIT.replace("capture_step: capture", "capture_step: capture, capture: '${other.capture_id}'")
    own = COMMIT.replace("capture_step: capture", "capture_step: other").replace("id: commit", "id: own")
    shell = SHELL.replace("${capture.icdc_table}", "${capture.icdc_table} ${other.icdc_table}")
    code, message, hint, _ = only(loaded(CAPTURE, other, shell, mixed, own))
    assert (code, message) == ("capture_differs", "commit names the step capture, but is given the capture of other")
    assert hint == "write capture_step: other, or leave capture out"


def test_a_commit_whose_step_only_the_run_tells_is_known_by_its_capture() -> None:
    """As far as that is written."""
    dynamic = COMMIT.replace("capture_step: capture", "capture_step: '${x}', capture: '${capture.capture_id}'")
    assert "commit_before_use" in codes(CAPTURE, dynamic, MERGE, params="x: capture")
    unknown = dynamic.replace("${capture.capture_id}", "${x}")
    assert codes(CAPTURE, MERGE, unknown, params="x: capture") == []


def test_rows_that_nothing_reads_are_warned_of() -> None:
    """Someone may want to begin from now on; what stands in a file is not known."""
    found = loaded(CAPTURE, COMMIT)
    (warning,) = found.problems
    assert (warning.code, warning.severity, found.definition is None) == ("capture_unused", Severity.WARNING, False)
    assert warning.message == "no step uses what capture captured: commit commits it unread"
    file = "- job: {id: job, type: Spark, spark: {file: job.sql}}"
    assert codes(CAPTURE, file, COMMIT) == []
    assert codes(CAPTURE, file.replace("file: job.sql", "script: x"), COMMIT) == ["capture_unused"]


OLDER = "- job: {id: old, type: ICDC, icdc: {source_table: db.t, target_table: db.change}}"
READ = "- job: {id: read, type: Spark, spark: {script: 'INSERT INTO d SELECT * FROM `db`.change'}}"
CLOSE = COMMIT.replace("capture_step: capture", "capture_step: old")


def test_the_older_form_is_used_by_the_name_of_its_table() -> None:
    """Or by reference, as any capture; nothing needs to be said of its commit."""
    assert codes(OLDER, READ) == []
    assert codes(OLDER) == []
    assert codes(OLDER, READ, CLOSE) == []
    assert codes(OLDER, CLOSE, READ) == ["commit_before_use"]
    assert codes(OLDER, CLOSE, READ.replace("`db`.change", "${old.relation}")) == ["commit_before_use"]
    assert codes(OLDER, CLOSE, READ.replace("`db`.change", "db.change2")) == []
    by_list = "- job: {id: read, type: Shell, tables: [a, db.change], n: 1, shell: {script: x}}"
    assert codes(OLDER, CLOSE, by_list) == ["commit_before_use"]
    dynamic = OLDER.replace("target_table: db.change", "'!target_table': x")
    assert codes(dynamic, CLOSE, READ, params="x: db.change") == []


def test_a_branch_without_the_older_form_is_refused() -> None:
    """Its commit, which nobody wrote, comes after all branches."""
    dag = "[old: {IF x > 5: read, OTHERWISE: nothing}]"
    code, _, hint, drawing = only(loaded(OLDER, READ, NOTHING, dag=dag))
    assert code == "commit_around_use"
    assert hint == "add a step of type IpCommit with ip_commit: {capture_step: old} after read"
    assert drawing == ["old ──[!((x > 5))]─▶ nothing ──▶ old_commit ✗"]
    own = "[old: {IF x > 5: read -> commit, OTHERWISE: nothing}]"
    assert codes(OLDER, READ, NOTHING, CLOSE, dag=own) == []
    assert codes(OLDER, READ, NOTHING, dag="[old: {IF changed: read, OTHERWISE: nothing}]") == []


def test_a_long_way_is_drawn_in_one_row() -> None:
    """Its middle is left out."""
    others = [f"- job: {{id: n{number}, type: NoOp}}" for number in range(6)]
    found = loaded(CAPTURE, *others, COMMIT, SECOND, MERGE)
    drawings = {problem.code: problem.drawing for problem in found.problems}
    assert drawings["commit_twice"] == ("capture ──▶ n0 ──▶ n1 ──▶ (3 more) ──▶ n5 ──▶ commit ──▶ second ✗")


@pytest.mark.parametrize(
    ("step", "effect"),
    [
        ({"type": "Spark", "targets": ["db.d"]}, Effect.WRITES),
        ({"type": "Spark", "script": "SELECT 1"}, Effect.READS),
        ({"type": "Spark", "script": "-- insert\nSELECT 'delete' /* drop */ FROM ${update}"}, Effect.READS),
        ({"type": "Spark", "script": "INSERT INTO d SELECT 1"}, Effect.WRITES),
        ({"type": "Spark", "script": "${query}"}, Effect.MAY_WRITE),
        ({"type": "Spark", "file": "job.sql"}, Effect.MAY_WRITE),
        ({"type": "SQL", "query": "select 1"}, Effect.READS),
        ({"type": "SQL", "query": "CALL p()"}, Effect.WRITES),
        ({"type": "NoOp"}, Effect.READS),
        ({"type": "Shell"}, Effect.MAY_WRITE),
    ],
)
def test_what_a_step_does_with_rows_is_told_from_its_text(step: dict[str, Any], effect: Effect) -> None:
    """A program of the user's may do anything."""
    named = {key: value for key, value in step.items() if key not in {"type", "targets"}}
    config = {key: {"type": "STRING", "value": value} for key, value in named.items()}
    params: dict[str, Any] = {
        "table": {"type": "STRING", "value": "${k.relation}"},
        step["type"].lower(): {"type": "MAP", "value": config},
    }
    said: dict[str, Any] = {key: value for key, value in step.items() if key in {"type", "targets"}}
    user: dict[str, Any] = {"id": "use", "params": params, **said}
    capture: dict[str, Any] = {"id": "k", "type": "IpCapture", "params": {}}
    document = placed(definition({"step": capture}, {"step": user}))
    workflow = entry(document, "workflow")
    assert workflow is not None
    assert CapturedRows(workflow, installed().types).uses("k")["use"].effect is effect
