"""What a restart with another version cannot run again, and why a step does not run."""

from typing import Any

import pytest

from calve.definition import installed, load
from calve.definition.model import Step, StringMapParam
from calve.definition.params import Parameter
from calve.engine.decisions import why_not_run
from calve.engine.instances import Dag
from calve.engine.model import LAST, Attempt, StepStatus
from calve.engine.restarts import obstacles

S = StepStatus


def steps_of(*jobs: str) -> dict[str, Step]:
    """Return the steps of a workflow."""
    text = f"Workflow: {{id: w, jobs: [{', '.join(jobs)}]}}"
    workflow = load(text, name="test", vocabulary=installed()).required().workflow
    return {step.id: step for step in workflow.steps}


def attempt(step_id: str, kind: str = "Sleep", status: StepStatus = S.SUCCEEDED, **given: Any) -> Attempt:
    """Return an attempt of a step."""
    return Attempt(step_id, "", "", step_id, 1, 1, kind, status, **given)


_FIELDS = StringMapParam(value={"capture_step": "cap"})
_STORED = Parameter("ip_commit", _FIELDS, {"capture_step": "cap"}).as_stored()
COMMIT = attempt("commit", "IpCommit", params={"ip_commit": _STORED})


@pytest.mark.parametrize(
    ("job", "is_spent"),
    [
        ("{job: {id: a, type: Shell, shell: {script: 'echo ${cap.relation}'}}}", True),
        ("{job: {id: a, type: Sleep, x: ['${cap.relation}']}}", True),
        ("{job: {id: a, type: Sleep, '!x': cap__relation}}", True),
        ("{job: {id: a, type: Sleep, '!x': \"params.getFromStep('cap', 'relation')\"}}", True),
        (
            "{foreach: {id: a, loop_params: {i: [1]}, jobs: [{job: {id: b, type: Sleep, x: '${cap.relation}'}}]}}",
            True,
        ),
        ("{job: {id: a, type: Sleep, x: recap.relation, y: 1}}", False),
        ("{job: {id: a, type: Sleep, x: cap}}", False),
    ],
)
def test_what_used_a_committed_capture_is_spent(job: str, *, is_spent: bool) -> None:
    """However it refers to it."""
    capture = "{job: {id: cap, type: IpCapture, ip_capture: {source_tables: [db.t]}, transition: [a]}}"
    steps = steps_of(capture, job)
    known = {"cap": attempt("cap", "IpCapture"), "a": attempt("a"), "commit": COMMIT}
    assert ("a" in obstacles(steps, Dag.of(steps.values()), known, {"a"})) is is_spent
    assert obstacles(steps, Dag.of(steps.values()), known, {"cap"})
    open_still = {**known, "commit": attempt("commit", "IpCommit", S.FATALLY_FAILED, params=COMMIT.params)}
    assert obstacles(steps, Dag.of(steps.values()), open_still, {"a", "cap"}) == {}
    incomplete = {**known, "a": attempt("a", status=S.FATALLY_FAILED)}
    assert obstacles(steps, Dag.of(steps.values()), incomplete, {"a"}) == {}


def test_a_commit_runs_again() -> None:
    """It changes nothing then."""
    jobs = "{job: {id: commit, type: IpCommit, ip_commit: {capture_step: cap, capture: '${cap.capture_id}'}}}"
    capture = "{job: {id: cap, type: IpCapture, ip_capture: {source_tables: [db.t]}, transition: [commit]}}"
    steps = steps_of(capture, jobs)
    known = {"cap": attempt("cap", "IpCapture"), "commit": COMMIT}
    assert obstacles(steps, Dag.of(steps.values()), known, {"commit"}) == {}


def test_a_step_that_did_not_run_before_it_could_say_why() -> None:
    """Records of earlier versions have no reason."""
    dag = Dag({"a": {"b": "true"}, "b": {}}, {"a": (), "b": ("a",)})
    assert why_not_run(dag, {"a": attempt("a", status=S.UNSATISFIED)}, "b") == "Not run: a did not run"
    said = ({"type": "LOG", "timestamp": 1, "message": "Not run: z: none"},)
    assert why_not_run(dag, {"a": attempt("a", status=S.UNSATISFIED, timeline=said)}, "b") == "Not run: z: none"
    assert why_not_run(dag, {"a": attempt("a", artifacts={LAST: "none"})}, "b") == "Not run: a: none"
