"""What a step runtime is given, and what it gives back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from calve.definition.params import FileText
from calve.engine.model import (
    RunStatus,
    StepStatus,
)


class State(StrEnum):
    """How a call of a runtime ended."""

    CONTINUE = "CONTINUE"
    DONE = "DONE"
    USER_ERROR = "USER_ERROR"
    PLATFORM_ERROR = "PLATFORM_ERROR"
    FATAL_ERROR = "FATAL_ERROR"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of a runtime gave."""

    state: State
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Plain values of output params, by name."""
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    """What is to be kept about the outside work, in JSON's types; merged over what is kept already."""
    message: str = ""
    """Why it failed, or how it goes."""
    poll_after: float = 0.0
    """CONTINUE: call again after so many seconds; no worker is held until then."""
    retry_after: float = 0.0
    """A failure: try again after so many seconds at the earliest, as a server has asked for."""
    is_last: bool = False
    """DONE: there is nothing for the steps after it to do, so that none of its edges holds."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a loop around a step."""

    loop: str
    """The id of the loop."""
    number: int
    """Counted from 1."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What a foreach gave this iteration; nothing for a while, whose iterations are one thing that goes on."""


@dataclass(frozen=True, slots=True)
class StepAddress:
    """The address of a step: the same for all its attempts, in all runs of an instance."""

    workflow_id: str
    """The workflow whose definition holds the step."""
    instance_id: int
    step_id: str
    iterations: tuple[Iteration, ...] = ()
    """The loops around it, the outermost first."""

    @property
    def stream(self) -> str:
        """Name the step over all instances and iterations."""
        return f"{self.workflow_id}/{self.step_id}"

    @property
    def consumer(self) -> str:
        """Name the step over all instances; what a foreach goes over tells its iterations apart, in any order."""
        values = {name: value for turn in self.iterations for name, value in turn.values.items()}
        told = ",".join(f"{name}={value}" for name, value in values.items())
        return f"{self.stream}[{told}]" if told else self.stream

    @property
    def part(self) -> str:
        """Name the iterations around the step, such as ``days[3]/hours[1]``; empty outside loops."""
        return "/".join(f"{turn.loop}[{turn.number}]" for turn in self.iterations)

    @property
    def work(self) -> str:
        """Name the step of this instance, whichever run or attempt carries it out."""
        parts = (self.workflow_id, str(self.instance_id), self.part, self.step_id)
        return "/".join(part for part in parts if part)


PROGRESS = "-- progress: "
"""A line of a step's log that begins like this tells how far the work has come; the last one is shown with the step."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The status of a step of the instance, or of the run that it started without waiting."""

    path: str
    """As restarts name it: ``job``, ``loop/3/job``, ``subworkflow/job``."""
    status: StepStatus | RunStatus


class StepContext(Protocol):
    """What a runtime is given about the attempt that it executes."""

    @property
    def key(self) -> str:
        """The attempt's uuid: the same whenever this attempt is executed, and stored before it is."""
        ...

    @property
    def title(self) -> str:
        """The attempt for people: workflow/instance/run/step/attempt."""
        ...

    @property
    def place(self) -> StepAddress:
        """The address of the step, whichever run or attempt this is."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The values of the step's params; secrets stand in them in clear."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """The tables that the step writes exactly once, as its definition names them, references replaced."""
        ...

    @property
    def workflow_params(self) -> Mapping[str, Any]:
        """The values of the workflow's params, secrets as stars."""
        ...

    @property
    def artifacts(self) -> Mapping[str, Any]:
        """What earlier calls have kept."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this is the first call; if not, work may be under way somewhere, by us or by a worker that died."""
        ...

    @property
    def folder(self) -> Path:
        """A folder of the attempt's own on this machine, made when it is asked for."""
        ...

    @property
    def timeout(self) -> float | None:
        """How many seconds the attempt has left."""
        ...

    def undelivered(self, capture_step: str) -> Sequence[StepEnd]:
        """Return the steps that were to use what a capture step captured and have not; none if all is well."""
        ...

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Store artifacts now, before going on: the name of the outside work, above all.

        Raises:
            LeaseLost: the attempt is no longer this worker's.
        """
        ...

    def log(self, text: str) -> None:
        """Append to the attempt's log; secrets are masked."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with stars for the step's secrets."""
        ...

    def resolve(self, file: FileText) -> str:
        """Return the text of a file with the values of its references, as those of the definition; secrets in clear.

        Raises:
            StepFailed: a reference has no value; names file, line and column.
        """
        ...

    def holds_secret(self, text: str) -> bool:
        """Tell whether a text has one of the step's secrets in it."""
        ...

    def is_interrupted(self) -> bool:
        """Tell whether the work is to end now: it was stopped, its time is up, or the worker has to go."""
        ...

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until interrupted; tell whether it was."""
        ...


class StepRuntime(Protocol):
    """Carries out one type of step. Each call may come more than once, so it must bear repetition."""

    def execute(self, context: StepContext) -> Outcome:
        """Start the work or continue it, and return its state."""
        ...

    def terminate(self, context: StepContext) -> None:
        """End whatever work of this attempt is under way, if any; come back when it is over."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A runtime that holds something for as long as its worker lives."""

    def close(self) -> None:
        """Release resources; the worker ends."""
        ...


Runtimes = Mapping[str, Callable[[], StepRuntime]]
"""Makes the runtime of a step type, by the type's name."""
