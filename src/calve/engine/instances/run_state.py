"""The state of a run in memory, and a cache of the runs that changed last."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from calve.definition.model import SubworkflowStep
from calve.definition.params import Parameter
from calve.engine.instances.blueprints import Blueprint
from calve.engine.model import Attempt, Breakpoint, Json, Run, RunStatus, StepStatus

MOMENT_MS = 100
"""How old cached breakpoints may be, and so how long one that another process sets may go unnoticed."""


class Breakpoints:
    """Reads the breakpoints of a workflow at most every ``MOMENT_MS``."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[Breakpoint]]] = {}
        self._lock = Lock()

    def of(self, workflow_id: str, now: int, ask: Callable[[str], list[Breakpoint]]) -> list[Breakpoint]:
        """Return the breakpoints of a workflow, at most ``MOMENT_MS`` old."""
        with self._lock:
            known = self._known.get(workflow_id)
        if known is not None and 0 <= now - known[0] <= MOMENT_MS:
            return known[1]
        found = ask(workflow_id)
        with self._lock:
            self._known = {name: kept for name, kept in self._known.items() if 0 <= now - kept[0] <= MOMENT_MS}
            self._known[workflow_id] = (now, found)
        return found

    def forget(self) -> None:
        """Drop all cached breakpoints, because some have changed."""
        with self._lock:
            self._known = {}


KEPT = 1_000
Params = dict[str, Parameter]


@dataclass(slots=True)
class RunState:
    """A run, its steps, and those of their params that have been read."""

    run: Run
    blueprint: Blueprint
    attempts: dict[str, Attempt]
    """The newest attempt of each step that has one, including attempts carried over from earlier runs."""
    outer: "RunState | None" = None
    """The run around the loop, if this run is an iteration."""
    is_new: bool = False
    params: Params | None = None
    """The evaluated params of the workflow, once they have been read; for an iteration, also those around it."""
    step_params: dict[str, Params] = field(default_factory=dict)
    """The evaluated params of the steps that were needed so far, by the uuid of the attempt."""
    was: RunStatus | None = None
    """The stored status of the run."""
    were: dict[str, StepStatus] = field(default_factory=dict)
    """The stored statuses of attempts, by uuid; a new attempt has none."""

    @property
    def outermost(self) -> "RunState":
        """The run of the instance: for an iteration, the run around all loops."""
        state = self
        while state.outer is not None:
            state = state.outer
        return state

    def copied(self) -> "RunState":
        """Return a copy that can change without changing this state."""
        return RunState(
            run=self.run,
            blueprint=self.blueprint,
            attempts=dict(self.attempts),
            outer=self.outer,
            params=self.params,
            step_params=dict(self.step_params),
            was=self.run.status,
            were={attempt.uuid: attempt.status for attempt in self.attempts.values()},
        )

    def is_skipped(self, step_id: str) -> bool:
        """Tell whether a restart skips a step."""
        return step_id in self.run.restart.skip and self._is_restart_for_own_steps()

    def restart_params(self, step_id: str) -> Json:
        """Return the params of a step that a restart changes."""
        changed = self.run.restart.step_params.get(step_id, {})
        return changed if changed and self._is_restart_for_own_steps() else {}

    def _is_restart_for_own_steps(self) -> bool:
        """Tell whether a restart names steps of this workflow, rather than of a subworkflow on its path."""
        steps = {step.id: step for step in self.blueprint.workflow.all_steps()}
        return not any(isinstance(steps.get(step_id), SubworkflowStep) for step_id in self.run.restart.step_path[:-1])


class Cache:
    """Caches runs as of their last commit; a commit must compare their ``seq`` with the stored one."""

    def __init__(self, size: int = KEPT) -> None:
        self.breakpoints = Breakpoints()
        self._size = size
        self._kept: OrderedDict[str, RunState] = OrderedDict()
        self._lock = Lock()

    def get(self, run_uuid: str) -> RunState | None:
        """Return a copy of a cached state, or None if the run is not cached."""
        with self._lock:
            found = self._kept.get(run_uuid)
            if found is None:
                return None
            self._kept.move_to_end(run_uuid)
            return found.copied()

    def put(self, state: RunState) -> None:
        """Cache a state, or drop it if its run has ended."""
        with self._lock:
            self._kept.pop(state.run.uuid, None)
            if not state.run.status.is_terminal:
                self._kept[state.run.uuid] = state
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def drop(self, run_uuid: str) -> None:
        """Drop a run from the cache."""
        with self._lock:
            self._kept.pop(run_uuid, None)
