"""References that a step hands on: resolved in the files that it reads, and refused where they are none."""

from textwrap import dedent

import pytest
from tests.engines import DONE, Playground

from calve.definition.params import FileText
from calve.engine import Outcome, RunStatus, StepContext, StepStatus

FLOW = """
    Workflow:
      id: w
      dag: sequential
      day: 20260301
      jobs:
        - job: {id: pick, type: Spark, spark: {script: SELECT 1, fetch: value}}
        - foreach:
            id: each
            loop_params: {n: [7]}
            jobs:
              - job:
                  id: copy
                  type: SQL
                  own: o
                  password<secret>: db_password
                  sql: {url: 'sqlite://', file: copy.sql}
"""


def test_a_file_is_resolved_where_the_step_stands(playground: Playground) -> None:
    """With the params of the workflow, the loop and the step, outputs of other steps, and secrets in clear."""
    playground.secrets["db_password"] = "swordfish"
    playground.script.parts["pick"] = Outcome(DONE.state, {"value": "tv"})
    read: list[str] = []

    def work(context: StepContext) -> Outcome:
        text = "$day ${n} ${own} ${pick.value} ${pick__value} $$x ${step_id} ${password}"
        read.append(context.resolve(FileText(text, "copy.sql", "sql.file")))
        context.log(read[0])
        return DONE

    playground.script.parts["copy"] = work
    playground.push(dedent(FLOW))
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED, playground.statuses(run)
    assert read == ["20260301 7 o tv tv $x copy swordfish"]


def test_a_secret_of_a_file_is_blackened_from_then_on(playground: Playground) -> None:
    """Whether or not another param holds it too."""
    playground.secrets["db_password"] = "swordfish"
    playground.push(
        "{workflow: {id: w, 'key<secret>': db_password, jobs: [{job: {id: a, type: Sleep, sleep: {duration: 1}}}]}}"
    )

    def work(context: StepContext) -> Outcome:
        text = context.resolve(FileText("password=${key}", "a.sql", "sql.file"))
        context.log(text)
        return Outcome(DONE.state, message=text)

    playground.script.parts["a"] = work
    run = playground.start()
    assert playground.log(playground.attempt(run, "a")) == "password=***\n"


def test_a_reference_of_a_file_that_means_nothing_ends_the_step(playground: Playground) -> None:
    """With file, line and column; it is not tried again."""
    playground.push("{workflow: {id: w, jobs: [{job: {id: a, type: SQL, sql: {url: x, file: a.sql}}}]}}")
    playground.script.parts["a"] = lambda context: _read(context, "SELECT\n ${dya}")
    run = playground.start()
    assert playground.statuses(run) == {"a": StepStatus.FATALLY_FAILED}
    assert "a.sql:2:2: Param [sql.file]: Cannot find the referenced param [dya] in step [a]" in playground.told(
        run, "a"
    )


def _read(context: StepContext, text: str) -> Outcome:
    context.resolve(FileText(text, "a.sql", "sql.file"))
    return DONE


@pytest.mark.parametrize("text", ["SELECT '${day}'", "SELECT 1"])
def test_a_statement_in_which_a_brace_is_left_is_not_run(playground: Playground, text: str) -> None:
    """It would reach the database as it is."""
    playground.push(
        """{workflow: {id: w, dag: sequential, jobs: [
            {job: {id: pick, type: SQL, sql: {url: x, query: SELECT 1, fetch: value}}},
            {job: {id: a, type: SQL, sql: {url: x, query: '${pick.value}'}}}]}}"""
    )
    playground.script.parts["pick"] = Outcome(DONE.state, {"value": text})
    run = playground.start()
    is_left = "${" in text
    assert run.status is (RunStatus.FAILED if is_left else RunStatus.SUCCEEDED)
    assert ("sql.query, line 1, column 9: ${day} remains" in playground.told(run, "a")) is is_left
    assert ("a" in playground.script.calls) is not is_left
