"""What a definition leaves unsaid about captures is said when it is read."""

import json
from typing import Any

import pytest

from calve.definition import installed, load
from calve.definition.loader import Loaded

CAPTURE = "- job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.t]}}"
COMMIT = "- job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}"


def loaded(*jobs: str, dag: str = "sequential") -> Loaded:
    """Read a workflow of some jobs."""
    lines = "\n".join(f"    {line}" for job in jobs for line in job.splitlines())
    return load(f"Workflow:\n  id: w\n  dag: {dag}\n  jobs:\n{lines}\n", name="w.yaml", vocabulary=installed())


def steps(found: Loaded) -> dict[str, dict[str, Any]]:
    """Return the steps of a workflow by id, those inside loops too; some here leave their captures unread."""
    assert {one.code for one in found.problems} <= {"capture_unused"}, found.problems
    return {step.id: step.as_json() for step in found.required().workflow.all_steps()}


def field(step: dict[str, Any], config: str, name: str) -> Any:
    """Return a field of a step's config map."""
    value = step["params"][config]["value"].get(name)
    return value["value"] if isinstance(value, dict) else value


def problem(found: Loaded) -> tuple[str, str, str]:
    """Return the only problem."""
    (one,) = found.problems
    return one.code, one.message, one.hint


def test_a_commit_is_told_which_capture_it_commits() -> None:
    """By a reference to what its step gave; one that is given stays."""
    found = steps(loaded(CAPTURE, COMMIT))
    assert field(found["commit"], "ip_commit", "capture") == "${capture.capture_id}"
    given = COMMIT.replace("capture_step: capture", "capture_step: capture, capture: abc")
    assert field(steps(loaded(CAPTURE, given))["commit"], "ip_commit", "capture") == "abc"


def test_a_commit_comes_after_its_capture() -> None:
    """Else there is nothing to commit."""
    code, message, hint = problem(loaded(COMMIT, CAPTURE))
    assert (code, hint) == ("capture_later", "add the edge capture -> commit")
    assert message == "commit does not come after capture, whose capture it commits"


def test_a_commit_names_its_step_as_it_is() -> None:
    """What only the run tells cannot be referred to."""
    by_reference = COMMIT.replace("capture_step: capture", 'capture_step: "${x}"').replace("id: commit", "x: y, id: c")
    code, _, hint = problem(loaded(CAPTURE, by_reference))
    assert (code, hint) == ("capture_unknown", "write the id of the capture step")


@pytest.mark.parametrize("commit", ["", "- job: {id: c, type: IpCommit}", COMMIT.replace("step: capture", "step: x")])
def test_what_is_wrong_with_a_commit_is_reported_elsewhere(commit: str) -> None:
    """A missing step, or one that there is none of."""
    codes = {one.code for one in loaded(CAPTURE, commit).problems}
    assert codes <= {"capture_uncommitted", "missing_field", "unknown_capture_step", "param_error", "unknown_reference"}


JOB = "- job: {id: job, type: Spark, targets: [db.d], spark: {script: x}}"


def test_a_delivery_is_told_which_capture_it_is_of() -> None:
    """The one before it that is not committed yet; without targets, or without a capture, there is none."""
    found = steps(loaded(CAPTURE, JOB, COMMIT))
    assert field(found["job"], "spark", "capture") == "${capture.capture_id}"
    bare = steps(loaded(CAPTURE, JOB.replace("targets: [db.d], ", ""), COMMIT))
    assert field(bare["job"], "spark", "capture") is None
    assert field(steps(loaded(JOB))["job"], "spark", "capture") is None
    assert field(steps(loaded(CAPTURE, COMMIT, JOB))["job"], "spark", "capture") is None
    own = steps(loaded(CAPTURE, JOB.replace("script: x", "script: x, capture: mine"), COMMIT))
    assert field(own["job"], "spark", "capture") == "mine"


def test_stages_follow_each_other() -> None:
    """The second job works on the second capture."""
    second = [
        "- job: {id: again, type: IpCapture, ip_capture: {source_tables: [db.d]}}",
        JOB.replace("id: job", "id: job2"),
        "- job: {id: commit2, type: IpCommit, ip_commit: {capture_step: again}}",
    ]
    found = steps(loaded(CAPTURE, JOB, COMMIT, *second))
    assert field(found["job2"], "spark", "capture") == "${again.capture_id}"


def test_two_captures_at_once_have_to_be_told_apart() -> None:
    """Neither is guessed."""
    other = "- job: {id: other, type: ICDC, icdc: {source_table: db.u, target_table: db.c}}"
    code, message, hint = problem(loaded(CAPTURE, other, JOB, COMMIT))
    assert code == "capture_ambiguous"
    assert message == "it is not clear whether job works on the capture of capture or other"
    assert hint == "write spark: {capture: ${capture.capture_id}}"


def test_what_a_merge_goes_into_is_its_target() -> None:
    """Unless the step says what its targets are."""
    merge = "- job: {id: job, type: Spark, spark: {merge: {into: db.d, using: s, keys: [k]}}}"
    found = steps(loaded(CAPTURE, merge, COMMIT))
    assert found["job"]["targets"] == ["db.d"]
    assert field(found["job"], "spark", "capture") == "${capture.capture_id}"
    none = steps(loaded(CAPTURE, merge.replace("type: Spark", "type: Spark, targets: []"), COMMIT))
    assert not none["job"].get("targets")


def test_steps_inside_loops_see_what_is_before_the_loop() -> None:
    """And what is before them inside."""
    loop = f"""- foreach:
    id: each
    loop_params: {{x: [a, b]}}
    jobs:
      {JOB}"""
    found = steps(loaded(CAPTURE, loop, COMMIT))
    assert field(found["job"], "spark", "capture") == "${capture.capture_id}"


def test_a_config_map_in_any_form_is_completed() -> None:
    """A map of texts too; an expression is left to the run."""
    texts = "- job: {id: job, type: Spark, targets: [db.d], 'spark<string_map>': {script: x}}"
    found = steps(loaded(CAPTURE, texts, COMMIT))
    assert field(found["job"], "spark", "capture") == "${capture.capture_id}"
    computed = "- job: {id: job, type: Spark, targets: [db.d], '!spark<map>': \"params.get('m')\"}"
    problems = loaded(CAPTURE, computed, COMMIT).problems
    assert "capture_ambiguous" not in {one.code for one in problems}
    bare = "- job: {id: job, type: Spark, targets: [db.d]}"
    assert {one.code for one in loaded(CAPTURE, bare, COMMIT).problems} == {"missing_field"}


OLDER = "- job: {id: old, type: ICDC, icdc: {source_table: db.t, target_table: db.c}}"


def test_the_older_form_gets_a_commit_after_the_last_steps() -> None:
    """Of all branches; one that is there already is enough."""
    found = steps(loaded(OLDER, "- job: {id: a, type: NoOp}", "- job: {id: b, type: NoOp}", dag="[old -> a, b]"))
    assert field(found["old_commit"], "ip_commit", "capture") == "${old.capture_id}"
    assert found["a"]["transition"]["successors"] == {"old_commit": "true"}
    assert found["b"]["transition"]["successors"] == {"old_commit": "true"}
    assert found["old"]["transition"]["successors"] == {"a": "true"}
    own = steps(loaded(OLDER, "- job: {id: c, type: IpCommit, ip_commit: {capture_step: old}}"))
    assert list(own) == ["old", "c"]


def test_the_commit_that_is_added_takes_a_free_name() -> None:
    """Whatever the other steps are called."""
    found = steps(loaded(OLDER, "- job: {id: old_commit, type: NoOp}"))
    assert list(found) == ["old", "old_commit", "old_commit_"]


def test_reading_what_was_completed_changes_nothing() -> None:
    """A definition that was pushed is read again and again."""
    once = loaded(OLDER, JOB).required()
    again = load(json.dumps(once.as_json()), name="w", vocabulary=installed())
    assert again.required() == once


def test_a_loop_without_steps_is_reported_elsewhere() -> None:
    """There is nothing to complete in it."""
    assert loaded(OLDER, "- foreach: {id: each, loop_params: {x: [a]}, jobs: []}").definition is None
