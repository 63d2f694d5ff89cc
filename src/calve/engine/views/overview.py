"""A summary of an instance: its run, its steps, the progress of its loops, its failures."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from calve.engine.control_steps import FOREACH_KEY, SUBWORKFLOW_KEY, WHILE_KEY
from calve.engine.instances import APPROVAL, NO_OP, Tools, type_of
from calve.engine.model import Attempt, Leaves, Run, RunStatus, StepStatus
from calve.engine.ports import EngineState, Instances
from calve.engine.views.artifacts import counted
from calve.engine.views.sources import MayRead, RunSource, reads_all, run_source
from calve.engine.views.waits import Live, live_of

_WRONG = (RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STOPPED)
_AROUND = (FOREACH_KEY, WHILE_KEY, SUBWORKFLOW_KEY)
"""The keys of artifacts of steps that run other steps."""


@dataclass(frozen=True, slots=True)
class Iterations:
    """The progress of a loop."""

    done: int
    active: int
    failed: int
    total: int | None = None
    """How many there will be; unknown for a while."""


@dataclass(frozen=True, slots=True)
class StepOverview:
    """A step of a run, with its newest attempt if it has started."""

    step_id: str
    ordinal: int
    type: str
    attempt: Attempt | None = None
    iterations: Iterations | None = None
    """The progress of a loop."""
    child: Run | None = None
    """The instance that a subworkflow step has started."""

    @property
    def status(self) -> StepStatus:
        """The status of the step."""
        return StepStatus.NOT_CREATED if self.attempt is None else self.attempt.status

    @property
    def message(self) -> str:
        """The last message about it."""
        return "" if self.attempt is None else last_message(self.attempt)


@dataclass(frozen=True, slots=True)
class Overview:
    """A run and all of its steps, in the order of the definition."""

    run: Run
    steps: tuple[StepOverview, ...]
    source: RunSource
    failures: "tuple[Failure, ...]" = ()
    """The first failures, including those in loops and subworkflows."""
    live: Live = field(default_factory=Live)
    """The waiting steps, and the progress of the others."""

    @property
    def rollup(self) -> Mapping[StepStatus, int]:
        """The leaf steps of the run at any depth, by status."""
        return counted(self.source.leaves or Leaves())


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt at any depth that made an instance fail."""

    path: tuple[str, ...]
    attempt: Attempt
    message: str
    """Why it failed."""

    @property
    def has_log(self) -> bool:
        """Whether it has started to run, so that it may have a log."""
        has_worker = self.attempt.is_leaf and self.attempt.type not in {NO_OP, APPROVAL}
        return has_worker and "start" in self.attempt.times


def last_message(attempt: Attempt) -> str:
    """Return the last message of an attempt's timeline."""
    return str(attempt.timeline[-1]["message"]) if attempt.timeline else ""


def overview_of(tools: Tools, run: Run, may_read: MayRead = reads_all) -> Overview:
    """Return the current summary of a run, with the subworkflows that the caller may read."""
    state = tools.state
    blueprint = tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
    snapshot = state.load(run.uuid)
    known = {attempt.step_id: attempt for attempt in (snapshot.attempts if snapshot else ())}
    steps = (
        _step(state, step_id, blueprint.ordinals[step_id], type_of(step), known.get(step_id))
        for step_id, step in blueprint.steps.items()
    )
    source = run_source(tools, run, known.values(), may_read=may_read)
    run = snapshot.run if snapshot else run
    wrong = failures(state, run, may_read=may_read, attempts=known.values())
    return Overview(run, tuple(steps), source, tuple(wrong), live_of(tools, run, may_read))


def _step(state: EngineState, step_id: str, ordinal: int, type_name: str, attempt: Attempt | None) -> StepOverview:
    if attempt is None or attempt.is_leaf:
        return StepOverview(step_id, ordinal, type_name, attempt)
    child = next(iter(state.child_runs(attempt.uuid, limit=1)), None) if SUBWORKFLOW_KEY in attempt.artifacts else None
    return StepOverview(step_id, ordinal, type_name, attempt, _iterations(state, attempt), child)


def _iterations(state: EngineState, attempt: Attempt) -> Iterations | None:
    each, some = attempt.artifacts.get(FOREACH_KEY), attempt.artifacts.get(WHILE_KEY)
    if each is None and some is None:
        return None
    children = state.children(attempt.uuid)
    begun, total = (each["launched"], each["total"]) if each is not None else ((some or {})["iteration"], None)
    return Iterations(begun - children.active, children.active, children.failed + children.timed_out, total)


def failures(
    instances: Instances,
    run: Run,
    limit: int = 5,
    may_read: MayRead = reads_all,
    attempts: Iterable[Attempt] | None = None,
) -> list[Failure]:
    """Return up to ``limit`` attempts that made a run fail, including those in loops and subworkflows.

    ``attempts`` are those of the run, if already read.

    A loop that is running, or whose failure is ignored, returns its failed iterations. For a subworkflow that the
    caller may not read, the step that started it is returned instead.
    """
    known = _attempts(instances, run) if attempts is None else attempts
    return list(islice(_failures(instances, known, (), limit, may_read), limit))


def _attempts(instances: Instances, run: Run) -> Iterable[Attempt]:
    snapshot = instances.load(run.uuid)
    return snapshot.attempts if snapshot else ()


def _failures(
    instances: Instances, attempts: Iterable[Attempt], above: tuple[str, ...], limit: int, may_read: MayRead
) -> Iterator[Failure]:
    for attempt in attempts:
        path = (*above, attempt.step_id)
        below = _below(instances, attempt, path, limit, may_read) if _has_children(attempt) else iter(())
        found = list(islice(below, limit))
        if not found and attempt.status.is_restartable:
            found = [Failure(path, attempt, last_message(attempt))]
        yield from found


def _has_children(attempt: Attempt) -> bool:
    """Tell whether runs below an attempt may have failed, and whether their failures matter."""
    is_open = not attempt.status.is_complete or attempt.status is StepStatus.COMPLETED_WITH_ERROR
    return is_open and any(key in attempt.artifacts for key in _AROUND)


def _below(
    instances: Instances, attempt: Attempt, path: tuple[str, ...], limit: int, may_read: MayRead
) -> Iterator[Failure]:
    for child in instances.child_runs(attempt.uuid, statuses=_WRONG, limit=limit):
        if not may_read(child.owner_workflow):
            continue
        inside = (*path, str(child.instance_id)) if child.is_inline else path
        found = list(islice(_failures(instances, _attempts(instances, child), inside, limit, may_read), limit))
        # A run that ended before its steps has its own reason.
        yield from found or [Failure(inside, attempt, child.message or last_message(attempt))]
