"""What changed about the steps of an instance that continues with another version of its workflow."""

from collections.abc import Mapping
from typing import Any

from calve.definition import (
    around_body,
    body_differences,
    condition_depends_on,
    depends_on,
    file_here,
    step_differences,
)
from calve.definition.model import ForeachStep, ParamMode, Step, WhileStep, walked
from calve.definition.params import Parameter, essence, needs
from calve.definition.step_types import named_files
from calve.engine.instances import Params, RunState, UnitOfWork, type_of
from calve.engine.model import LAST, Attempt, Run, RunPolicy, StepStatus
from calve.engine.params import condition_holds, params_from_stored, run_params
from calve.engine.restarts.carry_over import REPLACED, inner_policy
from calve.engine.restarts.plan import NO_CHANGES, VersionChanges


def changes_since(work: UnitOfWork, state: RunState, known: Mapping[str, Attempt]) -> VersionChanges:
    """Return what changed about steps since their attempts ran; the params of the run must be evaluated already.

    Raises:
        ParamError, ExpressionError: a condition of a kept step cannot be evaluated.
    """
    if not state.run.restart.is_latest:
        return NO_CHANGES
    changes: dict[str, str] = {}
    edges: dict[str, Mapping[str, bool]] = {}
    for step_id, step in state.blueprint.steps.items():
        attempt = known.get(step_id)
        if attempt is None or not attempt.status.is_complete:
            continue
        past = work.state(attempt.run_uuid, is_fresh=True)
        names = changed_names(_of_instance(past), _of_instance(state))
        changed = _changed(past.blueprint.steps[step_id], step, names)
        written = _written_since(work, step, attempt.times.get("start", 0))
        if changed or written:
            changes[step_id] = ", ".join(filter(None, (changed, *written)))
        elif attempt.status is not StepStatus.UNSATISFIED and _leads_elsewhere(past, step, names):
            edges[step_id] = _edges(work, state, step, attempt)
    return VersionChanges(changes, edges)


def _of_instance(state: RunState) -> Params:
    return run_params(state.outermost)


def changed_names(older: Mapping[str, Parameter], newer: Mapping[str, Parameter]) -> frozenset[str]:
    """Return the params of an instance whose result differs from that of an earlier run, or that only one run has."""
    names = older.keys() | newer.keys()
    differ = {name for name in names if not (name in older and name in newer and _same(older[name], newer[name]))}
    evaluated_anew = {
        name
        for name in differ & older.keys() & newer.keys()
        if newer[name].mode is ParamMode.IMMUTABLE
        and essence(older[name].definition) == essence(newer[name].definition)
    }
    # Each run evaluates an IMMUTABLE param again; this counts as a change only if it depends on something that changed.
    others = differ - evaluated_anew
    return frozenset(others | {name for name in evaluated_anew if others & set(needs(newer[name].definition))})


def _same(one: Parameter, other: Parameter) -> bool:
    return one.result == other.result and one.type is other.type


def _changed(older: Step, newer: Step, names: frozenset[str]) -> str:
    """Describe what changed about a step; empty if it would do the same again."""
    found = (*step_differences(older, newer), *(f"param {name}" for name in depends_on(newer, names)))
    return ", ".join(found)


def _written_since(work: UnitOfWork, step: Step, at: int) -> list[str]:
    """Return the files that a step, or one inside it, reads and that were modified since."""
    types, files = work.tools.vocabulary.types, work.tools.files
    paths = [named.path for each in walked((step,)) for named in named_files(types.find(type_of(each)), each.params)]
    return [f"file {path}" for path in paths if (file := file_here(files, path)) and file.modified_at > at]


def _leads_elsewhere(past: RunState, step: Step, names: frozenset[str]) -> bool:
    ways = step.transition.successors
    before = past.blueprint.steps[step.id].transition.successors
    return ways != before or any(condition_depends_on(condition, names) for condition in ways.values())


def _edges(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> dict[str, bool]:
    """Evaluate again which steps may follow a kept step."""
    return {
        target: LAST not in attempt.artifacts and condition_holds(work, state, attempt, condition)
        for target, condition in step.transition.successors.items()
    }


def policy_inside(
    work: UnitOfWork, state: RunState, step: Step, attempt: Attempt, replaced: Attempt | None
) -> RunPolicy:
    """Return what the runs inside a step take over from those of the attempt that it replaces.

    With another version, they continue with what is incomplete or has changed. They start from the beginning if a step
    before this one ran again, or if the params around the iterations of a loop have changed.
    """
    policy = inner_policy(state, attempt, replaced)
    if replaced is None or not state.run.restart.is_latest or REPLACED in attempt.artifacts:
        return policy
    is_kept_before = all(source in state.run.carried for source in state.blueprint.dag.predecessors[step.id])
    past = work.state(replaced.run_uuid, is_fresh=True)
    older = past.blueprint.steps[step.id]
    names = changed_names(_of_instance(past), _of_instance(state))
    is_anew = not is_kept_before or older.kind != step.kind
    if isinstance(step, WhileStep):
        is_anew = is_anew or bool(_changed(older, step, names))
    elif isinstance(step, ForeachStep) and isinstance(older, ForeachStep):
        is_anew = is_anew or bool(_changed(around_body(older), around_body(step), names))
    return RunPolicy.RESTART_FROM_BEGINNING if is_anew else RunPolicy.RESTART_FROM_INCOMPLETE


def has_changed(work: UnitOfWork, state: RunState, step: ForeachStep, before: Run) -> bool:
    """Tell whether the steps of a foreach may act differently than in an iteration that has run."""
    older = next(
        found
        for found in work.tools.blueprints.get(before.owner_workflow, before.version_id).workflow.all_steps()
        if found.id == step.id
    )
    assert before.parent is not None  # noqa: S101 - an iteration has one
    past = work.state(before.parent.run_uuid)
    names = changed_names(_of_instance(past), _of_instance(state))
    return bool(
        body_differences(older, step)
        or any(depends_on(inner, names) for inner in step.steps)
        or _written_since(work, step, before.started_at or 0)
    )


def began_with(before: Run, values: Mapping[str, Any]) -> bool:
    """Tell whether an iteration ran with these loop params."""
    return {name: param.result for name, param in params_from_stored(before.params).items()} == dict(values)
