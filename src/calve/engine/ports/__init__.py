"""What the engine requires of others: a store for its state, and runtimes for its steps.

Other packages import the protocols from ``calve.engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
