"""Foreach: its iterations begin in order, as many at once as its window allows."""

from collections.abc import Iterator
from dataclasses import replace

from calve.definition.model.steps import FailureMode, ForeachStep
from calve.definition.model.workflow import DEFAULT_CONCURRENCY
from calve.definition.params import InitiatorType
from calve.engine import loops
from calve.engine.actions import Action
from calve.engine.blueprints import is_leaf
from calve.engine.children import check_depth, loop_name, new_iteration, outcome_of, replaced_by, worst
from calve.engine.ending import end
from calve.engine.facts import params_of
from calve.engine.model import Attempt, Children, Json, NewTask, Pending, Restart, Run, RunPolicy, TaskKind
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus
from calve.engine.work import Work
from calve.errors import CalveError, ParamError

KEY = "maestro_foreach"
LEAVES = 1_000_000
"""How many leaf steps a foreach may come to."""
PAGE = 1_000
_ORDER = (RunStatus.SUCCEEDED, RunStatus.STOPPED, RunStatus.TIMED_OUT, RunStatus.FAILED)
INCOMPLETE = "incomplete"
ALL = "all"
_KIND = InitiatorType.FOREACH


def progress(work: Work, state: RunState, step: ForeachStep, attempt: Attempt) -> Attempt:
    """Begin the iterations for which there is room, and end the step when all are over."""
    try:
        artifact = attempt.artifacts.get(KEY) or _begun(work, state, step, attempt)
        children = work.children(attempt.uuid)
        has_failed = worst(children) is not RunStatus.SUCCEEDED
        if not has_failed:
            artifact, begun = _launched(work, state, attempt, artifact, children)
            children = replace(children, active=children.active + begun)
        elif step.failure_mode is FailureMode.FAIL_IMMEDIATELY and children.active:
            work.pass_down(attempt.uuid, Pending(Action.STOP, at=work.now, is_upstream=True))
    except CalveError as error:
        return end(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    attempt = work.set_attempt(state, replace(attempt, artifacts={**attempt.artifacts, KEY: artifact}))
    if children.active or (artifact["launched"] < artifact["total"] and not has_failed):
        return attempt
    return _ended(work, state, attempt, artifact, children)


def _begun(work: Work, state: RunState, step: ForeachStep, attempt: Attempt) -> Json:
    check_depth(state)
    total = loops.count(_lists(state, attempt))
    leaves = total * sum(is_leaf(inner) for inner in step.steps)
    if leaves > LEAVES:
        raise ParamError(f"The foreach comes to [{leaves}] steps, more than the limit of [{LEAVES}]")
    properties = state.run.properties
    usual = properties.get("step_concurrency") or DEFAULT_CONCURRENCY
    of_tree = properties.get("instance_step_concurrency") or usual
    return {
        "loop_workflow_id": loop_name(state, step.id, _KIND),
        "total": total,
        "launched": 0,
        "concurrency": step.concurrency or min(usual, of_tree),
        "redo": _redo(work, state, attempt),
    }


def _lists(state: RunState, attempt: Attempt) -> loops.Lists:
    found: loops.Lists = params_of(state, attempt)["loop_params"].result
    return found


def _launched(work: Work, state: RunState, attempt: Attempt, artifact: Json, children: Children) -> tuple[Json, int]:
    """Begin what there is room for; return the artifact after that, and how many iterations began."""
    lists, room, launched = _lists(state, attempt), artifact["concurrency"] - children.active, artifact["launched"]
    begun = 0
    if room > 0:
        for number, before, is_needed in _ahead(work, artifact):
            if begun >= room or work.is_full:
                break
            launched = number
            if is_needed:
                values = {**loops.values_at(lists, number - 1), "loop_index": number - 1}
                restart = _inner_restart(state) if before else None
                new_iteration(
                    work, state, attempt, kind=_KIND, number=number, values=values, before=before, restart=restart
                )
                begun += 1
    if work.is_full and launched < artifact["total"]:
        work.enqueue(NewTask(TaskKind.RUN, state.run.uuid, priority=state.run.priority))
    elif begun:
        work.wake(state.run.uuid)  # iterations that end at once make room for others
    return {**artifact, "launched": launched}, begun


def _ahead(work: Work, artifact: Json) -> Iterator[tuple[int, Run | None, bool]]:
    """Yield the iterations that have not begun: number, latest run if there was one, and whether to run it (again)."""
    redo, number = artifact.get("redo"), artifact["launched"]
    while number < artifact["total"]:
        earlier = work.tools.state.latest_inline(artifact["loop_workflow_id"], after=number, limit=PAGE) if redo else []
        known = {run.instance_id: run for run in earlier}
        for number in range(number + 1, min(number + PAGE, artifact["total"]) + 1):  # noqa: B020 - pages
            before = known.get(number)
            yield number, before, redo in {None, ALL, number} or (redo == INCOMPLETE and not _is_done(before))


def _is_done(before: Run | None) -> bool:
    return before is not None and before.status is RunStatus.SUCCEEDED


def _redo(work: Work, state: RunState, attempt: Attempt) -> str | int | None:
    """Return which iterations run again where an earlier attempt has run some; nothing, if there was none."""
    run, before = state.run, replaced_by(work, state, attempt)
    if before is None:
        return None
    if run.policy is RunPolicy.RESTART_FROM_SPECIFIC and run.restart.step_path[:1] == (attempt.step_id,):
        return run.restart.iterations[0] if run.restart.iterations else ALL
    is_resumed = run.policy is not RunPolicy.RESTART_FROM_BEGINNING and not before.status.is_complete
    return INCOMPLETE if is_resumed else ALL


def _others(work: Work, artifact: Json) -> Iterator[RunStatus]:
    for first in range(0, artifact["total"], PAGE):
        runs = work.tools.state.latest_inline(artifact["loop_workflow_id"], after=first, limit=PAGE)
        yield from (
            run.status for run in runs if run.instance_id <= first + PAGE and run.instance_id != artifact["redo"]
        )


def _inner_restart(state: RunState) -> Restart:
    """Return what is left of a restart's path inside the loop."""
    restart = state.run.restart
    return replace(restart, step_path=restart.step_path[1:], iterations=restart.iterations[1:])


def _ended(work: Work, state: RunState, attempt: Attempt, artifact: Json, children: Children) -> Attempt:
    status = worst(children)
    if isinstance(artifact["redo"], int):  # the others stay as they were, and so may their failures
        status = max((status, *_others(work, artifact)), key=_ORDER.index)
    told = f"{artifact['launched']} of {artifact['total']} iterations have run: {status}."
    return end(work, state, attempt, outcome_of(status, told))
