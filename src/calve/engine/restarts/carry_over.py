"""What a restart keeps from earlier runs, and what it replaces."""

from collections.abc import Mapping
from dataclasses import replace

from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import Attempt, Run, RunPolicy
from calve.engine.restarts.plan import NO_CHANGES, VersionChanges, obstacles, run_again
from calve.errors import RequestInvalid


def inherit(work: UnitOfWork, state: RunState) -> Mapping[str, Attempt]:
    """Carry over the attempts of all steps from the previous run, before it is decided which run again; return them."""
    run = state.run
    before = work.tools.state.run(run.workflow_id, run.instance_id, run.run_id - 1)
    # Fresh: the run before may have been changed by another worker since it was cached here.
    known = work.state(before.uuid, is_fresh=True).attempts if before else {}
    _keep(work, state, {step_id: known[step_id] for step_id in known if step_id in state.blueprint.steps})
    return known


def _keep(work: UnitOfWork, state: RunState, kept: Mapping[str, Attempt]) -> None:
    state.attempts = dict(kept)
    state.were |= {attempt.uuid: attempt.status for attempt in kept.values()}
    work.set_run(state, carried={step_id: attempt.uuid for step_id, attempt in kept.items()})


def carry_over_steps(
    work: UnitOfWork, state: RunState, known: Mapping[str, Attempt], news: VersionChanges = NO_CHANGES
) -> None:
    """Carry over the steps that a restart keeps, and supersede the attempts of the others.

    Raises:
        RequestInvalid: a step would have to run again that cannot.
    """
    run = state.run
    anew = run_again(state.blueprint.dag, known, run.policy, run.restart, news)
    if run.restart.is_latest:
        check_obstacles(state, known, anew)
    kept = {step_id: attempt for step_id, attempt in state.attempts.items() if step_id not in anew}
    replaced = {step_id: attempt for step_id, attempt in known.items() if step_id not in kept}
    _keep(work, state, {step_id: _with_edges(work, attempt, news) for step_id, attempt in kept.items()})
    for attempt in replaced.values():
        supersede(work, attempt)
    uuids = {step_id: attempt.uuid for step_id, attempt in replaced.items()}
    work.set_run(state, restart=replace(run.restart, replaced=uuids))


def check_obstacles(state: RunState, known: Mapping[str, Attempt], again: frozenset[str]) -> None:
    """Refuse to run steps again with another version if their work cannot be done again.

    Raises:
        RequestInvalid: there is such a step.
    """
    found = obstacles(state.blueprint.steps, state.blueprint.dag, known, again)
    if not found:
        return
    run = state.outermost.run
    told = "; ".join(f"{step_id} cannot run again: {why}" for step_id, why in found.items())
    keep = " ".join(f"--keep {step_id}" for step_id in (*run.restart.keep, *found))
    raise RequestInvalid(
        f"{run.workflow_id} instance {run.instance_id} cannot continue with version {run.version_id} like this: "
        f"{told}.",
        remedy="To keep what they did and continue after them: "
        f"calve restart {run.workflow_id} {run.instance_id} --latest {keep}. "
        "Their new definitions then apply from the next instance on.",
        steps=sorted(found),
    )


def _with_edges(work: UnitOfWork, attempt: Attempt, news: VersionChanges) -> Attempt:
    """Return an attempt of an earlier run with its transitions evaluated as in this run's version."""
    if attempt.step_id not in news.edges:
        return attempt
    judged = replace(attempt, edges=dict(news.edges[attempt.step_id]))
    work.set_old_attempt(work.state(attempt.run_uuid, is_fresh=True), judged)
    return judged


def supersede(work: UnitOfWork, attempt: Attempt) -> None:
    """Mark an attempt, of any run, as superseded by another one."""
    holder = work.state(attempt.run_uuid, is_fresh=True)
    work.set_old_attempt(holder, replace(attempt, is_superseded=True, due_at=None))


REPLACED = "calve_replaced"
"""The artifact that names the attempt that this one replaces in the same run."""


def leads_into(run: Run, step_id: str) -> bool:
    """Tell whether a run restarts from a step inside another step."""
    path = run.restart.step_path
    return run.policy is RunPolicy.RESTART_FROM_SPECIFIC and len(path) > 1 and path[0] == step_id


def replaced_by(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt | None:
    """Return the attempt of this run or an earlier one that an attempt replaces; None if it is the first."""
    uuid = attempt.artifacts.get(REPLACED) or state.run.restart.replaced.get(attempt.step_id)
    return work.tools.state.attempt(uuid) if uuid else None


def inner_policy(state: RunState, attempt: Attempt, replaced: Attempt | None) -> RunPolicy:
    """Return what the runs inside a step take over from those of the attempt that it replaces."""
    if replaced is None:
        return RunPolicy.START_FRESH_NEW_RUN
    if REPLACED in attempt.artifacts:
        return RunPolicy.RESTART_FROM_INCOMPLETE
    if leads_into(state.run, attempt.step_id):
        return RunPolicy.RESTART_FROM_SPECIFIC
    is_meant = state.run.policy is RunPolicy.RESTART_FROM_INCOMPLETE or state.run.restart.step_path == (
        attempt.step_id,
    )
    if is_meant and not replaced.status.is_complete:
        return RunPolicy.RESTART_FROM_INCOMPLETE
    return RunPolicy.RESTART_FROM_BEGINNING
