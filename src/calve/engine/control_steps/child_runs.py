"""Runs inside runs: how a loop or a subworkflow creates them, and what their ends mean."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from calve.definition.model import Param
from calve.definition.params import SCALARS, InitiatorType, Parameter, ParamSource
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import Attempt, Children, Initiator, Parent, Restart, Run, RunPolicy, RunStatus
from calve.engine.params import params_as_stored, run_params
from calve.engine.ports import Outcome, State
from calve.engine.restarts import leads_into
from calve.errors import ParamError

DEPTH = 10
_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_STATES = {
    RunStatus.SUCCEEDED: State.DONE,
    RunStatus.FAILED: State.FATAL_ERROR,
    RunStatus.STOPPED: State.STOPPED,
    RunStatus.TIMED_OUT: State.TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop whose iterations are about to begin."""

    state: RunState
    """The run that contains it."""
    attempt: Attempt
    kind: InitiatorType

    @property
    def name(self) -> str:
        """The workflow id of its iterations, the same in every run of the instance."""
        run = self.state.run
        place = f"{run.workflow_id}/{run.instance_id}/{self.attempt.step_id}"
        digest = hashlib.md5(place.encode(), usedforsecurity=False).hexdigest()
        return f"maestro_{self.kind.value.lower()}_{digest}"

    @property
    def is_first(self) -> bool:
        """Whether none of its iterations can have run before: neither in an earlier run, nor for an earlier attempt."""
        return self.state.run.run_id == 1 and self.attempt.attempt_id == 1


def new_iteration(
    work: UnitOfWork,
    loop: Loop,
    number: int,
    values: Mapping[str, Any],
    *,
    before: Run | None = None,
    policy: RunPolicy = RunPolicy.START_FRESH_NEW_RUN,
) -> RunState:
    """Start an iteration of a loop; if it has run before, the policy decides what it takes over from that run."""
    run, attempt = loop.state.run, loop.attempt
    policy = policy if before else RunPolicy.START_FRESH_NEW_RUN
    own = {name: loop_param(name, value, loop.kind, work.now) for name, value in values.items()}
    child = Run(
        uuid=work.tools.new_id(),
        workflow_id=loop.name,
        instance_id=number,
        run_id=before.run_id + 1 if before else 1,
        version_id=run.version_id,
        owner_workflow=run.owner_workflow,
        root_uuid=run.root_uuid,
        initiator=Initiator(loop.kind, run.initiator.user, within=run.initiator.within),
        policy=policy,
        parent=Parent(run.uuid, attempt.step_id, attempt.uuid),
        inline_step=attempt.step_id,
        depth=run.depth + 1,
        priority=run.priority,
        properties=run.properties,
        params=params_as_stored(own),
        restart=_inside(run, attempt.step_id, policy),
        created_at=work.now,
    )
    made = work.add_run(child, loop.state)
    made.params = {**run_params(loop.state), **own}
    return made


def _inside(run: Run, step_id: str, policy: RunPolicy) -> Restart:
    """Return the part of a run's restart that concerns an iteration of a loop in it."""
    restart = run.restart
    if policy is RunPolicy.RESTART_FROM_SPECIFIC:
        return Restart(restart.step_path[1:], restart.iterations[1:], restart.step_params, restart.skip)
    if leads_into(run, step_id):  # but not into this iteration
        return Restart()
    return Restart(step_params=restart.step_params, skip=restart.skip, is_latest=restart.is_latest, keep=restart.keep)


def loop_param(name: str, value: Any, kind: InitiatorType, now: int) -> Parameter:
    """Return the param that a loop gives its steps.

    Raises:
        ParamError: no type of param fits the value.
    """
    source = ParamSource(kind.value).value
    if type(value) not in SCALARS:
        raise ParamError(f"Loop param [{name}] has an unsupported type", param=name)
    definition = {"type": SCALARS[type(value)], "value": value, "meta": {"source": source}}
    return Parameter(name, _PARAM.validate_python(definition), value, now)


def check_depth(state: RunState) -> None:
    """Refuse to nest workflows and loops deeper than ``DEPTH``.

    Raises:
        ParamError: the run is at the limit.
    """
    if state.run.depth >= DEPTH:
        raise ParamError(f"Workflows and loops are nested deeper than the limit of [{DEPTH}]")


def worst(children: Children) -> RunStatus:
    """Return the status of a loop from the statuses of its iterations."""
    if children.failed:
        return RunStatus.FAILED
    if children.timed_out:
        return RunStatus.TIMED_OUT
    return RunStatus.STOPPED if children.stopped else RunStatus.SUCCEEDED


def outcome_of(status: RunStatus, message: str = "", **artifacts: Any) -> Outcome:
    """Return the outcome of a step whose child run ended with this status."""
    return Outcome(_STATES[status], message=message, artifacts=artifacts)
