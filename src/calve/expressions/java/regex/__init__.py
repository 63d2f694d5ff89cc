"""Regular expressions with Java's syntax and meaning, searched in bounded time: ``split`` and ``replace_all``.

Only the rest of ``expressions.java`` imports it.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
