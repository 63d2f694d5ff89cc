"""The runtimes of the step types: what carries out a step, and what it takes to write one."""

from calve.engine.ports import Outcome, State, StepContext, StepRuntime
from calve.steps.configs import fields
from calve.steps.failures import fatal, of_platform, of_user, settled
from calve.steps.isolation import Isolation, isolation_of
from calve.steps.registry import BUILT_IN, ENTRY_POINTS, load_runtimes
from calve.steps.services import Deliveries, Services
from calve.steps.surroundings import Surroundings

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "Deliveries",
    "Isolation",
    "Outcome",
    "Services",
    "State",
    "StepContext",
    "StepRuntime",
    "Surroundings",
    "fatal",
    "fields",
    "isolation_of",
    "load_runtimes",
    "of_platform",
    "of_user",
    "settled",
]
