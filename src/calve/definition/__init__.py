"""Workflow definitions: read from YAML, JSON or Python, checked, and resolved into one model. Pure.

Others import from here what concerns whole definitions (``load``, ``Vocabulary``, ``Problems``), and from ``model``,
``params``, ``schedules``, ``step_types`` and ``templates`` what those hold.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
