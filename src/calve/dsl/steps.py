"""A function for each built-in step type; ``steps.pyi`` has their signatures and docstrings: ``make step-types``."""

from calve.definition.step_types import STEP_TYPES
from calve.dsl.signatures import function_name
from calve.dsl.step_functions import step_function

_FUNCTIONS = {function_name(item): step_function(item) for item in STEP_TYPES.values() if not item.refused}
globals().update(_FUNCTIONS, __all__=sorted(_FUNCTIONS))
