"""What a restart runs again, and what it leaves as it is."""

from collections.abc import Mapping
from dataclasses import replace

from calve.definition.model.steps import SubworkflowStep
from calve.engine.model import Attempt, Json
from calve.engine.restart_plans import NOTHING_NEW, News, obstacles, run_again
from calve.engine.states import RunState
from calve.engine.work import Work
from calve.errors import RequestInvalid


def inherit(work: Work, state: RunState) -> Mapping[str, Attempt]:
    """Take over all that earlier runs of the instance have done, until it is decided what runs again; return it."""
    run = state.run
    before = work.tools.state.run(run.workflow_id, run.instance_id, run.run_id - 1)
    known = work.state(before.uuid, is_fresh=True).attempts if before else {}
    _keep(work, state, {step_id: known[step_id] for step_id in known if step_id in state.blueprint.steps})
    return known


def _keep(work: Work, state: RunState, kept: Mapping[str, Attempt]) -> None:
    state.attempts = dict(kept)
    state.were |= {attempt.uuid: attempt.status for attempt in kept.values()}
    work.set_run(state, carried={step_id: attempt.uuid for step_id, attempt in kept.items()})


def carry_over(work: Work, state: RunState, known: Mapping[str, Attempt], news: News = NOTHING_NEW) -> None:
    """Take over the steps of earlier runs that a restart leaves as they are; the others lose their places.

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
    """Refuse to run steps again with another version if what they did cannot be done again.

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


def _with_edges(work: Work, attempt: Attempt, news: News) -> Attempt:
    """Return an attempt of an earlier run with the ways that lead on from it in the version of this one."""
    if attempt.step_id not in news.edges:
        return attempt
    judged = replace(attempt, edges=dict(news.edges[attempt.step_id]))
    work.set_old_attempt(work.state(attempt.run_uuid, is_fresh=True), judged)
    return judged


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
