"""While: one iteration after the other, as long as the condition holds."""

from dataclasses import replace

from calve.definition.model.steps import WhileStep
from calve.definition.params import InitiatorType
from calve.engine.children import check_depth, loop_name, loop_param, new_iteration, outcome_of, replaced_by
from calve.engine.ending import end
from calve.engine.evaluating import condition_over
from calve.engine.facts import params_of
from calve.engine.loops import ITERATIONS
from calve.engine.model import Attempt, Json, NewTask, Run, RunPolicy, TaskKind
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus
from calve.engine.work import Work
from calve.errors import CalveError, ParamError

KEY = "maestro_while"
_KIND = InitiatorType.WHILE


def progress(work: Work, state: RunState, step: WhileStep, attempt: Attempt) -> Attempt:
    """Take what the last iteration gave, and begin the next one or end the step."""
    try:
        artifact = attempt.artifacts.get(KEY) or _begun(work, state, attempt)
        status, artifact = _after_last(work, attempt, artifact)
        if status is RunStatus.SUCCEEDED and _goes_on(work, state, step, attempt, artifact):
            artifact = _launched(work, state, attempt, artifact)
            status = RunStatus.IN_PROGRESS
    except CalveError as error:
        return end(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    attempt = work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, KEY: artifact}))
    if not status.is_terminal:
        return attempt
    return end(work, state, attempt, outcome_of(status, f"{artifact['iteration']} iterations have run: {status}."))


def _begun(work: Work, state: RunState, attempt: Attempt) -> Json:
    check_depth(state)
    artifact = {
        "loop_workflow_id": loop_name(state, attempt.step_id, _KIND),
        "iteration": 0,
        "values": dict(params_of(state, attempt)["loop_params"].result),
        "redo": None,
    }
    before = replaced_by(work, state, attempt)
    if before is None:
        return artifact
    run, kept = state.run, before.artifacts.get(KEY) or {"iteration": 0}
    if (
        run.policy is not RunPolicy.RESTART_FROM_BEGINNING
        and not run.restart.iterations
        and not before.status.is_complete
        and kept["iteration"]
    ):
        return {**kept, "iteration": kept["iteration"] - 1, "redo": kept["iteration"]}
    if run.restart.step_path[:1] == (attempt.step_id,) and run.restart.iterations:
        return _back_to(work, artifact, run.restart.iterations[0])
    return {**artifact, "redo": 0}


def _back_to(work: Work, artifact: Json, number: int) -> Json:
    """Return the artifact as it was before an iteration of an earlier run."""
    found = work.tools.state.run(artifact["loop_workflow_id"], number)
    if found is None:
        raise ParamError(f"There is no iteration [{number}] to go back to")
    values = {name: found.params[name]["result"] for name in artifact["values"]}
    return {**artifact, "iteration": number - 1, "values": values, "redo": number}


def _after_last(work: Work, attempt: Attempt, artifact: Json) -> tuple[RunStatus, Json]:
    """Return how the last iteration stands, and with which values the next would begin."""
    number = artifact["iteration"]
    if number == 0 or artifact["redo"] == number + 1:
        return RunStatus.SUCCEEDED, artifact
    child = _child(work, attempt, number)
    if child.run.status is not RunStatus.SUCCEEDED or artifact.get("taken") == number:
        return child.run.status, artifact
    values = dict(artifact["values"])
    for step_id in child.blueprint.steps:
        found = child.attempts.get(step_id)
        for name in values.keys() & (found.params.keys() if found else set()):
            values[name] = found.params[name].get("result", values[name]) if found else values[name]
    return child.run.status, {**artifact, "values": values, "taken": number}


def _child(work: Work, attempt: Attempt, number: int) -> RunState:
    for known in work.states.values():
        run = known.run
        if run.parent and run.parent.attempt_uuid == attempt.uuid and run.instance_id == number:
            return known
    found = work.tools.state.child_runs(attempt.uuid, after=number - 1, limit=1)
    return work.state(found[0].uuid, is_fresh=True)


def _goes_on(work: Work, state: RunState, step: WhileStep, attempt: Attempt, artifact: Json) -> bool:
    values = {**artifact["values"], "loop_index": artifact["iteration"]}
    own = {name: loop_param(name, value, _KIND, work.now) for name, value in values.items()}
    return condition_over(work, state, attempt, step.condition, {**params_of(state, attempt), **own})


def _launched(work: Work, state: RunState, attempt: Attempt, artifact: Json) -> Json:
    number = artifact["iteration"] + 1
    if number > ITERATIONS:
        raise ParamError(f"A while loop of more than [{ITERATIONS}] iterations is over the limit")
    values = {**artifact["values"], "loop_index": number - 1}
    before = _earlier(work, artifact, number)
    new_iteration(work, state, attempt, kind=_KIND, number=number, values=values, before=before)
    if work.is_full:
        work.enqueue(NewTask(TaskKind.RUN, state.run.uuid, priority=state.run.priority))
    else:
        work.wake(state.run.uuid)
    return {**artifact, "iteration": number, "redo": 0 if artifact["redo"] == number else artifact["redo"]}


def _earlier(work: Work, artifact: Json, number: int) -> Run | None:
    """Return the latest run of an iteration that an earlier run of the instance has begun."""
    if artifact["redo"] is None:
        return None
    return work.tools.state.run(artifact["loop_workflow_id"], number)
