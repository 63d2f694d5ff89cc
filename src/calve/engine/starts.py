"""Starting and restarting instances."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calve.definition import given_params
from calve.definition.model.steps import FailureMode, Step
from calve.definition.params import SIZE_LIMIT
from calve.definition.run_params import UnknownParam, refusal
from calve.engine.actions import RUN_ACTIONS, STEP_ACTIONS, Action
from calve.engine.addresses import Address, find, find_run
from calve.engine.attempts import new_attempt
from calve.engine.children import REPLACED
from calve.engine.dag import Dag
from calve.engine.ending import finish
from calve.engine.evaluating import definitions_of, evaluate_run, merged_run_params, written
from calve.engine.launching import again, known_workflow, new_run, unknown_run_params, unknown_step_params
from calve.engine.model import Attempt, Changes, Initiator, Json, Restart, Run, RunPolicy, Start, Started, StartStatus
from calve.engine.refusing import refuse
from calve.engine.restart_plans import CAPTURES, PlannedStep, RestartPlan, obstacles, plan
from calve.engine.restarts import check_obstacles, supersede
from calve.engine.revisions import news_of
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus, StepStatus
from calve.engine.work import Tools, Work, noted
from calve.errors import OF_THE_WORKFLOW, ActionRefused, ParamError, RequestInvalid
from calve.texts import check_text

_PARAMS = (("params", "step_params"), ("definitions", "step_definitions"))
"""What a restart may change: plain values, and definitions in JSON's types."""


def start(
    tools: Tools,
    workflow_id: str,
    *,
    version: str | int = "active",
    params: Mapping[str, Any] | None = None,
    definitions: Json | None = None,
    request_id: str | None = None,
    initiator: Initiator | None = None,
    priority: int | None = None,
    tags: tuple[str, ...] = (),
    persist_failed_run: bool = False,
    refuse_unknown_params: bool = False,
) -> Started:
    """Start an instance under its workflow's run strategy; the same request starts it once.

    Args:
        tools: what the engine works with.
        workflow_id: which workflow.
        version: active, latest, default, or a number.
        params: run params as plain values.
        definitions: run params as definitions, in JSON's types.
        request_id: names the request.
        initiator: who starts it; a person, if not given.
        priority: lower comes first; by the workflow's criticality, if not given.
        tags: tags of the run.
        persist_failed_run: keep an instance as FAILED whose params make no sense, rather than refuse it.
        refuse_unknown_params: refuse params that nothing in the definition knows, rather than warn of them.

    Raises:
        WorkflowMissing: there is no such workflow or version.
        ParamError: the params make no sense.
        RequestInvalid: a param is not known.
    """
    if request_id is not None and (known := tools.state.run_by_request(workflow_id, request_id)) is not None:
        return Started(StartStatus.DUPLICATED, known)
    run = _prepared(
        tools,
        workflow_id,
        version=version,
        params=params,
        definitions=definitions,
        initiator=initiator,
        persist_failed_run=persist_failed_run,
        request_id=request_id,
        priority=priority,
        tags=tags,
    )
    warnings = _warnings(unknown_run_params(tools, run), is_refused=refuse_unknown_params)
    return replace(tools.state.commit(Changes(starts=[Start(run)])).started[0], warnings=warnings)


def start_all(tools: Tools, workflow_id: str, requests: Sequence[Mapping[str, Any]]) -> list[Started]:
    """Start instances together, all or none; ``start`` says what a request may hold.

    Raises:
        WorkflowMissing: there is no such workflow or version.
        ParamError: the params of one make no sense.
        RequestInvalid: two of them have the same request id, or a param is not known.
    """
    names = [name for request in requests if (name := request.get("request_id")) is not None]
    if len(set(names)) < len(names):
        raise RequestInvalid("Two of the starts have the same request id.", remedy="Give each its own, or none.")
    runs: list[Run] = []
    warnings: list[tuple[Json, ...]] = []
    for request in requests:
        is_refused = bool(request.get("refuse_unknown_params"))
        given = {name: value for name, value in request.items() if name != "refuse_unknown_params"}
        runs.append(_prepared(tools, workflow_id, **given))
        warnings.append(_warnings(unknown_run_params(tools, runs[-1]), is_refused=is_refused))
    started = tools.state.commit(Changes(starts=[Start(run) for run in runs])).started
    return [replace(one, warnings=about) for one, about in zip(started, warnings, strict=True)]


def _warnings(unknown: Sequence[UnknownParam], *, is_refused: bool) -> tuple[Json, ...]:
    """Return what is said about params that nothing knows.

    Raises:
        RequestInvalid: they are refused.
    """
    if unknown and is_refused:
        raise refusal(unknown)
    return tuple(param.as_json() for param in unknown)


def _prepared(
    tools: Tools,
    workflow_id: str,
    *,
    request_id: str | None = None,
    priority: int | None = None,
    tags: tuple[str, ...] = (),
    **request: Any,
) -> Run:
    check_text({"request_id": request_id, "tags": tags})
    run = prepare(tools, workflow_id, **request)
    return replace(run, request_id=request_id, tags=tags, priority=run.priority if priority is None else priority)


def prepare(
    tools: Tools,
    workflow_id: str,
    *,
    version: str | int = "active",
    params: Mapping[str, Any] | None = None,
    definitions: Json | None = None,
    initiator: Initiator | None = None,
    persist_failed_run: bool = False,
) -> Run:
    """Return the run that a start brings, to be committed alone or with others; ``start`` says what it may hold.

    Raises:
        WorkflowMissing: there is no such workflow or version.
        ParamError: the params make no sense.
    """
    given = {**(params or {}), **(definitions or {})}
    _check_size(given)
    check_text(given, "run_params")
    now = tools.clock()
    run = new_run(tools, workflow_id, version, run_params={}, initiator=initiator or Initiator(), now=now)
    blueprint = tools.blueprints.get(workflow_id, run.version_id)
    plain = written(given_params(params or {}, blueprint.workflow.params))
    run = replace(run, run_params={**plain, **(definitions or {})})
    try:
        merged_run_params(Work(tools, now), RunState(run, blueprint, {}))
    except OF_THE_WORKFLOW as error:
        if not persist_failed_run:
            raise
        run = replace(run, message=error.message, timeline=noted((), now, error.message, "ERROR"))
    return run


def _check_size(given: Mapping[str, Any]) -> None:
    """Refuse run params that no run could have, before they are looked at one by one.

    Raises:
        ParamError: they are too large together.
    """
    size = sum(len(json.dumps(value, separators=(",", ":"), default=str)) for value in given.values())
    if size > SIZE_LIMIT:
        raise ParamError(
            f"The run params have [{size}] characters, more than the limit of [{SIZE_LIMIT}]",
            remedy="Keep large values in a table or a file, and give its name.",
        )


def restart(
    tools: Tools,
    address: Address,
    *,
    skip: tuple[str, ...] = (),
    request_id: str | None = None,
    is_latest: bool = False,
    **request: Any,
) -> Started:
    """Run an instance again: what is incomplete, everything, or from the step that the address names.

    Params, of the run or by step, are plain values, or definitions in JSON's types. Who restarts it has to be allowed
    to start what the run starts by such params; if no initiator is given, who has started it.

    Args:
        tools: what the engine works with.
        address: the instance, or a step of it.
        skip: steps that are skipped rather than run again.
        request_id: names the request.
        is_latest: continue with the newest version: what succeeded and did not change is kept.
        request: ``policy``, ``params``, ``definitions``, ``step_params``, ``step_definitions``, ``keep`` (steps whose
            results stay though they changed), ``initiator``, and whether to ``refuse_unknown_params``.

    Raises:
        WorkflowMissing: there is no such instance or step.
        ActionRefused: it is not over, or a capture that it would go on with was given up.
        RequestInvalid: there is nothing to run again, a step would run again that cannot, or a param is not known and
            unknown ones are refused.
        ParamError: the params make no sense.
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
                    remedy="Restart the step without params, or wait until the instance is over.",
                )
            return Started(StartStatus.CREATED, _in_place(tools, address, is_skipped=bool(skip)))
        raise refuse(str(address), Action.RESTART, before.status, RUN_ACTIONS[before.status])
    prepared = _prepared_restart(tools, address, before, skip=skip, is_latest=is_latest, **request)
    prepared.check(tools, address)
    run = replace(prepared.run, request_id=request_id)
    started = tools.state.commit(Changes(starts=[Start(run, is_restart=True)])).started[0]
    return replace(started, warnings=prepared.warnings)


def plan_restart(
    tools: Tools, address: Address, *, skip: tuple[str, ...] = (), is_latest: bool = False, **request: Any
) -> RestartPlan:
    """Return what a restart would keep and run again, and what would keep it from that; ``restart`` says the rest."""
    before = find_run(tools.state, replace(address, run_id=None))
    _check_whole(address, before)
    if not before.status.is_terminal:
        raise refuse(str(address), Action.RESTART, before.status, RUN_ACTIONS[before.status])
    prepared = _prepared_restart(tools, address, before, skip=skip, is_latest=is_latest, **request)
    refusal = ""
    try:
        prepared.check(tools, address)
    except (RequestInvalid, ActionRefused) as error:
        refusal = f"{error.message} {error.remedy}"
    return RestartPlan(before.version_id, prepared.run.version_id, prepared.steps, refusal)


def _check_given(request: Mapping[str, Any]) -> None:
    """Refuse params that no run could have, and what is not text.

    Raises:
        ParamError, RequestInvalid: it does not fit.
    """
    _check_size({**(request.get("params") or {}), **(request.get("definitions") or {})})
    for params, step_params in _PARAMS:
        check_text({"run_params": request.get(params), "step_run_params": request.get(step_params)})
    check_text({name: request.get(name) for name in ("skip", "keep", "request_id")})


def _check_whole(address: Address, run: Run) -> None:
    if run.is_inline:
        raise RequestInvalid(f"{address} is an iteration.", remedy="Restart the instance around it, with a path.")


@dataclass(frozen=True, slots=True)
class _Again:
    """A run that restarts an instance, and what it keeps."""

    run: Run
    state: RunState
    known: Mapping[str, Attempt]
    steps: tuple[PlannedStep, ...]
    warnings: tuple[Json, ...]
    """Of params that are not known."""

    def check(self, tools: Tools, address: Address) -> None:
        """Refuse a restart that would come to nothing, or could not be exact."""
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
    """Refuse to go on with a capture that was given up.

    Raises:
        ActionRefused: it was.
    """
    found = tools.superseded(str(attempt.artifacts.get("capture_id", "")))
    if found is not None:
        name = f"{run.workflow_id} instance {run.instance_id}"
        raise ActionRefused(
            f"{name} cannot go on where it stopped: {found.message}",
            remedy=found.remedy("--latest " if run.restart.is_latest else ""),
        )


def _nothing_to_run(address: Address, run: Run) -> RequestInvalid:
    if run.restart.is_latest:
        return RequestInvalid(
            f"Nothing of {address} is incomplete, and version {run.version_id} changes none of its steps.",
            remedy="To run a step again, name it with --step; to run all, use --from-beginning.",
        )
    return RequestInvalid(
        f"Nothing of {address} is incomplete.", remedy="Restart it from the beginning, or name a step."
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
                f"{holder.owner_workflow} has no step {step_id}.", remedy=f"It has {', '.join(steps)}."
            )
    run = again(
        before,
        uuid=tools.new_id(),
        policy=RunPolicy.RESTART_FROM_SPECIFIC if address.path else policy,
        run_params={**written(given_params(params or {}, blueprint.workflow.params)), **(definitions or {})},
        restart=Restart(address.steps, address.iterations, changed, skip, is_latest=is_latest, keep=keep),
        now=now,
        version_id=number,
        initiator=before.initiator if initiator is None else replace(before.initiator, within=initiator.within),
    )
    work, state = Work(tools, now), RunState(run, blueprint, {})
    known = work.state(before.uuid, is_fresh=True).attempts
    if is_latest:
        state.attempts = {step_id: attempt for step_id, attempt in known.items() if step_id in blueprint.steps}
        state.params = evaluate_run(work, state)
    else:
        merged_run_params(work, state)
    planned = plan(blueprint.dag, known, run.policy, run.restart, news_of(work, state, known))
    _check_kept(address, keep, known, blueprint.dag)
    unknown = [*unknown_run_params(tools, run, before), *unknown_step_params(tools, holder, changed)]
    warnings = _warnings(unknown, is_refused=refuse_unknown_params)
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
            raise RequestInvalid(
                f"{address}: {step_id} has no result that could be kept.", remedy=f"Leave --keep {step_id} out."
            )


def _with_obstacles(
    state: RunState, known: Mapping[str, Attempt], planned: tuple[PlannedStep, ...]
) -> tuple[PlannedStep, ...]:
    if not state.run.restart.is_latest:
        return planned
    again = frozenset(step.step_id for step in planned if step.fate.runs)
    found = obstacles(state.blueprint.steps, state.blueprint.dag, known, again)
    return tuple(replace(step, obstacle=found.get(step.step_id, "")) for step in planned)


def _steps_of(tools: Tools, run: Run) -> dict[str, Step]:
    """Return the steps of the workflow that a run belongs to, those inside its loops too."""
    workflow = tools.blueprints.get(run.owner_workflow, run.version_id).workflow
    return {step.id: step for step in workflow.all_steps()}


def _in_place(tools: Tools, address: Address, *, is_skipped: bool) -> Run:
    """Begin another attempt of a step that has failed while its run goes on, or skip it."""
    found = find(tools.state, address)
    work = Work(tools, tools.clock())
    state = work.state(found.run.uuid, is_fresh=True)
    attempt = state.attempts.get(found.step_id)
    status = attempt.status if attempt else None
    if attempt is None or status is None or not status.is_restartable or state.run.status.is_terminal:
        possible = STEP_ACTIONS[status] if status else ()
        others = tuple(action for action in possible if action is not Action.RESTART)
        raise refuse(str(address), Action.RESTART, status or RunStatus.CREATED, others)
    mode = state.blueprint.steps[attempt.step_id].failure_mode or FailureMode.FAIL_AFTER_RUNNING
    if mode is not FailureMode.FAIL_AFTER_RUNNING:
        raise RequestInvalid(
            f"{address} cannot be restarted while its workflow runs: its failure mode is {mode}.",
            remedy="Wait until the instance is over.",
        )
    supersede(work, attempt)
    fresh = replace(new_attempt(work, state, attempt.step_id), attempt_id=attempt.attempt_id + 1)
    fresh = work.set_attempt(state, replace(fresh, artifacts={REPLACED: attempt.uuid}))
    if is_skipped:
        finish(work, state, fresh, StepStatus.SKIPPED)
    work.wake(state.run.uuid, due_at=1)
    tools.state.commit(work.changes())
    tools.cache.drop(state.run.uuid)
    return state.run
