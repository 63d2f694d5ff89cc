"""What a step runtime receives, and what it returns."""

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
    INFRASTRUCTURE_ERROR = "INFRASTRUCTURE_ERROR"
    """A platform failure that is likely to be over: a server died, a connection broke, another writer was faster."""
    FATAL_ERROR = "FATAL_ERROR"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call of a runtime."""

    state: State
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Plain values of output params, by name."""
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    """What to store about the work, in JSON's types; merged into the artifacts that are stored already."""
    message: str = ""
    """Why it failed, or what it is doing."""
    poll_after: float = 0.0
    """CONTINUE: the seconds until the next call; no worker is occupied until then."""
    retry_after: float = 0.0
    """A failure: the minimum number of seconds until the retry, such as a server has asked for."""
    is_last: bool = False
    """DONE: there is nothing for the steps after it to do, so none of its transitions is followed."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a loop around a step."""

    loop: str
    """The id of the loop."""
    number: int
    """Counted from 1."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values that a foreach gave this iteration; empty for a while, whose iterations continue one another."""


@dataclass(frozen=True, slots=True)
class StepAddress:
    """The address of a step: the same for all its attempts, in all runs of an instance."""

    workflow_id: str
    """The workflow whose definition contains the step."""
    instance_id: int
    step_id: str
    iterations: tuple[Iteration, ...] = ()
    """The loops around it, the outermost first."""

    @property
    def stream(self) -> str:
        """The name of the step in all instances and iterations."""
        return f"{self.workflow_id}/{self.step_id}"

    @property
    def consumer(self) -> str:
        """The name of the step in all instances; the values of a foreach identify its iterations, in any order."""
        values = {name: value for turn in self.iterations for name, value in turn.values.items()}
        told = ",".join(f"{name}={value}" for name, value in values.items())
        return f"{self.stream}[{told}]" if told else self.stream

    @property
    def part(self) -> str:
        """The iterations around the step, such as ``days[3]/hours[1]``; empty outside loops."""
        return "/".join(f"{turn.loop}[{turn.number}]" for turn in self.iterations)

    @property
    def work(self) -> str:
        """The name of the step in this instance, for all its runs and attempts."""
        parts = (self.workflow_id, str(self.instance_id), self.part, self.step_id)
        return "/".join(part for part in parts if part)


PROGRESS = "-- progress: "
"""A line of a step's log that begins like this reports its progress; the last one is shown with the step."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The status of a step of the instance, or of the run that it started without waiting."""

    path: str
    """The path, as in a restart: ``job``, ``loop/3/job``, ``subworkflow/job``."""
    status: StepStatus | RunStatus


class StepContext(Protocol):
    """The attempt that a runtime executes."""

    @property
    def key(self) -> str:
        """The attempt's uuid: the same for each call for this attempt, and stored before the first."""
        ...

    @property
    def title(self) -> str:
        """The attempt in readable form: workflow/instance/run/step/attempt."""
        ...

    @property
    def place(self) -> StepAddress:
        """The address of the step, the same for all its runs and attempts."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The values of the step's params; secrets are in plain text."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """The tables that the step writes exactly once, as in its definition, with references replaced."""
        ...

    @property
    def workflow_params(self) -> Mapping[str, Any]:
        """The values of the workflow's params; secrets are masked."""
        ...

    @property
    def artifacts(self) -> Mapping[str, Any]:
        """The artifacts that earlier calls have stored."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this is the first call; if not, an earlier call, by any worker, may have left work under way."""
        ...

    @property
    def folder(self) -> Path:
        """A folder of the attempt on this machine, created when it is first used."""
        ...

    @property
    def timeout(self) -> float | None:
        """How many seconds are left until the attempt times out."""
        ...

    def undelivered(self, capture_step: str) -> Sequence[StepEnd]:
        """Return the steps that should have used the rows of a capture step and have not; empty if all have."""
        ...

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Store artifacts now, before continuing: above all, the id of work that was started elsewhere.

        Raises:
            LeaseLost: this worker no longer owns the attempt.
        """
        ...

    def log(self, text: str) -> None:
        """Append to the attempt's log; secrets are masked."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with the step's secrets masked."""
        ...

    def resolve(self, file: FileText) -> str:
        """Return the text of a file with its references replaced, as in the definition; secrets are in plain text.

        Raises:
            StepFailed: a reference has no value; the message names file, line and column.
        """
        ...

    def holds_secret(self, text: str) -> bool:
        """Tell whether a text contains one of the step's secrets."""
        ...

    def is_interrupted(self) -> bool:
        """Tell whether to end the work now: it was stopped, has timed out, or the worker is shutting down."""
        ...

    def wait(self, seconds: float) -> bool:
        """Sleep for some seconds, or until interrupted; return whether it was interrupted."""
        ...


class StepRuntime(Protocol):
    """Executes one type of step. Each call may be repeated, so it must be idempotent."""

    def execute(self, context: StepContext) -> Outcome:
        """Start the work or continue it, and return its state."""
        ...

    def terminate(self, context: StepContext) -> None:
        """End the work of this attempt, if any is under way; return when it has ended."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A runtime that keeps resources until its worker ends."""

    def close(self) -> None:
        """Release the resources, because the worker ends."""
        ...


Runtimes = Mapping[str, Callable[[], StepRuntime]]
"""Creates the runtime of a step type, by the name of the type."""
