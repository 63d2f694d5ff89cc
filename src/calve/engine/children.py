"""Runs inside runs: how a loop or a subworkflow makes them, and what their ends mean."""

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from calve.definition.model.params import Param
from calve.definition.params import InitiatorType, Parameter, ParamSource
from calve.engine.facts import run_params, stored
from calve.engine.model import Attempt, Children, Initiator, Parent, Restart, Run, RunPolicy
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus
from calve.engine.work import Work
from calve.errors import ParamError

DEPTH = 10
REPLACED = "calve_replaced"
"""The artifact that names the attempt in whose place another one runs in the same run."""
_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_TYPES = {bool: "BOOLEAN", int: "LONG", float: "DOUBLE", str: "STRING"}
_STATES = {
    RunStatus.SUCCEEDED: State.DONE,
    RunStatus.FAILED: State.FATAL_ERROR,
    RunStatus.STOPPED: State.STOPPED,
    RunStatus.TIMED_OUT: State.TIMED_OUT,
}


def loop_name(state: RunState, step_id: str, kind: InitiatorType) -> str:
    """Return the name under which the iterations of a loop are kept: the same in every run of the instance."""
    run = state.run
    place = f"{run.workflow_id}/{run.instance_id}/{step_id}"
    return f"maestro_{kind.value.lower()}_{hashlib.md5(place.encode(), usedforsecurity=False).hexdigest()}"


def new_iteration(
    work: Work,
    state: RunState,
    attempt: Attempt,
    *,
    kind: InitiatorType,
    number: int,
    values: Mapping[str, Any],
    before: Run | None = None,
    restart: Restart | None = None,
) -> RunState:
    """Begin an iteration of a loop, or run one again that did not succeed."""
    run, uuid = state.run, work.tools.new_id()
    own = {name: loop_param(name, value, kind, work.now) for name, value in values.items()}
    child = Run(
        uuid=uuid,
        workflow_id=loop_name(state, attempt.step_id, kind),
        instance_id=number,
        run_id=before.run_id + 1 if before else 1,
        version_id=run.version_id,
        owner_workflow=run.owner_workflow,
        root_uuid=run.root_uuid,
        initiator=Initiator(kind, run.initiator.user),
        policy=run.policy if before else RunPolicy.START_FRESH_NEW_RUN,
        parent=Parent(run.uuid, attempt.step_id, attempt.uuid),
        inline_step=attempt.step_id,
        depth=run.depth + 1,
        priority=run.priority,
        properties=run.properties,
        params=stored(own),
        restart=restart or Restart(),
        created_at=work.now,
    )
    made = work.add_run(child, state)
    made.params = {**run_params(state), **own}
    return made


def loop_param(name: str, value: Any, kind: InitiatorType, now: int) -> Parameter:
    """Return the param that a loop gives its steps.

    Raises:
        ParamError: no param can hold the value.
    """
    source = ParamSource(kind.value).value
    if type(value) not in _TYPES:
        raise ParamError(f"Loop param [{name}] has a value of a type that no param has", param=name)
    definition = {"type": _TYPES[type(value)], "value": value, "meta": {"source": source}}
    return Parameter(name, _PARAM.validate_python(definition), value, now)


def replaced_by(work: Work, state: RunState, attempt: Attempt) -> Attempt | None:
    """Return the attempt, of an earlier run or of this one, in whose place an attempt runs; None if it is the first."""
    uuid = attempt.artifacts.get(REPLACED) or state.run.restart.replaced.get(attempt.step_id)
    return work.tools.state.attempt(uuid) if uuid else None


def check_depth(state: RunState) -> None:
    """Refuse to go deeper than is allowed.

    Raises:
        ParamError: the run is as deep as can be.
    """
    if state.run.depth >= DEPTH:
        raise ParamError(f"Workflows and loops are nested deeper than the limit of [{DEPTH}]")


def worst(children: Children) -> RunStatus:
    """Return how a loop ends whose iterations ended like this."""
    if children.failed:
        return RunStatus.FAILED
    if children.timed_out:
        return RunStatus.TIMED_OUT
    return RunStatus.STOPPED if children.stopped else RunStatus.SUCCEEDED


def outcome_of(status: RunStatus, message: str = "", **artifacts: Any) -> Outcome:
    """Return what the end of a child means for the step that runs it."""
    return Outcome(_STATES[status], message=message, artifacts=artifacts)
