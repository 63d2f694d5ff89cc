"""Foreach: starts its iterations in order, as many concurrently as its window allows.

With ``strict_ordering``, the window covers consecutive iterations from the oldest unfinished one: with a window of 10,
iteration 11 starts only when iteration 1 has ended, so that no iteration gets far ahead of the others.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from calve.definition import LoopLists, count_iterations, iteration_values
from calve.definition.model import DEFAULT_CONCURRENCY, FailureMode, ForeachStep
from calve.definition.params import InitiatorType
from calve.engine.attempts import record_outcome
from calve.engine.control_steps.child_runs import Loop, check_depth, new_iteration, outcome_of, worst
from calve.engine.instances import RunState, UnitOfWork, is_leaf
from calve.engine.model import Action, Attempt, Children, Json, Pending, Run, RunPolicy, RunStatus
from calve.engine.params import params_of
from calve.engine.ports import Outcome, State
from calve.engine.restarts import began_with, has_changed, policy_inside, replaced_by
from calve.errors import OF_THE_WORKFLOW, ParamError

FOREACH_KEY = "maestro_foreach"
LEAVES = 1_000_000
"""The most leaf steps that a foreach may have in all of its iterations."""
PAGE = 1_000
_ORDER = (RunStatus.SUCCEEDED, RunStatus.STOPPED, RunStatus.TIMED_OUT, RunStatus.FAILED)
_LIVE = tuple(status for status in RunStatus if not status.is_terminal)


def progress_foreach(work: UnitOfWork, state: RunState, step: ForeachStep, attempt: Attempt) -> Attempt:
    """Start the iterations that fit into the window, and end the step when all have ended."""
    loop = Loop(state, attempt, InitiatorType.FOREACH)
    try:
        artifact = attempt.artifacts.get(FOREACH_KEY) or _begun(work, loop, step)
    except OF_THE_WORKFLOW as error:
        return record_outcome(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    children = work.children(attempt.uuid)
    is_failing = worst(children) is not RunStatus.SUCCEEDED
    if not is_failing:
        artifact, begun = _launched(work, loop, step, artifact, children)
        children = replace(children, active=children.active + begun)
    elif step.failure_mode is FailureMode.FAIL_IMMEDIATELY and children.active:
        work.pass_down(attempt.uuid, Pending(Action.KILL, at=work.now, reason="another iteration failed"))
    attempt = work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, FOREACH_KEY: artifact}))
    if children.active or (artifact["launched"] < artifact["total"] and not is_failing):
        return attempt
    return _ended(work, state, attempt, artifact, children)


def _begun(work: UnitOfWork, loop: Loop, step: ForeachStep) -> Json:
    check_depth(loop.state)
    total = count_iterations(_lists(loop))
    leaves = total * sum(is_leaf(inner) for inner in step.steps)
    if leaves > LEAVES:
        raise ParamError(f"The foreach has [{leaves}] steps, more than the limit of [{LEAVES}]")
    properties = loop.state.run.properties
    usual = properties.get("step_concurrency") or DEFAULT_CONCURRENCY
    of_tree = properties.get("instance_step_concurrency") or usual
    replaced = replaced_by(work, loop.state, loop.attempt)
    return {
        "loop_workflow_id": loop.name,
        "total": total,
        "launched": 0,
        "concurrency": step.concurrency or min(usual, of_tree),
        "run_policy": policy_inside(work, loop.state, step, loop.attempt, replaced).value,
    }


def _lists(loop: Loop) -> LoopLists:
    found: LoopLists = params_of(loop.state, loop.attempt)["loop_params"].result
    return found


def _launched(work: UnitOfWork, loop: Loop, step: ForeachStep, artifact: Json, children: Children) -> tuple[Json, int]:
    """Start as many iterations as the window allows; return the new artifact, and how many were started."""
    run = loop.state.run
    room = artifact["concurrency"] - _under_way(work, loop, step, artifact, children)
    if room <= 0:
        return artifact, 0
    launched, begun = artifact["total"], 0
    for number, before, values, policy in _ahead(work, loop, step, artifact):
        if begun == room or work.is_full:
            launched = number - 1
            break
        new_iteration(work, loop, number, values, before=before, policy=policy)
        begun += 1
    if begun or work.is_full:
        work.wake(run.uuid, priority=run.priority)  # iterations that end at once make room for others
    return {**artifact, "launched": launched}, begun


def _under_way(work: UnitOfWork, loop: Loop, step: ForeachStep, artifact: Json, children: Children) -> int:
    """Return how many places of the window are taken."""
    if not step.strict_ordering or not children.active:
        return children.active
    kept = work.tools.state.child_runs(loop.attempt.uuid, statuses=_LIVE, limit=1)
    made = [state.run for state in work.made_by(loop.attempt.uuid) if not state.run.status.is_terminal]
    oldest: int = min(run.instance_id for run in (*kept, *made))
    span: int = artifact["launched"] - oldest + 1
    return span


def _ahead(
    work: UnitOfWork, loop: Loop, step: ForeachStep, artifact: Json
) -> Iterator[tuple[int, Run | None, dict[str, Any], RunPolicy]]:
    """Yield the iterations still to start, in order: number, latest run if any, loop params, run policy."""
    lists, total, policy = _lists(loop), artifact["total"], RunPolicy(artifact["run_policy"])
    for first in range(artifact["launched"], total, PAGE):
        runs = [] if loop.is_first else work.tools.state.latest_inline(loop.name, after=first, limit=PAGE)
        known = {run.instance_id: run for run in runs}
        for number in range(first + 1, min(first + PAGE, total) + 1):
            before = known.get(number)
            values = {**iteration_values(lists, number - 1), "loop_index": number - 1}
            own = policy if before is None else _policy_of(work, loop, step, policy, before, values)
            if own is not None:
                yield number, before, values, own


def _policy_of(
    work: UnitOfWork, loop: Loop, step: ForeachStep, policy: RunPolicy, before: Run, values: dict[str, Any]
) -> RunPolicy | None:
    """Return the run policy of an iteration that has run before; None if its result is kept."""
    run = loop.state.run
    match policy:
        case RunPolicy.RESTART_FROM_SPECIFIC:
            return policy if before.instance_id == run.restart.iterations[0] else None
        case RunPolicy.RESTART_FROM_INCOMPLETE:
            if run.restart.is_latest and not began_with(before, values):
                return RunPolicy.RESTART_FROM_BEGINNING
            is_new = run.restart.is_latest and has_changed(work, loop.state, step, before)
            return policy if is_new or before.status is not RunStatus.SUCCEEDED else None
        case _:
            return policy


def _ended(work: UnitOfWork, state: RunState, attempt: Attempt, artifact: Json, children: Children) -> Attempt:
    status = worst(children)
    if RunPolicy(artifact["run_policy"]) is RunPolicy.RESTART_FROM_SPECIFIC:
        status = max((status, *_left_alone(work, state, artifact)), key=_ORDER.index)
    told = f"{artifact['launched']} of {artifact['total']} iterations have run: {status}."
    return record_outcome(work, state, attempt, outcome_of(status, told))


def _left_alone(work: UnitOfWork, state: RunState, artifact: Json) -> Iterator[RunStatus]:
    """Yield the statuses of the iterations that a restart did not run again; their failures still count."""
    again, after = state.run.restart.iterations[0], 0
    while page := work.tools.state.latest_inline(artifact["loop_workflow_id"], after=after, limit=PAGE):
        yield from (run.status for run in page if run.instance_id != again)
        after = page[-1].instance_id
