"""The logs of attempts: how they are written and how they are read.

Other packages import from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
