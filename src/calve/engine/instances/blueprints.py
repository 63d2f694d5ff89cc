"""Definitions as the engine runs them: the steps of a workflow or of a loop, parsed once and cached."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from calve.definition.model import Definition, FailureMode, ForeachStep, Step, TypedStep, WhileStep, Workflow
from calve.engine.model import VersionRecord
from calve.errors import WorkflowMissing


@dataclass(frozen=True, slots=True)
class Dag:
    """The graph of steps, each edge with its condition, in the order of the definition."""

    successors: Mapping[str, Mapping[str, str]]
    predecessors: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "Dag":
        """Return the graph of some steps."""
        successors = {step.id: dict(step.transition.successors) for step in steps}
        before: dict[str, list[str]] = {step_id: [] for step_id in successors}
        for step_id, edges in successors.items():
            for target in edges:
                before[target].append(step_id)
        return cls(successors, {step_id: tuple(sources) for step_id, sources in before.items()})

    def with_descendants(self, starts: Iterable[str], *, but: Collection[str] = ()) -> frozenset[str]:
        """Return the given steps and all that follow them, without going past the steps in ``but``."""
        return _reached(starts, self.successors, but)

    def with_ancestors(self, ends: Iterable[str]) -> frozenset[str]:
        """Return the given steps and all that precede them."""
        return _reached(ends, self.predecessors, ())


def _reached(starts: Iterable[str], ways: Mapping[str, Iterable[str]], but: Collection[str]) -> frozenset[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        for target in ways[waiting.pop()]:
            if target not in found and target not in but:
                found.add(target)
                waiting.append(target)
    return frozenset(found)


KEPT = 500
NO_OP = "NoOp"
APPROVAL = "Approval"
Versions = Callable[[str, int], VersionRecord | None]


@dataclass(frozen=True)
class Blueprint:
    """What the runs of one workflow version, or of one loop in it, have in common."""

    workflow: Workflow
    steps: Mapping[str, Step]
    """The steps of this level, in the order of the definition."""
    dag: Dag
    modes: Mapping[str, FailureMode]
    ordinals: Mapping[str, int]

    @classmethod
    def of(cls, workflow: Workflow, steps: Sequence[Step]) -> "Blueprint":
        """Return the blueprint of some steps of a workflow."""
        return cls(
            workflow=workflow,
            steps={step.id: step for step in steps},
            dag=Dag.of(steps),
            modes={step.id: step.failure_mode for step in steps if step.failure_mode is not None},
            ordinals={step.id: position for position, step in enumerate(steps, start=1)},
        )

    @cached_property
    def written(self) -> Mapping[str, Any]:
        """The workflow in JSON's types, with the steps of this level."""
        return {**self.workflow.as_json(), "steps": [{step.kind: step.as_json()} for step in self.steps.values()]}


def type_of(step: Step) -> str:
    """Return the type of a step: that of its job, or else its kind, such as foreach."""
    return step.type if isinstance(step, TypedStep) else step.kind


def is_leaf(step: Step) -> bool:
    """Tell whether a step does work itself, rather than running other steps."""
    return isinstance(step, TypedStep)


def is_immediate(step: Step) -> bool:
    """Tell whether a step has nothing to do, so that it needs no worker."""
    return isinstance(step, TypedStep) and step.type == NO_OP


def is_approval(step: Step) -> bool:
    """Tell whether a step waits for a person."""
    return isinstance(step, TypedStep) and step.type == APPROVAL


def needs_worker(step: Step) -> bool:
    """Tell whether a runtime executes a step, rather than the engine itself."""
    return is_leaf(step) and not is_immediate(step) and not is_approval(step)


class Blueprints:
    """Reads definitions from the store, and caches those used last; a version never changes."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._kept: OrderedDict[tuple[str, int, str | None], Blueprint] = OrderedDict()
        self._lock = Lock()

    def get(self, workflow_id: str, version_id: int, inline_step: str | None = None) -> Blueprint:
        """Return the blueprint of a version, or of a loop in it.

        Raises:
            WorkflowMissing: the version does not exist.
        """
        key = (workflow_id, version_id, inline_step)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = self._make(workflow_id, version_id, inline_step)
        with self._lock:
            self._kept[key] = made
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made

    def _make(self, workflow_id: str, version_id: int, inline_step: str | None) -> Blueprint:
        if inline_step is not None:
            outer = self.get(workflow_id, version_id).workflow
            loop = next(step for step in outer.all_steps() if step.id == inline_step)
            assert isinstance(loop, ForeachStep | WhileStep)  # noqa: S101 - only loops have runs inside
            return Blueprint.of(outer, loop.steps)
        record = self._versions(workflow_id, version_id)
        if record is None:
            raise WorkflowMissing(f"Workflow {workflow_id} has no version {version_id}.", workflow=workflow_id)
        workflow = Definition.model_validate(record.definition).workflow
        return Blueprint.of(workflow, workflow.steps)
