"""Steps that the engine executes itself: foreach, while, subworkflow and approval.

For the engine itself; other packages import from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
