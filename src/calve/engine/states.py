"""A run in memory while it moves, and the runs that were moved last, kept so that they need not be read again."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from calve.definition.params import Parameter
from calve.engine.blueprints import Blueprint
from calve.engine.breakpoints import Breakpoints
from calve.engine.model import Attempt, Run
from calve.engine.statuses import RunStatus, StepStatus

KEPT = 1_000

Params = dict[str, Parameter]


@dataclass(slots=True)
class RunState:
    """A run, its steps, and what has been read of their params."""

    run: Run
    blueprint: Blueprint
    attempts: dict[str, Attempt]
    """The newest attempt of each step that has one, carried ones too."""
    outer: "RunState | None" = None
    """Of an iteration: the run around its loop."""
    is_new: bool = False
    params: Params | None = None
    """The evaluated params of the workflow, once they have been read; an iteration sees those around it too."""
    step_params: dict[str, Params] = field(default_factory=dict)
    """The evaluated params of steps, by the uuid of the attempt, as far as somebody has asked for them."""
    was: RunStatus | None = None
    """The status that is stored."""
    were: dict[str, StepStatus] = field(default_factory=dict)
    """The stored statuses of attempts, by uuid; a new attempt has none."""

    @property
    def outermost(self) -> "RunState":
        """The run of the instance: of an iteration, the one around all loops."""
        state = self
        while state.outer is not None:
            state = state.outer
        return state

    def copied(self) -> "RunState":
        """Return a state that can be moved without moving this one."""
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


class Cache:
    """Runs as they were after their last commit. Whoever uses one must compare its ``seq`` when committing."""

    def __init__(self, size: int = KEPT) -> None:
        self.breakpoints = Breakpoints()
        self._size = size
        self._kept: OrderedDict[str, RunState] = OrderedDict()
        self._lock = Lock()

    def get(self, run_uuid: str) -> RunState | None:
        """Return a state that can be moved, if the run is known."""
        with self._lock:
            found = self._kept.get(run_uuid)
            if found is None:
                return None
            self._kept.move_to_end(run_uuid)
            return found.copied()

    def put(self, state: RunState) -> None:
        """Keep a state; one whose run is over is dropped."""
        with self._lock:
            self._kept.pop(state.run.uuid, None)
            if not state.run.status.is_terminal:
                self._kept[state.run.uuid] = state
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def drop(self, run_uuid: str) -> None:
        """Forget a run."""
        with self._lock:
            self._kept.pop(run_uuid, None)
