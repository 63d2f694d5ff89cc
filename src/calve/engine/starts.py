"""Starting instances."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calve.definition import UnknownParam, given_params, refusal
from calve.definition.params import SIZE_LIMIT
from calve.engine.instances import (
    RunState,
    Tools,
    UnitOfWork,
    new_run,
    unknown_run_params,
    with_timeline_entry,
)
from calve.engine.model import (
    Changes,
    Initiator,
    Json,
    Run,
    Start,
    Started,
    StartStatus,
)
from calve.engine.params import merged_run_params, written
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
    """Start an instance under its workflow's run strategy; repeating a request id starts nothing new.

    Args:
        tools: the engine's tools.
        workflow_id: the workflow.
        version: active, latest, default, or a number.
        params: run params as plain values.
        definitions: run params as definitions, in JSON's types.
        request_id: an idempotency key.
        initiator: who starts it; by default a person.
        priority: lower comes first; by default from the workflow's criticality.
        tags: tags of the run.
        persist_failed_run: store an instance with invalid params as FAILED, rather than refuse it.
        refuse_unknown_params: refuse params that the definition does not know, rather than warn of them.

    Raises:
        WorkflowMissing: the workflow or the version does not exist.
        ParamError: the params are invalid.
        RequestInvalid: a param is unknown.
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
    warnings = unknown_param_warnings(unknown_run_params(tools, run), is_refused=refuse_unknown_params)
    return replace(tools.state.commit(Changes(starts=[Start(run)])).started[0], warnings=warnings)


def start_all(tools: Tools, workflow_id: str, requests: Sequence[Mapping[str, Any]]) -> list[Started]:
    """Start instances together, all or none; ``start`` documents each request.

    Raises:
        WorkflowMissing: the workflow or the version does not exist.
        ParamError: the params of one are invalid.
        RequestInvalid: two of them have the same request id, or a param is unknown.
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
        warnings.append(unknown_param_warnings(unknown_run_params(tools, runs[-1]), is_refused=is_refused))
    started = tools.state.commit(Changes(starts=[Start(run) for run in runs])).started
    return [replace(one, warnings=about) for one, about in zip(started, warnings, strict=True)]


def unknown_param_warnings(unknown: Sequence[UnknownParam], *, is_refused: bool) -> tuple[Json, ...]:
    """Return warnings about unknown params.

    Raises:
        RequestInvalid: unknown params are refused.
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
    run = prepare_run(tools, workflow_id, **request)
    return replace(run, request_id=request_id, tags=tags, priority=run.priority if priority is None else priority)


def prepare_run(
    tools: Tools,
    workflow_id: str,
    *,
    version: str | int = "active",
    params: Mapping[str, Any] | None = None,
    definitions: Json | None = None,
    initiator: Initiator | None = None,
    persist_failed_run: bool = False,
) -> Run:
    """Return the run of a start, to be committed alone or with others; ``start`` documents the arguments.

    Raises:
        WorkflowMissing: the workflow or the version does not exist.
        ParamError: the params are invalid.
    """
    given = {**(params or {}), **(definitions or {})}
    check_param_size(given)
    check_text(given, "run_params")
    now = tools.clock()
    run = new_run(tools, workflow_id, version, run_params={}, initiator=initiator or Initiator(), now=now)
    blueprint = tools.blueprints.get(workflow_id, run.version_id)
    plain = written(given_params(params or {}, blueprint.workflow.params))
    run = replace(run, run_params={**plain, **(definitions or {})})
    try:
        merged_run_params(UnitOfWork(tools, now), RunState(run, blueprint, {}))
    except OF_THE_WORKFLOW as error:
        if not persist_failed_run:
            raise
        run = replace(run, message=error.message, timeline=with_timeline_entry((), now, error.message, "ERROR"))
    return run


def check_param_size(given: Mapping[str, Any]) -> None:
    """Refuse run params that are too large, before they are checked one by one.

    Raises:
        ParamError: together they exceed ``SIZE_LIMIT`` characters.
    """
    size = sum(len(json.dumps(value, separators=(",", ":"), default=str)) for value in given.values())
    if size > SIZE_LIMIT:
        raise ParamError(
            f"The run params have [{size}] characters, more than the limit of [{SIZE_LIMIT}]",
            remedy="Keep large values in a table or a file, and give its name.",
        )
