"""The records that the engine keeps in the store, and the closed sets that their fields come from.

Other packages import them from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
