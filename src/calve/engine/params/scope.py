"""The evaluated params of runs and steps, and what expressions can look up about a running instance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.model import ParamType
from calve.definition.params import ForeachResults, InitiatorType, InstanceView, Parameter, StepView, UpstreamStep
from calve.engine.instances import Params, RunState, UnitOfWork, type_of
from calve.engine.model import Attempt, Json, Party, Run, StepStatus
from calve.engine.ports import Iteration, StepAddress

_FOREACH = InitiatorType.FOREACH


def params_from_stored(stored: Json) -> Params:
    """Return params from their stored form."""
    return {name: Parameter.from_stored(kept) for name, kept in stored.items()}


def params_as_stored(params: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return params in their stored form."""
    return {name: param.as_stored() for name, param in params.items()}


def run_params(state: RunState) -> Params:
    """Return the evaluated params of a run; for an iteration, with those of the run around it."""
    if state.params is None:
        own = params_from_stored(state.run.params)
        state.params = {**run_params(state.outer), **own} if state.outer else own
    return state.params


def params_of(state: RunState, attempt: Attempt) -> Params:
    """Return the evaluated params of an attempt."""
    if attempt.uuid not in state.step_params:
        state.step_params[attempt.uuid] = params_from_stored(attempt.params)
    return state.step_params[attempt.uuid]


def levels(state: RunState) -> Iterator[RunState]:
    """Yield a run, and the runs around it up to the instance of the workflow."""
    level: RunState | None = state
    while level is not None:
        yield level
        level = level.outer


def place_of(state: RunState, attempt: Attempt) -> StepAddress:
    """Return the address of an attempt's step."""
    runs = [level.run for level in levels(state)]
    instance = runs.pop()
    turns = (
        Iteration(run.inline_step or "", run.instance_id, _given(run) if run.initiator.type is _FOREACH else {})
        for run in reversed(runs)
    )
    return StepAddress(instance.workflow_id, instance.instance_id, attempt.step_id, tuple(turns))


def party_of(state: RunState, attempt: Attempt) -> Party:
    """Return an attempt and its instance as the party of a signal."""
    run = state.outermost.run
    return Party(
        run.workflow_id, run.instance_id, run.run_id, run.uuid, attempt.step_id, attempt.attempt_id, attempt.uuid
    )


def _given(run: Run) -> dict[str, Any]:
    return {name: param.result for name, param in params_from_stored(run.params).items() if name != "loop_index"}


class StepParams(Mapping[str, Params]):
    """The params of the steps that have an attempt, read when needed; includes the steps around a loop."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def __getitem__(self, step_id: str) -> Params:
        for level in levels(self._state):
            if step_id in level.attempts:
                return params_of(level, level.attempts[step_id])
        raise KeyError(step_id)

    def __iter__(self) -> Iterator[str]:
        for level in levels(self._state):
            yield from level.attempts

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class RunningInstance:
    """Answers expressions from a run in memory, and from the store about runs below it."""

    work: UnitOfWork
    state: RunState
    attempt: Attempt | None = None

    @property
    def instance(self) -> InstanceView:
        """The instance; for an iteration, the instance around its loop."""
        return _view(self.state.outermost)

    @property
    def own_step(self) -> StepView | None:
        """The step whose params are evaluated."""
        attempt = self.attempt
        if attempt is None:
            return None
        step = self.state.blueprint.steps[attempt.step_id]
        return StepView(
            step_id=attempt.step_id,
            step_instance_id=attempt.step_instance_id,
            step_instance_uuid=attempt.uuid,
            step_attempt_id=attempt.attempt_id,
            type=attempt.type,
            sub_type=getattr(step, "sub_type", None),
            error_retries=attempt.retries.get("error", 0),
            dependencies=tuple(dependency.get("params") for dependency in attempt.dependencies),
        )

    @property
    def environment(self) -> str:
        """The name of the environment that calve runs in."""
        return self.work.tools.environment

    def step(self, step_id: str) -> UpstreamStep | None:
        """Return a step of the instance, or of the loops around it; NOT_CREATED if it has not started."""
        for level in levels(self.state):
            attempt = level.attempts.get(step_id)
            if attempt is not None:
                params = params_of(level, attempt)
                return UpstreamStep(attempt.type, attempt.status.value, attempt.ended_at, params)
            if step_id in level.blueprint.steps:
                return UpstreamStep(type_of(level.blueprint.steps[step_id]), StepStatus.NOT_CREATED.value)
        return None

    def _attempt(self, step_id: str) -> Attempt | None:
        return next((level.attempts[step_id] for level in levels(self.state) if step_id in level.attempts), None)

    def signal(self, name: str) -> Mapping[str, str | int] | None:
        """Return the params of a signal that started the instance."""
        found: Mapping[str, str | int] | None = self.state.outermost.run.initiator.trigger.get("signals", {}).get(name)
        return found

    def foreach_results(self, foreach_id: str, step_id: str, param: str) -> ForeachResults | None:
        """Return the values of a param in the iterations of a foreach."""
        attempt = self._attempt(foreach_id)
        loop = attempt.artifacts.get("maestro_foreach") if attempt and not attempt.is_leaf else None
        if loop is None:
            return None
        if not loop["total"]:
            return ForeachResults(ParamType.STRING, 0, {})
        name = loop["loop_workflow_id"]
        found = {**self.work.tools.state.child_params(name, step_id, param), **self._made(name, step_id, param)}
        # a restart may have made the loop shorter
        values = {number: Parameter.from_stored(kept) for number, kept in found.items() if number <= loop["total"]}
        if not values:
            return None
        first = next(iter(values.values()))
        return ForeachResults(first.type, loop["total"], {number: value.result for number, value in values.items()})

    def _made(self, loop: str, step_id: str, param: str) -> dict[int, Json]:
        """Return the values of a param in the iterations of a loop that are not stored yet."""
        made = [each for each in self.work.states.values() if each.is_new and each.run.workflow_id == loop]
        params = {each.run.instance_id: each.attempts[step_id].params for each in made if step_id in each.attempts}
        return {number: own[param] for number, own in params.items() if param in own}

    def subworkflow_param(self, subworkflow_id: str, step_id: str, param: str) -> Parameter | None:
        """Return a param of a step of a subworkflow."""
        attempt = self._attempt(subworkflow_id)
        children = self.work.tools.state.child_runs(attempt.uuid) if attempt else []
        if not children:
            return None
        child = children[0]
        found = self.work.tools.state.newest_attempt(child.workflow_id, child.instance_id, step_id)
        kept = found.params.get(param) if found else None
        return Parameter.from_stored(kept) if kept else None

    def next_unique_id(self) -> int | str:
        """Return a unique id."""
        return self.work.tools.new_id()


def _view(state: RunState) -> InstanceView:
    run, workflow = state.run, state.blueprint.workflow
    owner = run.properties.get("owner")
    zones = [trigger.timezone for trigger in workflow.time_triggers if trigger.timezone]
    return InstanceView(
        workflow_id=run.workflow_id,
        initiator=run.initiator.type,
        run_policy=run.policy.value,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        owner=owner.get("name") if isinstance(owner, Mapping) else owner,
        initiator_timezone=run.initiator.timezone,
        initiator_user=run.initiator.user,
        first_time_trigger_timezone=zones[0] if zones else None,
        signal_params=run.initiator.trigger.get("params"),
    )
