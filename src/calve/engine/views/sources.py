"""The sources of Maestro's documents besides the rows of a run: its definition, and the runs around and inside it.

A list costs the same few queries, however many steps it has; what lies inside loops and subworkflows is read for the
document of one step only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from calve.definition.model import Step, TypedStep
from calve.engine.attempts import DYNAMIC
from calve.engine.control_steps import FOREACH_KEY, SUBWORKFLOW_KEY, WHILE_KEY
from calve.engine.instances import Blueprint, Tools
from calve.engine.model import Ancestor, Attempt, IterationRecord, Json, Leaves, Run, Scope, Signal
from calve.engine.ports import EngineState

MayRead = Callable[[str], bool]
"""Tells whether the caller may read a workflow: a subworkflow may be in another namespace than its parent."""


def reads_all(_workflow_id: str) -> bool:
    """Allow everything to be read."""
    return True


@dataclass(frozen=True, slots=True)
class RunSource:
    """The sources of a run's document besides its row and its attempts."""

    blueprint: Blueprint
    runs: Mapping[str, Run] = field(default_factory=dict)
    """The earlier runs that some of its attempts belong to, by uuid."""
    ancestors: tuple[Ancestor, ...] = ()
    """The attempts that contain it, starting with that of the root."""
    sent: Mapping[str, list[Signal]] = field(default_factory=dict)
    """The signals that its attempts have sent, by uuid."""
    leaves: Leaves | None = None
    around: Json = field(default_factory=dict)
    """Of an iteration whose steps refer to them in timeouts or retries: the stored params of its instance."""
    others: Mapping[str, Blueprint] = field(default_factory=dict)
    """The blueprints of runs among them that follow another version, by uuid."""

    def blueprint_of(self, attempt: Attempt) -> Blueprint:
        """Return the blueprint that an attempt follows: that of its own run."""
        return self.others.get(attempt.run_uuid, self.blueprint)


@dataclass(frozen=True, slots=True)
class Child:
    """A run inside a step: the instance of a subworkflow, or the last iteration of a while."""

    run: Run
    blueprint: Blueprint
    attempts: tuple[Attempt, ...]
    leaves: Leaves


@dataclass(frozen=True, slots=True)
class LoopState:
    """The iterations of a loop."""

    iterations: tuple[IterationRecord, ...]
    leaves: Leaves
    first: int | None = None
    """The first iteration that this attempt started."""


@dataclass(frozen=True, slots=True)
class StepSource:
    """The sources of an attempt's document besides its row."""

    of_run: RunSource
    child: Child | None = None
    loop: LoopState | None = None


def run_source(
    tools: Tools, run: Run, attempts: Iterable[Attempt], *, with_leaves: bool = True, may_read: MayRead = reads_all
) -> RunSource:
    """Return the sources of a run's document."""
    state, shown = tools.state, tuple(attempts)
    blueprint = tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
    is_mixed = any(attempt.run_uuid != run.uuid for attempt in shown)
    runs = {each.uuid: each for each in state.runs(run.workflow_id, run.instance_id)} if is_mixed else {}
    others = {
        each.uuid: tools.blueprints.get(each.owner_workflow, each.version_id, each.inline_step)
        for each in runs.values()
        if each.version_id != run.version_id
    }
    ancestors = tuple(state.ancestors(run.uuid)) if run.parent else ()
    source = RunSource(blueprint, runs, ancestors, others=others)
    return replace(
        source,
        sent=_sent(state, source, run, shown),
        leaves=_leaves(state, _scope(run), may_read) if with_leaves else None,
        around=_around(state, source, run),
    )


def _leaves(state: EngineState, scope: Scope, may_read: MayRead) -> Leaves:
    """Return the leaf steps of a scope; those of workflows that the caller may not read are only counted."""
    leaves = state.leaves(scope)
    if may_read is reads_all:
        return leaves
    runs = {(leaf.workflow_id, leaf.instance_id) for leaf in leaves.named}
    found = {place: state.run(*place) for place in runs}
    named = (
        leaf
        for leaf in leaves.named
        if (run := found[leaf.workflow_id, leaf.instance_id]) is not None and may_read(run.owner_workflow)
    )
    return replace(leaves, named=tuple(named))


def _scope(run: Run) -> Scope:
    """Return the scope of an instance's leaf steps: that of a root is its whole tree, which an index counts."""
    return Scope(run.root_uuid, run.workflow_id, run.instance_id) if run.parent else Scope(run.root_uuid)


def _sent(state: EngineState, source: RunSource, run: Run, attempts: tuple[Attempt, ...]) -> dict[str, list[Signal]]:
    """Return the signals that attempts have sent; no query is made if none of them can have sent any."""
    uuids = [attempt.uuid for attempt in attempts if _may_send(source.blueprint_of(attempt), attempt)]
    if not uuids:
        return {}
    number = _outermost(source, run).instance_id if run.is_inline else run.instance_id
    return state.sent_signals(run.owner_workflow, number, uuids)


def _outermost(source: RunSource, run: Run) -> Ancestor:
    """Return the instance that an iteration belongs to."""
    return next(each for each in reversed(source.ancestors) if each.workflow_id == run.owner_workflow)


def _around(state: EngineState, source: RunSource, run: Run) -> Json:
    if not run.is_inline or not any(_refers(step) for step in source.blueprint.steps.values()):
        return {}
    place = _outermost(source, run)
    outer = state.run(place.workflow_id, place.instance_id, place.run_id)
    return outer.params if outer else {}


def _refers(step: Step) -> bool:
    """Tell whether a step's timeout or retries refer to params."""
    policy = step.retry_policy if isinstance(step, TypedStep) else None
    return "$" in f"{step.timeout}{policy and policy.as_json()}"


def _may_send(blueprint: Blueprint, attempt: Attempt) -> bool:
    step = blueprint.steps.get(attempt.step_id)
    return DYNAMIC in attempt.artifacts or (step is not None and bool(step.signal_outputs))


def step_source(tools: Tools, run: Run, attempt: Attempt, may_read: MayRead = reads_all) -> StepSource:
    """Return the sources of an attempt's document, including the runs inside it that the caller may read."""
    of_run = run_source(tools, run, [attempt], with_leaves=False)
    if attempt.is_leaf:
        return StepSource(of_run)
    if SUBWORKFLOW_KEY in attempt.artifacts:
        children = tools.state.child_runs(attempt.uuid, limit=1)
        is_shown = bool(children) and may_read(children[0].owner_workflow)
        return StepSource(of_run, _child(tools, children[0], may_read) if is_shown else None)
    if FOREACH_KEY in attempt.artifacts:
        name = attempt.artifacts[FOREACH_KEY]["loop_workflow_id"]
        return StepSource(of_run, loop=_loop(tools.state, run, name, may_read))
    if WHILE_KEY in attempt.artifacts:
        return _of_while(tools, run, attempt, of_run, may_read)
    return StepSource(of_run)


def _of_while(tools: Tools, run: Run, attempt: Attempt, of_run: RunSource, may_read: MayRead) -> StepSource:
    kept, state = attempt.artifacts[WHILE_KEY], tools.state
    begun = state.child_runs(attempt.uuid, limit=1)
    first = begun[0].instance_id if begun else None
    last = state.load(kept["last"]) if kept["last"] else None
    loop = _loop(state, run, kept["loop_workflow_id"], may_read, first, with_params=True)
    return StepSource(of_run, _child(tools, last.run, may_read) if last else None, loop)


def _loop(
    state: EngineState, run: Run, name: str, may_read: MayRead, first: int | None = None, *, with_params: bool = False
) -> LoopState:
    iterations = state.iterations(name, with_params=with_params)
    return LoopState(tuple(iterations), _leaves(state, Scope(run.root_uuid, name), may_read), first)


def _child(tools: Tools, run: Run, may_read: MayRead) -> Child:
    snapshot = tools.state.load(run.uuid)
    blueprint = tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step)
    leaves = _leaves(tools.state, Scope(run.root_uuid, run.workflow_id, run.instance_id), may_read)
    return Child(run, blueprint, snapshot.attempts if snapshot else (), leaves)
