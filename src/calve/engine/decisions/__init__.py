"""What happens next in a run, and the transactions that make it happen.

For the engine itself; other packages import from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
