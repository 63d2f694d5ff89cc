"""Workflow definitions: read from YAML, JSON or Python, checked, and resolved into one model. Pure.

Import from here what concerns whole definitions (``load``, ``Vocabulary``, ``Problems``); the subpackages ``model``,
``params``, ``schedules``, ``step_types`` and ``templates`` export their own names.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
