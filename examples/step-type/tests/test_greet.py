"""Greet greets, and says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calve_step_greet import Greet

from calve.steps import State, StepRuntime


@dataclass
class Context:
    """As much of a step's context as the tests need."""

    params: Mapping[str, Any]
    artifacts: dict[str, Any] = field(default_factory=dict)
    workflow_params: Mapping[str, Any] = field(default_factory=dict)
    key: str = "an-attempt"
    title: str = "demo.greetings/1/1/hello/1"
    is_first: bool = True
    folder: Path = Path()
    timeout: float | None = None
    lines: list[str] = field(default_factory=list)

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Keep artifacts."""
        self.artifacts.update(artifacts)

    def log(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)

    def is_interrupted(self) -> bool:
        """Tell that nobody interrupts."""
        return False

    def wait(self, seconds: float) -> bool:
        """Wait for nothing."""
        return seconds < 0


def test_it_greets() -> None:
    """Once, if nothing else is said."""
    runtime: StepRuntime = Greet()
    context = Context({"greet": {"name": "world"}})
    outcome = runtime.execute(context)
    assert (outcome.state, outcome.outputs) == (State.DONE, {"greeting": "Hello, world!"})
    assert context.lines == ["Hello, world!\n"]


def test_it_greets_as_often_as_it_is_told() -> None:
    """One call at a time."""
    context = Context({"greet": {"name": "world", "times": "3"}})
    states = []
    for _ in range(3):
        outcome = Greet().execute(context)
        context.keep(outcome.artifacts)
        states.append(outcome.state)
    assert states == [State.CONTINUE, State.CONTINUE, State.DONE]


def test_a_missing_name_is_told() -> None:
    """Nobody can be greeted."""
    outcome = Greet().execute(Context({}))
    assert (outcome.state, outcome.message) == (State.FATAL_ERROR, "greet.name is missing.")
