"""What a runtime receives: the attempt that it executes, as the worker implements it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

from calve.definition.params import FileText, Resolve, SecretText, reveal, shown, values_of
from calve.engine.instances import Params
from calve.engine.logs import Log
from calve.engine.ports import Outcome, State, StepAddress, StepEnd
from calve.engine.worker.masks import Mask
from calve.errors import ParamError, StepFailed
from calve.folders import writing


@dataclass(slots=True, eq=False)
class AttemptContext:
    """Implements ``ports.StepContext``."""

    key: str
    title: str
    place: StepAddress
    params: Mapping[str, Any]
    workflow_params: Mapping[str, Any]
    artifacts: dict[str, Any]
    is_first: bool
    root: Path
    deadline: float | None
    """When the attempt times out, on the clock of ``monotonic``."""
    monotonic: Callable[[], float]
    record: Callable[[dict[str, Any]], None]
    evaluate: Callable[[FileText], str | SecretText]
    secret: Resolve
    lines: Log
    undelivered: Callable[[str], Sequence[StepEnd]]
    """Returns the steps that have not used the rows of a capture step."""
    secrets: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    interrupted: Event = field(default_factory=Event)
    _mask: Mask = field(init=False)

    def __post_init__(self) -> None:
        self._mask = Mask.of(self.secrets)

    @property
    def folder(self) -> Path:
        """The folder of the attempt, created when it is first used."""
        with writing("The folder of the attempt", self.root, "home"):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.root

    @property
    def timeout(self) -> float | None:
        """How many seconds are left until the attempt times out."""
        return None if self.deadline is None else max(0.0, self.deadline - self.monotonic())

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Store artifacts now."""
        self.record(dict(self._hidden(artifacts)))
        self.artifacts.update(artifacts)

    def log(self, text: str) -> None:
        """Append to the attempt's log, with its secrets masked."""
        text = self.mask(text).replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL cannot store NUL
        self.lines.write(text if text.endswith("\n") else f"{text}\n")

    def mask(self, text: str) -> str:
        """Return a text with the step's secrets masked."""
        return str(self._hidden(text))

    def resolve(self, file: FileText) -> str:
        """Return the text of a file with its references replaced; mask its secrets from now on."""
        try:
            text, used = _clear(self.evaluate(file), self.secret)
        except ParamError as error:
            raise StepFailed(f"{error.message}.", remedy=error.remedy, state=State.FATAL_ERROR) from error
        self.secrets = (*self.secrets, *used)
        self._mask = Mask.of(self.secrets)
        return str(text)

    def holds_secret(self, text: str) -> bool:
        """Tell whether a text contains one of the step's secrets."""
        return self._mask.is_in(text)

    def without_secrets(self, outcome: Outcome) -> Outcome:
        """Return the outcome with its secrets masked: programs may print what they were given."""
        if not self.secrets:
            return outcome
        return replace(
            outcome,
            outputs=self._hidden(outcome.outputs),
            artifacts=self._hidden(outcome.artifacts),
            message=self._hidden(outcome.message),
        )

    def _hidden(self, value: Any) -> Any:
        match value:
            case str():
                return self._mask(value)
            case Mapping():
                return {self._hidden(key): self._hidden(member) for key, member in value.items()}
            case list() | tuple():
                return [self._hidden(member) for member in value]
            case _:
                return value

    def is_interrupted(self) -> bool:
        """Tell whether to end the work now."""
        return self.interrupted.is_set() or self.timeout == 0

    def wait(self, seconds: float) -> bool:
        """Sleep for some seconds, or until interrupted; return whether it was interrupted."""
        left = self.timeout
        self.interrupted.wait(seconds if left is None else min(seconds, left))
        return self.is_interrupted()


def revealed(params: Params, resolve: Resolve) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values of params with secrets in plain text, and the texts of those secrets.

    Raises:
        ParamError: a secret has no value.
    """
    return _clear(values_of(params), resolve)


def _clear(value: Any, resolve: Resolve) -> tuple[Any, tuple[str, ...]]:
    """Return a value with its secrets in plain text, and the texts of those secrets."""
    used: list[str] = []

    def remembering(name: str) -> str:
        used.append(resolve(name))
        return used[-1]

    value = reveal(value, remembering)
    return value, tuple(dict.fromkeys(text for text in used if text))


def hidden(params: Params) -> dict[str, Any]:
    """Return the values of params with secrets masked."""
    values: dict[str, Any] = shown(values_of(params))
    return values
