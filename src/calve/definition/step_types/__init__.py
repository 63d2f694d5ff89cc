"""The types that a step may have: what can be said of each, and what it gives."""

from calve.definition.step_types.model import Choose, Field, Output, Outputs, StepType
from calve.definition.step_types.references import check_references
from calve.definition.step_types.registry import STEP_TYPES, StepTypes, Templates, load_step_types, stub

__all__ = [
    "STEP_TYPES",
    "Choose",
    "Field",
    "Output",
    "Outputs",
    "StepType",
    "StepTypes",
    "Templates",
    "check_references",
    "load_step_types",
    "stub",
]
