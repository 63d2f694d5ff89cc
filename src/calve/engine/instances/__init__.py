"""Runs in memory: the definitions that they follow, the cache, and the unit of work that changes them.

Other packages import them from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
