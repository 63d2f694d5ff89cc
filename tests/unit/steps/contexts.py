"""A step's context for tests: keeps in memory what a worker would store."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calve.definition.model import StringParam
from calve.definition.params import FileText, Parameter, StepScope, evaluate_file
from calve.engine import State, StepAddress, StepEnd
from calve.errors import ParamError, StepFailed

PLACE = StepAddress("demo.pipeline", 3, "job.1")


@dataclass
class FakeContext:
    """A StepContext whose answers a test sets, and which remembers what a runtime told it."""

    home: Path
    """Where the attempt's folder is made."""
    params: Mapping[str, Any] = field(default_factory=dict)
    workflow_params: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    artifacts: dict[str, Any] = field(default_factory=dict)
    key: str = "0195-attempt"
    title: str = "demo.pipeline/3/1/job.1/2"
    place: StepAddress = PLACE
    is_first: bool = True
    timeout: float | None = None
    secrets: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """What references in files stand for."""
    not_used: tuple[StepEnd, ...] = ()
    """What ``undelivered`` returns, whatever the capture."""
    kept: list[dict[str, Any]] = field(default_factory=list)
    """What each ``keep`` stored, in order."""
    lines: list[str] = field(default_factory=list)
    """What each ``log`` was given, in order."""
    interruption: threading.Event = field(default_factory=threading.Event)
    """Set it to interrupt the work."""

    @property
    def folder(self) -> Path:
        """The attempt's folder."""
        folder = self.home / "attempts" / self.key
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def text(self) -> str:
        """The whole log."""
        return "".join(self.lines)

    def undelivered(self, capture_step: str) -> tuple[StepEnd, ...]:  # noqa: ARG002 - the port's signature
        """Return what a test set."""
        return self.not_used

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Remember artifacts, merged over the earlier ones."""
        self.kept.append(dict(artifacts))
        self.artifacts.update(artifacts)

    def log(self, text: str) -> None:
        """Remember a piece of the log."""
        self.lines.append(text)

    def resolve(self, file: FileText) -> str:
        """Resolve a file's references with the engine's own function, over the values that a test named."""
        workflow = {name: Parameter(name, StringParam(), value) for name, value in self.values.items()}
        try:
            return str(evaluate_file(file, own={}, scope=StepScope("job.1", workflow)))
        except ParamError as error:
            raise StepFailed(f"{error.message}.", remedy=error.remedy, state=State.FATAL_ERROR) from error

    def mask(self, text: str) -> str:
        """Return a text with stars for the secrets that a test named."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def holds_secret(self, text: str) -> bool:
        """Tell whether a text has one of the secrets in it that a test named."""
        return any(secret in text for secret in self.secrets)

    def is_interrupted(self) -> bool:
        """Tell whether a test interrupted the work."""
        return self.interruption.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until interrupted."""
        return self.interruption.wait(seconds)

    def again(self) -> "FakeContext":
        """Return the context of the worker that takes the attempt over: it knows what was kept, and nothing else."""
        return FakeContext(
            self.home,
            params=self.params,
            workflow_params=self.workflow_params,
            artifacts=dict(self.artifacts),
            key=self.key,
            title=self.title,
            is_first=False,
            timeout=self.timeout,
        )
