"""An instance at a glance: its run, its steps, how far its loops have come, what went wrong in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from calve.engine import foreach, subworkflows, whiles
from calve.engine.blueprints import type_of
from calve.engine.model import Attempt, Leaves, Run
from calve.engine.ports import EngineState, Instances
from calve.engine.statuses import RunStatus, StepStatus
from calve.engine.views.artifacts import counted
from calve.engine.views.sources import RunSource, run_source
from calve.engine.work import Tools

_WRONG = (RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STOPPED)


@dataclass(frozen=True, slots=True)
class Iterations:
    """How far a loop has come."""

    done: int
    active: int
    failed: int
    total: int | None = None
    """How many there will be; a while does not know."""


@dataclass(frozen=True, slots=True)
class StepOverview:
    """A step of a run, with its newest attempt if it has begun."""

    step_id: str
    ordinal: int
    type: str
    attempt: Attempt | None = None
    iterations: Iterations | None = None
    """Of a loop."""
    child: Run | None = None
    """Of a subworkflow: the instance that it has started."""

    @property
    def status(self) -> StepStatus:
        """Where the step stands."""
        return StepStatus.NOT_CREATED if self.attempt is None else self.attempt.status

    @property
    def message(self) -> str:
        """What was said about it last."""
        return "" if self.attempt is None else last_message(self.attempt)


@dataclass(frozen=True, slots=True)
class Overview:
    """A run and all of its steps, in the order of the definition."""

    run: Run
    steps: tuple[StepOverview, ...]
    source: RunSource

    @property
    def rollup(self) -> Mapping[StepStatus, int]:
        """The leaf steps of the run, however deep they lie, by status."""
        return counted(self.source.leaves or Leaves())


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that an instance failed of, however deep it lies."""

    path: tuple[str, ...]
    attempt: Attempt

    @property
    def message(self) -> str:
        """What was said about it last."""
        return last_message(self.attempt)


def last_message(attempt: Attempt) -> str:
    """Return what an attempt's timeline says last."""
    return str(attempt.timeline[-1]["message"]) if attempt.timeline else ""


def overview_of(tools: Tools, run: Run) -> Overview:
    """Return a run at a glance, as the store has it now."""
    state = tools.state
    blueprint = tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
    snapshot = state.load(run.uuid)
    known = {attempt.step_id: attempt for attempt in (snapshot.attempts if snapshot else ())}
    steps = (
        _step(state, step_id, blueprint.ordinals[step_id], type_of(step), known.get(step_id))
        for step_id, step in blueprint.steps.items()
    )
    source = run_source(tools, run, known.values())
    return Overview(snapshot.run if snapshot else run, tuple(steps), source)


def _step(state: EngineState, step_id: str, ordinal: int, type_name: str, attempt: Attempt | None) -> StepOverview:
    if attempt is None or attempt.is_leaf:
        return StepOverview(step_id, ordinal, type_name, attempt)
    child = next(iter(state.child_runs(attempt.uuid, limit=1)), None) if subworkflows.KEY in attempt.artifacts else None
    return StepOverview(step_id, ordinal, type_name, attempt, _iterations(state, attempt), child)


def _iterations(state: EngineState, attempt: Attempt) -> Iterations | None:
    each, some = attempt.artifacts.get(foreach.KEY), attempt.artifacts.get(whiles.KEY)
    if each is None and some is None:
        return None
    children = state.children(attempt.uuid)
    begun, total = (each["launched"], each["total"]) if each is not None else ((some or {})["iteration"], None)
    return Iterations(begun - children.active, children.active, children.failed + children.timed_out, total)


def failures(instances: Instances, run: Run, limit: int = 5) -> list[Failure]:
    """Return the attempts that a run did not succeed for, in loops and subworkflows too; at most so many."""
    found: list[Failure] = []
    for failure in _failures(instances, run, (), limit):
        found.append(failure)
        if len(found) == limit:
            break
    return found


def _failures(instances: Instances, run: Run, above: tuple[str, ...], limit: int) -> Iterator[Failure]:
    snapshot = instances.load(run.uuid)
    for attempt in snapshot.attempts if snapshot else ():
        if not attempt.status.is_restartable:
            continue
        path = (*above, attempt.step_id)
        children = [] if attempt.is_leaf else instances.child_runs(attempt.uuid, statuses=_WRONG, limit=limit)
        if not children:
            yield Failure(path, attempt)
        for child in children:
            inside = (*path, str(child.instance_id)) if child.is_inline else path
            yield from _failures(instances, child, inside, limit)
