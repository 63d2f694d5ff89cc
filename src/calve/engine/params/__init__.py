"""The params of runs and steps: merged, evaluated, and changed by outputs.

For the engine itself; other packages import from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
