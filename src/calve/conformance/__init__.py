"""Checks that a catalog does all that calve asks of it, in a scratch namespace: ``calve doctor --prove``.

``CHECKS`` declares the checks; ``prove`` carries them out, and cleans up.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
