"""The engine's types that a plug-in needs to write a runtime."""

from calve.engine import Outcome, State, StepContext, StepRuntime

__all__ = ["Outcome", "State", "StepContext", "StepRuntime"]
