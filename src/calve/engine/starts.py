"""Starting and restarting instances."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calve.definition import given_params
from calve.definition.model.steps import FailureMode, Step
from calve.definition.params import SIZE_LIMIT
from calve.definition.run_params import UnknownParam, refusal
from calve.engine.actions import RUN_ACTIONS, STEP_ACTIONS, Action
from calve.engine.addresses import Address, find, find_run
from calve.engine.attempts import new_attempt
from calve.engine.children import REPLACED
from calve.engine.ending import finish
from calve.engine.evaluating import definitions_of, merged_run_params, written
from calve.engine.launching import again, new_run, unknown_run_params, unknown_step_params
from calve.engine.model import Changes, Initiator, Json, Restart, Run, RunPolicy, Start, Started, StartStatus
from calve.engine.refusing import refuse
from calve.engine.restarts import run_again, supersede
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus, StepStatus
from calve.engine.work import Tools, Work, noted
from calve.errors import OF_THE_WORKFLOW, ParamError, RequestInvalid
from calve.texts import check_text


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
    policy: RunPolicy = RunPolicy.RESTART_FROM_INCOMPLETE,
    params: Mapping[str, Any] | None = None,
    definitions: Json | None = None,
    step_params: Mapping[str, Mapping[str, Any]] | None = None,
    step_definitions: Mapping[str, Json] | None = None,
    skip: tuple[str, ...] = (),
    request_id: str | None = None,
    initiator: Initiator | None = None,
    refuse_unknown_params: bool = False,
) -> Started:
    """Run an instance again: what is incomplete, everything, or from the step that the address names.

    Params, of the run or by step, are plain values, or definitions in JSON's types. Who restarts it has to be allowed
    to start what the run starts by such params; if no initiator is given, who has started it.

    Raises:
        WorkflowMissing: there is no such instance or step.
        ActionRefused: it is not over.
        RequestInvalid: there is nothing to run again, or a param is not known and unknown ones are refused.
        ParamError: the params make no sense.
    """
    _check_size({**(params or {}), **(definitions or {})})
    check_text({"run_params": params, "step_run_params": step_params, "skip": skip, "request_id": request_id})
    check_text({"run_params": definitions, "step_run_params": step_definitions})
    before = find_run(tools.state, replace(address, run_id=None))
    if request_id is not None and before.request_id == request_id:
        return Started(StartStatus.DUPLICATED, before)
    if before.is_inline:
        raise RequestInvalid(f"{address} is an iteration.", remedy="Restart the instance around it, with a path.")
    if not before.status.is_terminal:
        if address.path:
            if params or definitions or step_params or step_definitions:
                raise RequestInvalid(
                    f"The params of {address} cannot be changed while the instance runs.",
                    remedy="Restart the step without params, or wait until the instance is over.",
                )
            return Started(StartStatus.CREATED, _in_place(tools, address, is_skipped=bool(skip)))
        raise refuse(str(address), Action.RESTART, before.status, RUN_ACTIONS[before.status])
    blueprint = tools.blueprints.get(before.owner_workflow, before.version_id)
    holder = find(tools.state, replace(address, run_id=None)).run
    steps = _steps_of(tools, holder)
    if address.path:
        policy = RunPolicy.RESTART_FROM_SPECIFIC
    changed = {
        step_id: written(given_params(given, steps[step_id].params if step_id in steps else {}))
        for step_id, given in (step_params or {}).items()
    }
    for step_id, defined in (step_definitions or {}).items():
        changed[step_id] = {**changed.get(step_id, {}), **written(definitions_of(defined))}
    plan = Restart(address.steps, address.iterations, changed, skip)
    for step_id in (*changed, *skip, *address.steps[-1:]):
        if step_id not in steps:
            raise RequestInvalid(
                f"{holder.owner_workflow} has no step {step_id}.", remedy=f"It has {', '.join(steps)}."
            )
    now = tools.clock()
    given = {**written(given_params(params or {}, blueprint.workflow.params)), **(definitions or {})}
    by = before.initiator if initiator is None else replace(before.initiator, within=initiator.within)
    run = again(
        before,
        uuid=tools.new_id(),
        policy=policy,
        run_params=given,
        restart=plan,
        now=now,
        request_id=request_id,
        initiator=by,
    )
    merged_run_params(Work(tools, now), RunState(run, blueprint, {}))
    _check_anything(tools, before, run, address)
    unknown = [*unknown_run_params(tools, run, before), *unknown_step_params(tools, holder, changed)]
    warnings = _warnings(unknown, is_refused=refuse_unknown_params)
    return replace(tools.state.commit(Changes(starts=[Start(run, is_restart=True)])).started[0], warnings=warnings)


def _steps_of(tools: Tools, run: Run) -> dict[str, Step]:
    """Return the steps of the workflow that a run belongs to, those inside its loops too."""
    workflow = tools.blueprints.get(run.owner_workflow, run.version_id).workflow
    return {step.id: step for step in workflow.all_steps()}


def _check_anything(tools: Tools, before: Run, run: Run, address: Address) -> None:
    blueprint = tools.blueprints.get(run.owner_workflow, run.version_id)
    snapshot = tools.state.load(before.uuid)
    known = {attempt.step_id: attempt for attempt in (snapshot.attempts if snapshot else ())}
    if not run_again(blueprint.dag, known, run.policy, run.restart):
        raise RequestInvalid(
            f"Nothing of {address} is incomplete.", remedy="Restart it from the beginning, or name a step."
        )


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
