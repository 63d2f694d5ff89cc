"""While: runs one iteration after another, as long as the condition is true.

An iteration stores its initial values as params. Params of its steps that have the same names overwrite them, and the
result is the input of the next iteration. So the loop only has to remember its last iteration.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition import ITERATIONS
from calve.definition.model import WhileStep
from calve.definition.params import InitiatorType
from calve.engine.attempts import record_outcome
from calve.engine.control_steps.child_runs import Loop, check_depth, loop_param, new_iteration, outcome_of
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import Attempt, Json, Run, RunPolicy, RunStatus
from calve.engine.params import condition_over, params_of
from calve.engine.ports import Outcome, State
from calve.engine.restarts import policy_inside, replaced_by
from calve.errors import OF_THE_WORKFLOW, ParamError

WHILE_KEY = "maestro_while"
Values = Mapping[str, Any]


def progress_while(work: UnitOfWork, state: RunState, step: WhileStep, attempt: Attempt) -> Attempt:
    """Start the next iteration when the last one has ended, or end the step."""
    if work.is_full:
        work.wake(state.run.uuid, priority=state.run.priority)
        return attempt
    loop = Loop(state, attempt, InitiatorType.WHILE)
    try:
        artifact = attempt.artifacts.get(WHILE_KEY) or _begun(work, loop, step)
        last = work.state(artifact["last"], is_fresh=True) if artifact["last"] else None
        status = last.run.status if last else RunStatus.SUCCEEDED
        if status is RunStatus.SUCCEEDED:
            values = _left_by(last, _first_values(loop)) if last else _first_values(loop)
            if _goes_on(work, loop, step.condition, {**values, "loop_index": artifact["iteration"]}):
                artifact, status = _next(work, loop, artifact, values), RunStatus.IN_PROGRESS
    except OF_THE_WORKFLOW as error:
        return record_outcome(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    attempt = work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, WHILE_KEY: artifact}))
    if not status.is_terminal:
        return attempt
    return record_outcome(
        work, state, attempt, outcome_of(status, f"{artifact['iteration']} iterations have run: {status}.")
    )


def _begun(work: UnitOfWork, loop: Loop, step: WhileStep) -> Json:
    """Return the artifact of a new loop; one that replaces an earlier attempt continues where that stopped."""
    check_depth(loop.state)
    replaced = replaced_by(work, loop.state, loop.attempt)
    policy = policy_inside(work, loop.state, step, loop.attempt, replaced)
    artifact = {"loop_workflow_id": loop.name, "iteration": 0, "last": None, "run_policy": policy.value}
    number = 0
    if policy is RunPolicy.RESTART_FROM_SPECIFIC:
        number = loop.state.run.restart.iterations[0]
    elif policy is RunPolicy.RESTART_FROM_INCOMPLETE and replaced is not None:
        number = replaced.artifacts.get(WHILE_KEY, artifact)["iteration"]
    before = work.tools.state.run(loop.name, number) if number else None
    if before is None:
        return artifact
    if policy is RunPolicy.RESTART_FROM_INCOMPLETE and before.status is RunStatus.SUCCEEDED:
        return {**artifact, "iteration": number, "last": before.uuid}
    return _launched(work, loop, artifact, number, _values_of(before, _first_values(loop)), before, policy)


def _first_values(loop: Loop) -> Values:
    found: Values = params_of(loop.state, loop.attempt)["loop_params"].result
    return found


def _values_of(run: Run, names: Values) -> Values:
    """Return the initial values of an iteration."""
    return {name: run.params[name]["result"] if name in run.params else value for name, value in names.items()}


def _left_by(last: RunState, names: Values) -> Values:
    """Return the values after an iteration: its initial ones, overwritten by step params of the same name."""
    values = dict(_values_of(last.run, names))
    for step_id in last.blueprint.steps:
        params = last.attempts[step_id].params if step_id in last.attempts else {}
        values |= {name: params[name]["result"] for name in values.keys() & params.keys()}
    return values


def _goes_on(work: UnitOfWork, loop: Loop, condition: str, values: Values) -> bool:
    own = {name: loop_param(name, value, loop.kind, work.now) for name, value in values.items()}
    known = params_of(loop.state, loop.attempt)
    return condition_over(work, loop.state, loop.attempt, condition, {**known, **own})


def _next(work: UnitOfWork, loop: Loop, artifact: Json, values: Values) -> Json:
    number = artifact["iteration"] + 1
    if number > ITERATIONS:
        raise ParamError(f"A while loop of more than [{ITERATIONS}] iterations is over the limit")
    before = None if loop.is_first else work.tools.state.run(loop.name, number)
    return _launched(work, loop, artifact, number, values, before, RunPolicy.RESTART_FROM_BEGINNING)


def _launched(
    work: UnitOfWork, loop: Loop, artifact: Json, number: int, values: Values, before: Run | None, policy: RunPolicy
) -> Json:
    given = {**values, "loop_index": number - 1}
    made = new_iteration(work, loop, number, given, before=before, policy=policy)
    return {**artifact, "iteration": number, "last": made.run.uuid}
