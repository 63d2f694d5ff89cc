"""Restarts: what runs again, what is kept, and with which version.

For the engine itself; other packages import from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
