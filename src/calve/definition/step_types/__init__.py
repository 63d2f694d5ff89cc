"""The step types: the declaration of each, and what follows from it (checks, JSON Schema, reference tables).

Others may import what ``__init__.pyi`` lists; packages declare their types with ``StepType``, ``Field`` and ``Output``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
