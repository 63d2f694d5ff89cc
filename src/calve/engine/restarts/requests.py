"""Restarting instances and steps."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calve.definition import given_params
from calve.definition.model import FailureMode, Step
from calve.engine.attempts import finish_attempt, new_attempt
from calve.engine.instances import (
    Address,
    Dag,
    RunState,
    Tools,
    UnitOfWork,
    find,
    find_run,
    known_workflow,
    restarted_run,
    unknown_run_params,
    unknown_step_params,
)
from calve.engine.model import (
    RUN_ACTIONS,
    STEP_ACTIONS,
    Action,
    Attempt,
    Changes,
    Initiator,
    Json,
    Restart,
    Run,
    RunPolicy,
    RunStatus,
    Start,
    Started,
    StartStatus,
    StepStatus,
    action_refused,
)
from calve.engine.params import definitions_of, evaluate_run, merged_run_params, written
from calve.engine.restarts.carry_over import REPLACED, check_obstacles, supersede
from calve.engine.restarts.plan import CAPTURES, PlannedStep, RestartPlan, obstacles, plan_steps
from calve.engine.restarts.version_changes import changes_since
from calve.engine.starts import check_param_size, unknown_param_warnings
from calve.errors import ActionRefused, RequestInvalid
from calve.texts import check_text

_PARAMS = (("params", "step_params"), ("definitions", "step_definitions"))
"""The arguments of a restart that change params: plain values, and definitions in JSON's types."""


def restart(
    tools: Tools,
    address: Address,
    *,
    skip: tuple[str, ...] = (),
    request_id: str | None = None,
    is_latest: bool = False,
    **request: Any,
) -> Started:
    """Run an instance again: its incomplete steps, everything, or from the step that the address names.

    Params, of the run or by step, are plain values, or definitions in JSON's types. The initiator must be allowed
    to start what the run starts because of such params; it defaults to the initiator of the instance.

    Args:
        tools: the engine's tools.
        address: the instance, or a step of it.
        skip: steps that are skipped rather than run again.
        request_id: an idempotency key.
        is_latest: continue with the latest version; keep steps that succeeded and did not change.
        request: ``policy``, ``params``, ``definitions``, ``step_params``, ``step_definitions``, ``keep`` (steps whose
            results are kept although they changed), ``initiator``, and whether to ``refuse_unknown_params``.

    Raises:
        WorkflowMissing: the instance or the step does not exist.
        ActionRefused: it has not ended, or a capture that it would continue with was abandoned.
        RequestInvalid: no step would run again, a step would run again that cannot, or a param is unknown and
            unknown ones are refused.
        ParamError: the params are invalid.
    """
    _check_given({**request, "skip": skip, "request_id": request_id})
    before = find_run(tools.state, replace(address, run_id=None))
    if request_id is not None and before.request_id == request_id:
        return Started(StartStatus.DUPLICATED, before)
    _check_whole(address, before)
    if not before.status.is_terminal:
        if address.path and not is_latest:
            if any(request.get(name) for names in _PARAMS for name in names):
                raise RequestInvalid(
                    f"The params of {address} cannot be changed while the instance runs.",
                    remedy="Restart the step without params, or wait until the instance has ended.",
                )
            return Started(StartStatus.CREATED, _in_place(tools, address, is_skipped=bool(skip)))
        raise action_refused(str(address), Action.RESTART, before.status, RUN_ACTIONS[before.status])
    prepared = _prepared_restart(tools, address, before, skip=skip, is_latest=is_latest, **request)
    prepared.check(tools, address)
    run = replace(prepared.run, request_id=request_id)
    started = tools.state.commit(Changes(starts=[Start(run, is_restart=True)])).started[0]
    return replace(started, warnings=prepared.warnings)


def plan_restart(
    tools: Tools, address: Address, *, skip: tuple[str, ...] = (), is_latest: bool = False, **request: Any
) -> RestartPlan:
    """Return what a restart would keep and run again, and why it would be refused; arguments as for ``restart``."""
    before = find_run(tools.state, replace(address, run_id=None))
    _check_whole(address, before)
    if not before.status.is_terminal:
        raise action_refused(str(address), Action.RESTART, before.status, RUN_ACTIONS[before.status])
    prepared = _prepared_restart(tools, address, before, skip=skip, is_latest=is_latest, **request)
    refusal = ""
    try:
        prepared.check(tools, address)
    except (RequestInvalid, ActionRefused) as error:
        refusal = f"{error.message} {error.remedy}"
    return RestartPlan(before.version_id, prepared.run.version_id, prepared.steps, refusal)


def _check_given(request: Mapping[str, Any]) -> None:
    """Refuse params that no run could have, and texts with invalid characters.

    Raises:
        ParamError, RequestInvalid: a value is invalid.
    """
    check_param_size({**(request.get("params") or {}), **(request.get("definitions") or {})})
    for params, step_params in _PARAMS:
        check_text({"run_params": request.get(params), "step_run_params": request.get(step_params)})
    check_text({name: request.get(name) for name in ("skip", "keep", "request_id")})


def _check_whole(address: Address, run: Run) -> None:
    if run.is_inline:
        raise RequestInvalid(
            f"{address} is an iteration.", remedy="Restart the instance that contains it, with a path."
        )


@dataclass(frozen=True, slots=True)
class _Again:
    """A prepared run that restarts an instance, and what it keeps."""

    run: Run
    state: RunState
    known: Mapping[str, Attempt]
    steps: tuple[PlannedStep, ...]
    warnings: tuple[Json, ...]
    """Warnings about unknown params."""

    def check(self, tools: Tools, address: Address) -> None:
        """Refuse a restart that would run nothing, or could not be exact."""
        again = frozenset(step.step_id for step in self.steps if step.fate.runs)
        if not again:
            raise _nothing_to_run(address, self.run)
        if self.run.restart.is_latest:
            check_obstacles(self.state, self.known, again)
        dag = self.state.blueprint.dag
        kept = {
            step_id: attempt
            for step_id, attempt in self.known.items()
            if step_id in dag.successors and step_id not in again
        }
        waiting = dag.with_descendants(step_id for step_id, attempt in kept.items() if not attempt.status.is_complete)
        for step_id, attempt in kept.items():
            if attempt.type in CAPTURES and (dag.with_descendants([step_id]) & again) - waiting:
                _check_capture(tools, self.run, attempt)


def _check_capture(tools: Tools, run: Run, attempt: Attempt) -> None:
    """Refuse to continue with an abandoned capture.

    Raises:
        ActionRefused: the capture was abandoned.
    """
    found = tools.superseded(str(attempt.artifacts.get("capture_id", "")))
    if found is not None:
        name = f"{run.workflow_id} instance {run.instance_id}"
        raise ActionRefused(
            f"{name} cannot continue where it stopped: {found.message}",
            remedy=found.remedy("--latest " if run.restart.is_latest else ""),
        )


def _nothing_to_run(address: Address, run: Run) -> RequestInvalid:
    if run.restart.is_latest:
        return RequestInvalid(
            f"All steps of {address} are complete, and version {run.version_id} changes none of them.",
            remedy="To run a step again, name it with --step; to run all, use --from-beginning.",
        )
    return RequestInvalid(
        f"All steps of {address} are complete.", remedy="Restart it from the beginning, or name a step."
    )


def _prepared_restart(
    tools: Tools,
    address: Address,
    before: Run,
    *,
    policy: RunPolicy = RunPolicy.RESTART_FROM_INCOMPLETE,
    params: Mapping[str, Any] | None = None,
    definitions: Json | None = None,
    step_params: Mapping[str, Mapping[str, Any]] | None = None,
    step_definitions: Mapping[str, Json] | None = None,
    skip: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    is_latest: bool = False,
    initiator: Initiator | None = None,
    refuse_unknown_params: bool = False,
) -> _Again:
    _check_request(address, policy, keep, is_latest=is_latest)
    now = tools.clock()
    number = known_workflow(tools, before.workflow_id).latest_version if is_latest else before.version_id
    blueprint = tools.blueprints.get(before.owner_workflow, number)
    holder = replace(before, version_id=number) if is_latest else find(tools.state, replace(address, run_id=None)).run
    steps = _steps_of(tools, holder)
    changed = {
        step_id: written(given_params(given, steps[step_id].params if step_id in steps else {}))
        for step_id, given in (step_params or {}).items()
    }
    for step_id, defined in (step_definitions or {}).items():
        changed[step_id] = {**changed.get(step_id, {}), **written(definitions_of(defined))}
    for step_id in (*changed, *skip, *keep, *address.steps[-1:]):
        if step_id not in steps:
            raise RequestInvalid(
                f"Workflow {holder.owner_workflow} has no step {step_id}.", remedy=f"It has {', '.join(steps)}."
            )
    run = restarted_run(
        before,
        uuid=tools.new_id(),
        policy=RunPolicy.RESTART_FROM_SPECIFIC if address.path else policy,
        run_params={**written(given_params(params or {}, blueprint.workflow.params)), **(definitions or {})},
        restart=Restart(address.steps, address.iterations, changed, skip, is_latest=is_latest, keep=keep),
        now=now,
        version_id=number,
        initiator=before.initiator if initiator is None else replace(before.initiator, within=initiator.within),
    )
    work, state = UnitOfWork(tools, now), RunState(run, blueprint, {})
    known = work.state(before.uuid, is_fresh=True).attempts
    if is_latest:
        state.attempts = {step_id: attempt for step_id, attempt in known.items() if step_id in blueprint.steps}
        state.params = evaluate_run(work, state)
    else:
        merged_run_params(work, state)
    planned = plan_steps(blueprint.dag, known, run.policy, run.restart, changes_since(work, state, known))
    _check_kept(address, keep, known, blueprint.dag)
    unknown = [*unknown_run_params(tools, run, before), *unknown_step_params(tools, holder, changed)]
    warnings = unknown_param_warnings(unknown, is_refused=refuse_unknown_params)
    return _Again(run, state, known, _with_obstacles(state, known, planned), warnings)


def _check_request(address: Address, policy: RunPolicy, keep: tuple[str, ...], *, is_latest: bool) -> None:
    if keep and not is_latest:
        raise RequestInvalid("Only a restart with the newest version keeps steps.", remedy="Add --latest.")
    if is_latest and policy is not RunPolicy.RESTART_FROM_INCOMPLETE:
        raise RequestInvalid(
            f"A restart with the newest version is not {policy}.",
            remedy="To run everything with the newest version, start a new instance.",
        )
    if is_latest and len(address.path) > 1:
        raise RequestInvalid(
            f"{address}: with the newest version, only a step of the workflow itself can be named.",
            remedy=f"Name {address.path[0]}.",
        )


def _check_kept(address: Address, keep: tuple[str, ...], known: Mapping[str, Attempt], dag: Dag) -> None:
    for step_id in keep:
        if step_id in dag.successors and (step_id not in known or not known[step_id].status.is_complete):
            raise RequestInvalid(f"{address}: {step_id} has no result to keep.", remedy=f"Leave --keep {step_id} out.")


def _with_obstacles(
    state: RunState, known: Mapping[str, Attempt], planned: tuple[PlannedStep, ...]
) -> tuple[PlannedStep, ...]:
    if not state.run.restart.is_latest:
        return planned
    again = frozenset(step.step_id for step in planned if step.fate.runs)
    found = obstacles(state.blueprint.steps, state.blueprint.dag, known, again)
    return tuple(replace(step, obstacle=found.get(step.step_id, "")) for step in planned)


def _steps_of(tools: Tools, run: Run) -> dict[str, Step]:
    """Return the steps of the workflow that a run belongs to, including those in loops."""
    workflow = tools.blueprints.get(run.owner_workflow, run.version_id).workflow
    return {step.id: step for step in workflow.all_steps()}


def _in_place(tools: Tools, address: Address, *, is_skipped: bool) -> Run:
    """Start another attempt of a failed step while its run continues, or skip the step."""
    found = find(tools.state, address)
    work = UnitOfWork(tools, tools.clock())
    state = work.state(found.run.uuid, is_fresh=True)
    attempt = state.attempts.get(found.step_id)
    status = attempt.status if attempt else None
    if attempt is None or status is None or not status.is_restartable or state.run.status.is_terminal:
        possible = STEP_ACTIONS[status] if status else ()
        others = tuple(action for action in possible if action is not Action.RESTART)
        raise action_refused(str(address), Action.RESTART, status or RunStatus.CREATED, others)
    mode = state.blueprint.steps[attempt.step_id].failure_mode or FailureMode.FAIL_AFTER_RUNNING
    if mode is not FailureMode.FAIL_AFTER_RUNNING:
        raise RequestInvalid(
            f"{address} cannot be restarted while its workflow runs: its failure mode is {mode}.",
            remedy="Wait until the instance has ended.",
        )
    supersede(work, attempt)
    fresh = replace(new_attempt(work, state, attempt.step_id), attempt_id=attempt.attempt_id + 1)
    fresh = work.set_attempt(state, replace(fresh, artifacts={REPLACED: attempt.uuid}))
    if is_skipped:
        finish_attempt(work, state, fresh, StepStatus.SKIPPED)
    work.wake(state.run.uuid, due_at=1)
    tools.state.commit(work.changes())
    tools.cache.drop(state.run.uuid)
    return state.run
