"""What a commit is told of the steps that use its capture: over branches, loops, subworkflows and restarts."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.definition import Definition, installed, load
from calve.engine import Outcome, RunPolicy, RunStatus, State, StepContext
from calve.engine.model import Run

CAPTURED = Outcome(
    State.DONE, outputs={"capture_id": "c1", "icdc_table": "icdc.t", "relation": "icdc.t", "changed": True}
)
REFUSED = Outcome(State.FATAL_ERROR, message="refused")
CAPTURE = "- job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.t]}}"
COMMIT = "- job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}"


def spark(name: str, *, target: str = "db.d", more: str = "", text: str = "INSERT INTO d SELECT * FROM") -> str:
    """Return a step that uses the rows."""
    targets = f"targets: [{target}], " if target else ""
    return f"- job: {{id: {name}, type: Spark, {targets}{more} spark: {{script: '{text} ${{capture.relation}}'}}}}"


IGNORED = "failure_mode: IGNORE_FAILURE, retry_policy: {error_retry_limit: 0, platform_retry_limit: 0},"


def workflow(*jobs: str, dag: str = "sequential", name: str = "w", params: str = "x: 1") -> str:
    """Return a workflow of some jobs."""
    lines = "\n".join(f"    {line}" for job in jobs for line in job.splitlines())
    return f"Workflow:\n  id: {name}\n  {params}\n  dag: {dag}\n  jobs:\n{lines}\n"


@dataclass
class Commits:
    """Runs workflows whose commit fails if there is something that was not delivered, as IpCommit does."""

    playground: Playground
    told: list[dict[str, str]] = field(default_factory=list)
    """What each commit was told, by step."""

    def __post_init__(self) -> None:
        self.playground.script.parts |= {"capture": CAPTURED, "commit": self._commit}

    def _commit(self, context: StepContext) -> Outcome:
        ends = {end.path: str(end.status) for end in context.undelivered("capture")}
        self.told.append(ends)
        return REFUSED if ends else DONE

    def run(self, text: str, **parts: Any) -> Run:
        """Push a workflow, and run it with what its steps do."""
        self.playground.push(text)
        self.playground.script.parts |= parts
        return self.playground.start()


@pytest.fixture
def commits(playground: Playground) -> Commits:
    """Give a playground whose commits are told."""
    return Commits(playground)


def test_a_commit_after_what_succeeded_is_told_nothing(commits: Commits) -> None:
    """All is well."""
    run = commits.run(workflow(CAPTURE, spark("merge"), COMMIT))
    assert (run.status, commits.told) == (RunStatus.SUCCEEDED, [{}])


def test_a_commit_detects_a_use_whose_failure_was_ignored(commits: Commits) -> None:
    """Its rows have gone nowhere; a restart from it puts that right."""
    run = commits.run(workflow(CAPTURE, spark("merge", more=IGNORED), COMMIT), merge=FATAL_ERROR)
    assert (run.status, commits.told) == (RunStatus.FAILED, [{"merge": "COMPLETED_WITH_ERROR"}])
    commits.playground.script.parts["merge"] = DONE
    assert commits.playground.restart(run, "merge").status is RunStatus.SUCCEEDED
    assert commits.told[1:] == [{}]


def test_a_commit_is_judged_on_the_steps_of_earlier_runs_too(commits: Commits) -> None:
    """A restart of the commit alone carries the failed use over."""
    run = commits.run(workflow(CAPTURE, spark("merge", more=IGNORED), COMMIT), merge=FATAL_ERROR)
    assert commits.playground.restart(run).status is RunStatus.FAILED
    assert commits.playground.restart(run, "commit").status is RunStatus.FAILED
    assert commits.told == [{"merge": "COMPLETED_WITH_ERROR"}] * 3


def test_a_commit_detects_a_use_that_a_person_skipped(commits: Commits) -> None:
    """By a restart that leaves it out."""
    run = commits.run(workflow(CAPTURE, spark("merge"), COMMIT), merge=FATAL_ERROR)
    assert run.status is RunStatus.FAILED
    again = commits.playground.restart(run, skip=("merge",))
    assert (again.status, commits.told) == (RunStatus.FAILED, [{"merge": "SKIPPED"}])


FAILED = "params.getFromStep('normal', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'"
RECOVERY = f'[capture -> normal -> check, check: {{"IF {FAILED}": again -> end, OTHERWISE: end}}, end -> commit]'
IS_FAILED = "COMPLETED_WITH_ERROR"
NO_OPS = ("- job: {id: check, type: NoOp}", "- job: {id: end, type: NoOp}")


@pytest.mark.parametrize(
    ("again", "normal_ends", "again_ends", "told"),
    [
        (spark("again"), FATAL_ERROR, DONE, {}),
        (spark("again"), DONE, DONE, {}),
        (spark("again", more=IGNORED), FATAL_ERROR, FATAL_ERROR, dict.fromkeys(["normal", "again"], IS_FAILED)),
        (spark("again", target="db.other"), FATAL_ERROR, DONE, {"normal": IS_FAILED}),
        (spark("again", target="", text="SELECT * FROM"), FATAL_ERROR, DONE, {"normal": IS_FAILED}),
        (spark("again", target="", text="run"), FATAL_ERROR, DONE, {}),
    ],
)
def test_a_later_use_makes_good_what_an_earlier_one_failed_to_do(
    commits: Commits, again: str, normal_ends: Outcome, again_ends: Outcome, told: dict[str, str]
) -> None:
    """If it succeeded, and may have written the same tables."""
    text = workflow(CAPTURE, spark("normal", more=IGNORED), again, *NO_OPS, COMMIT, dag=RECOVERY)
    run = commits.run(text, normal=normal_ends, again=again_ends)
    assert commits.told == [told]
    assert run.status is (RunStatus.FAILED if told else RunStatus.SUCCEEDED)


@pytest.mark.parametrize("x", [9, 1])
def test_of_branches_that_exclude_each_other_one_is_enough(commits: Commits, x: int) -> None:
    """The use on the other one never ran."""
    dag = "[capture: {IF x > 5: one -> commit, OTHERWISE: two -> commit}]"
    commits.run(workflow(CAPTURE, spark("one"), spark("two"), COMMIT, dag=dag, params=f"x: {x}"))
    assert commits.told == [{}]


def push_unchecked(playground: Playground, *jobs: str, **edges: dict[str, str]) -> None:
    """Push steps with edges that are refused today, as a version of calve did that did not look at the order."""
    document = load(workflow(*jobs), name="w", vocabulary=installed()).required().as_json()
    for wrapper in document["workflow"]["steps"]:
        (step,) = wrapper.values()
        step["transition"] = {"successors": edges.get(step["id"], {})}
    playground.engine.push(Definition.model_validate(document))


def test_a_use_after_the_commit_is_told_as_not_begun(commits: Commits) -> None:
    """Such a definition can only be one that was pushed before the order was checked."""
    after = {"capture": {"commit": "true"}, "commit": {"merge": "true"}}
    push_unchecked(commits.playground, CAPTURE, spark("merge"), COMMIT, **after)
    assert commits.playground.start().status is RunStatus.FAILED
    assert commits.told == [{"merge": "NOT_CREATED"}]


def test_a_use_beside_the_commit_is_reported_as_it_stands(commits: Commits) -> None:
    """It may fail later."""
    push_unchecked(commits.playground, CAPTURE, spark("merge"), COMMIT, capture={"merge": "true", "commit": "true"})
    commits.playground.script.parts["merge"] = Outcome(State.CONTINUE, poll_after=3_600)
    run = commits.playground.start()
    assert commits.told == [{"merge": "RUNNING"}]
    commits.playground.engine.kill(commits.playground.address(run))
    commits.playground.settle()


def test_if_no_use_ran_those_that_should_have_are_reported(commits: Commits) -> None:
    """Around them, in a definition that was pushed before."""
    edges = {"capture": {"merge": "x > 5", "note": "true"}, "merge": {"commit": "true"}, "note": {"commit": "true"}}
    push_unchecked(commits.playground, CAPTURE, spark("merge"), "- job: {id: note, type: NoOp}", COMMIT, **edges)
    assert commits.playground.start().status is RunStatus.FAILED
    assert commits.told == [{"merge": "UNSATISFIED"}]


LOOP = """- foreach:
    id: days
    loop_params: {{day: [a, b, c]}}
    jobs:
      {first}
      {second}
    dag: sequential"""


def failing_for(number: int) -> Any:
    """Return what a step in a loop does that fails in one iteration."""

    def act(context: StepContext) -> Outcome:
        return FATAL_ERROR if context.place.iterations[0].number == number else DONE

    return act


def test_a_use_that_failed_in_an_iteration_is_reported_with_its_number(commits: Commits) -> None:
    """Though the loop has succeeded."""
    loop = LOOP.format(first=spark("write", more=IGNORED), second="- job: {id: note, type: NoOp}")
    run = commits.run(workflow(CAPTURE, loop, COMMIT), write=failing_for(2))
    assert (run.status, commits.told) == (RunStatus.FAILED, [{"days/2/write": "COMPLETED_WITH_ERROR"}])
    commits.playground.script.parts["write"] = DONE
    again = commits.playground.restart(run, "days", "2", "write")
    assert (again.status, commits.told[1:]) == (RunStatus.SUCCEEDED, [{}])


def test_in_an_iteration_a_later_use_makes_good_an_earlier_one(commits: Commits) -> None:
    """As it does outside."""
    loop = LOOP.format(first=spark("write", more=IGNORED), second=spark("again"))
    run = commits.run(workflow(CAPTURE, loop, COMMIT), write=failing_for(2))
    assert (run.status, commits.told) == (RunStatus.SUCCEEDED, [{}])


def test_a_failure_in_a_loop_that_uses_nothing_does_not_count(commits: Commits) -> None:
    """Nor does one of a step that uses nothing beside one that does."""
    other = "- job: {id: other, type: Shell, failure_mode: IGNORE_FAILURE, shell: {script: x}}"
    loop = LOOP.format(first=spark("write"), second=other)
    run = commits.run(workflow(CAPTURE, loop, COMMIT), other=FATAL_ERROR)
    assert (run.status, commits.told) == (RunStatus.SUCCEEDED, [{}])


def test_iterations_that_a_shorter_loop_left_behind_do_not_count(commits: Commits) -> None:
    """The restart went through fewer days."""
    loop = LOOP.format(first=spark("write", more=IGNORED), second="- job: {id: note, type: NoOp}")
    loop = loop.replace("day: [a, b, c]", "'!day<array<string>>': given")
    text = workflow(CAPTURE, loop, COMMIT, params="given: [a, b, c]")
    run = commits.run(text, write=failing_for(3))
    assert commits.told == [{"days/3/write": "COMPLETED_WITH_ERROR"}]
    again = commits.playground.restart(run, params={"given": ["a"]}, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert (again.status, commits.told[1:]) == (RunStatus.SUCCEEDED, [{}])


@pytest.mark.parametrize("kind", ["foreach", "while"])
def test_a_loop_without_iterations_has_not_used_the_rows(commits: Commits, kind: str) -> None:
    """It succeeds, but its steps never ran."""
    head = {
        "foreach": "loop_params: {'!day<array<string>>': given}",
        "while": "loop_params: {n: 5}\n    condition: n < 2",
    }[kind]
    loop = f"- {kind}:\n    id: days\n    {head}\n    jobs:\n      {spark('write')}"
    run = commits.run(workflow(CAPTURE, loop, COMMIT, params="'!given<array<string>>': new String[0]"))
    assert (run.status, commits.told) == (RunStatus.FAILED, [{"days/write": "NOT_CREATED"}])


@pytest.mark.parametrize(("days", "told"), [("[a, b]", {"days/write": "UNSATISFIED"}), ("[a, z]", {})])
def test_of_the_iterations_of_a_loop_one_has_to_use_the_rows(commits: Commits, days: str, told: dict[str, str]) -> None:
    """A condition may leave out the step in some of them, but not in all."""
    loop = LOOP.format(first="- job: {id: begin, type: NoOp}", second=spark("write"))
    loop = loop.replace("[a, b, c]", days).replace("sequential", "[begin: [IF day == 'z' THEN write]]")
    commits.run(workflow(CAPTURE, loop, COMMIT))
    assert commits.told == [told]


def test_a_while_loop_is_looked_into_too(commits: Commits) -> None:
    """By the number of its iteration."""
    loop = f"""- while:
    id: rounds
    loop_params: {{n: 0}}
    condition: n < 2
    jobs:
      {spark("write", more=IGNORED + " '!n<long>': n + 1,")}"""
    commits.run(workflow(CAPTURE, loop, COMMIT), write=failing_for(1))
    assert commits.told == [{"rounds/1/write": "COMPLETED_WITH_ERROR"}]


CHILD = workflow(
    "- job: {id: write, type: Shell, failure_mode: IGNORE_FAILURE, shell: {script: '${query}'}}",
    "- job: {id: other, type: Shell, failure_mode: IGNORE_FAILURE, shell: {script: 'x'}}",
    name="child",
    params="SOURCE: db.t\n  query: run ${SOURCE}",
)
SUB = "- subworkflow: {id: sub, workflow_id: child, SOURCE: '${capture.icdc_table}'}"


@pytest.mark.parametrize(("failing", "told"), [("write", {"sub/write": IS_FAILED}), ("other", {}), ("", {})])
def test_a_subworkflow_is_looked_into_through_the_params_that_it_is_given(
    commits: Commits, failing: str, told: dict[str, str]
) -> None:
    """What fails there and does not use the rows does not count."""
    commits.playground.push(CHILD)
    run = commits.run(workflow(CAPTURE, SUB, COMMIT), **{failing: FATAL_ERROR})
    assert commits.told == [told]
    if told:
        commits.playground.script.parts[failing] = DONE
        assert commits.playground.restart(run, "sub", failing).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize("is_in_loop", [False, True])
def test_a_subworkflow_that_skipped_the_rows_is_reported(commits: Commits, *, is_in_loop: bool) -> None:
    """It succeeded, as the step that uses them was left out by a condition."""
    begin, write = "- job: {id: begin, type: NoOp}", "- job: {id: write, type: Shell, shell: {script: '${SOURCE}'}}"
    dag = "[begin: [IF x > 5 THEN write]]"
    commits.playground.push(workflow(begin, write, dag=dag, name="child", params="SOURCE: db.t\n  x: 1"))
    sub = LOOP.format(first=SUB, second="- job: {id: note, type: NoOp}") if is_in_loop else SUB
    run = commits.run(workflow(CAPTURE, sub, COMMIT))
    place = "days/sub" if is_in_loop else "sub"
    assert (run.status, commits.told) == (RunStatus.FAILED, [{f"{place}/write": "UNSATISFIED"}])


def test_a_subworkflow_that_shows_no_use_is_taken_for_one(commits: Commits) -> None:
    """A program in it may find the rows in a way that nothing here shows."""
    commits.playground.push(workflow("- job: {id: write, type: Shell, shell: {script: x}}", name="child"))
    run = commits.run(workflow(CAPTURE, SUB, COMMIT))
    assert (run.status, commits.told) == (RunStatus.SUCCEEDED, [{}])


def test_a_subworkflow_in_a_loop_is_looked_into(commits: Commits) -> None:
    """Whether or not a step of a worker failed: one that was skipped has none."""
    commits.playground.push(CHILD)
    loop = LOOP.format(first=SUB, second="- job: {id: note, type: NoOp}")
    commits.run(workflow(CAPTURE, loop, COMMIT), write=FATAL_ERROR)
    assert commits.told == [{f"days/{number}/sub/write": "COMPLETED_WITH_ERROR" for number in (1, 2, 3)}]


def test_a_subworkflow_that_was_not_waited_for_is_reported(commits: Commits) -> None:
    """Only a definition that was pushed before has one."""
    commits.playground.push(CHILD)
    commits.playground.script.parts["write"] = Outcome(State.CONTINUE, poll_after=3_600)
    document = load(workflow(CAPTURE, SUB, COMMIT), name="w", vocabulary=installed()).required().as_json()
    document["workflow"]["steps"][1]["subworkflow"]["sync"] = False
    commits.playground.engine.push(Definition.model_validate(document))
    run = commits.playground.start()
    assert run.status is RunStatus.FAILED
    assert [list(told) for told in commits.told] == [["sub"]]


def test_a_capture_inside_a_loop_is_committed_in_its_iteration(commits: Commits) -> None:
    """Each is judged by itself."""
    body = "\n      ".join((CAPTURE, spark("write", more=IGNORED), COMMIT))
    loop = f"- foreach:\n    id: days\n    loop_params: {{day: [a, b]}}\n    dag: sequential\n    jobs:\n      {body}"
    run = commits.run(workflow(loop), write=failing_for(2))
    assert run.status is RunStatus.FAILED
    assert sorted(commits.told, key=len) == [{}, {"write": "COMPLETED_WITH_ERROR"}]


def test_a_use_outside_of_the_loop_of_a_capture_is_not_examined(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the loop, which only a definition has that was pushed before."""
    monkeypatch.setattr("calve.definition.loader.check_capture_order", lambda *_: None)
    body = "\n      ".join((CAPTURE, spark("write"), COMMIT))
    loop = f"- foreach:\n    id: days\n    loop_params: {{day: [a]}}\n    dag: sequential\n    jobs:\n      {body}"
    rows = "params.getFromForeach('days', 'capture', 'relation')"
    run = commits.run(workflow(loop, f"- job: {{id: all, type: NoOp, '!t<array<string>>': \"{rows}\"}}"))
    assert (run.status, commits.told) == (RunStatus.SUCCEEDED, [{}])


def test_a_use_that_waits_on_another_branch_does_not_count(commits: Commits) -> None:
    """It has not begun and never will: the branches exclude each other."""
    dag = "[capture: {IF x > 5: slow -> two -> second, OTHERWISE: one -> commit}, other: [IF x > 5 THEN slow]]"
    slow = ("- job: {id: slow, type: Shell, shell: {script: x}}", "- job: {id: other, type: Sleep}")
    second = COMMIT.replace("id: commit", "id: second")
    text = workflow(CAPTURE, *slow, spark("one"), spark("two"), COMMIT, second, dag=dag)
    commits.run(text, other=Outcome(State.CONTINUE, poll_after=60))
    assert commits.told == [{}]


def test_a_commit_of_what_no_step_of_the_workflow_captured_is_told_nothing(commits: Commits) -> None:
    """There is nothing to look at."""
    commits.playground.script.parts["commit"] = lambda context: DONE if not context.undelivered("none") else REFUSED
    assert commits.run(workflow(CAPTURE, spark("merge"), COMMIT)).status is RunStatus.SUCCEEDED
