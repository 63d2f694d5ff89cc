"""The base class of the step types that run one program on the worker's machine."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calve.engine import Outcome, StepContext
from calve.steps.failures import settled
from calve.steps.processes import Workspace, terminate_programs


class ProgramStep(ABC):
    """A runtime that runs one program on the worker's machine."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def execute(self, context: StepContext) -> Outcome:
        """Run the program to its end."""
        return settled(self.run, context)

    def terminate(self, context: StepContext) -> None:
        """End the program and every process that it started."""
        terminate_programs(context, self._workspace)

    @abstractmethod
    def run(self, context: StepContext) -> Outcome:
        """Run the program to its end.

        Raises:
            StepFailed: it cannot be started.
        """

    def _environment(self, config: Mapping[str, Any], context: StepContext) -> dict[str, str]:
        """Return the program's environment variables, those of the step's ``env`` included."""
        return self._workspace.environment_for(context, config.get("env", {}))

    def _cwd(self, config: Mapping[str, Any]) -> Path | None:
        """Return the step's working directory; None for a fresh one."""
        return self._workspace.locate(config["cwd"], "The working directory") if "cwd" in config else None
