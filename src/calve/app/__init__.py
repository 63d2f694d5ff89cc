"""The composition root: the only package that knows every part, and connects them.

Import ``open_project`` or ``open_captures`` to open a project by its settings.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
