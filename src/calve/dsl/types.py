"""A function for each installed step type, including those that packages add: ``types.greet("hi", name="world")``."""

from collections.abc import Callable

from calve.definition import did_you_mean
from calve.definition.step_types import StepType, load_step_types
from calve.dsl.graph import Step
from calve.dsl.signatures import function_name
from calve.dsl.step_functions import step_function


def __getattr__(name: str) -> Callable[..., Step]:
    types = _types()
    if name not in types:
        raise AttributeError(f"{__name__} has no function {name}: {did_you_mean(name, types)}")
    return step_function(types[name])


def __dir__() -> list[str]:
    return sorted(_types())


def _types() -> dict[str, StepType]:
    return {function_name(item): item for item in load_step_types().values() if not item.refused}
