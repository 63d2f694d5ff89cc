"""The forms that a definition may be written in, and the one shape they all mean."""

from calve.definition.forms.document import canonical
from calve.definition.forms.known_types import StepTypeNames

__all__ = ["StepTypeNames", "canonical"]
