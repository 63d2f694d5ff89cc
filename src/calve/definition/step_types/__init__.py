"""The types that a step may have: what can be said of each, and what it gives."""

from calve.definition.step_types.model import Choose, Content, Field, FileField, Output, Outputs, StepType
from calve.definition.step_types.references import check_references
from calve.definition.step_types.registry import STEP_TYPES, StepTypes, Templates, load_step_types, stub
from calve.definition.step_types.texts import (
    file_references,
    files_of,
    named_files,
    step_references,
    unresolved_references,
)

__all__ = [
    "STEP_TYPES",
    "Choose",
    "Content",
    "Field",
    "FileField",
    "Output",
    "Outputs",
    "StepType",
    "StepTypes",
    "Templates",
    "check_references",
    "file_references",
    "files_of",
    "load_step_types",
    "named_files",
    "step_references",
    "stub",
    "unresolved_references",
]
