"""What a restart runs again, and what it leaves as it is."""

from collections.abc import Mapping
from dataclasses import replace

from calve.definition.model.steps import SubworkflowStep
from calve.engine.dag import Dag
from calve.engine.model import Attempt, Json, Restart, Run, RunPolicy
from calve.engine.states import RunState
from calve.engine.work import Work


def run_again(dag: Dag, attempts: Mapping[str, Attempt], policy: RunPolicy, restart: Restart) -> frozenset[str]:
    """Return the steps that a restart runs again, given the newest attempt of each step over all earlier runs."""
    if policy in {RunPolicy.RESTART_FROM_BEGINNING, RunPolicy.START_FRESH_NEW_RUN}:
        return frozenset(dag.successors)
    if policy is RunPolicy.RESTART_FROM_SPECIFIC:
        return dag.with_descendants(restart.step_path[:1])
    incomplete = {
        step_id
        for step_id in dag.successors
        if step_id not in attempts or not attempts[step_id].status.is_complete or step_id in restart.skip
    }
    return dag.with_descendants(incomplete)


def carry_over(work: Work, state: RunState) -> None:
    """Take over the steps of earlier runs that a restart leaves as they are; the others lose their places."""
    run = state.run
    known = _known(work, run)
    anew = run_again(state.blueprint.dag, known, run.policy, run.restart)
    kept = {step_id: attempt for step_id, attempt in known.items() if step_id not in anew}
    replaced = {step_id: attempt for step_id, attempt in known.items() if step_id in anew}
    state.attempts = dict(kept)
    state.were |= {attempt.uuid: attempt.status for attempt in kept.values()}
    for attempt in replaced.values():
        supersede(work, attempt)
    work.set_run(
        state,
        carried={step_id: attempt.uuid for step_id, attempt in kept.items()},
        restart=replace(run.restart, replaced={step_id: attempt.uuid for step_id, attempt in replaced.items()}),
    )


def _known(work: Work, run: Run) -> Mapping[str, Attempt]:
    """Return the newest attempt of each step over all runs of the instance before this one."""
    before = work.tools.state.run(run.workflow_id, run.instance_id, run.run_id - 1)
    return work.state(before.uuid, is_fresh=True).attempts if before else {}


def supersede(work: Work, attempt: Attempt) -> None:
    """Have an attempt, of whatever run, no longer count: another one takes its place."""
    holder = work.state(attempt.run_uuid, is_fresh=True)
    work.set_old_attempt(holder, replace(attempt, is_superseded=True, due_at=None))


def is_skipped(state: RunState, step_id: str) -> bool:
    """Tell whether a restart skips a step."""
    return step_id in state.run.restart.skip and _is_meant(state)


def changed_params(state: RunState, step_id: str) -> Json:
    """Return what a restart changes about the params of a step."""
    changed = state.run.restart.step_params.get(step_id, {})
    return changed if changed and _is_meant(state) else {}


def _is_meant(state: RunState) -> bool:
    """Tell whether the steps that a restart names are of this workflow: if its path leads into another one, of that."""
    steps = {step.id: step for step in state.blueprint.workflow.all_steps()}
    return not any(isinstance(steps.get(step_id), SubworkflowStep) for step_id in state.run.restart.step_path[:-1])
