"""How an instance moves: states, decisions, retries, loops, run strategies; the worker; its ports.

Import ``Engine``, its records and its ports from here, and documents from ``views``; everything else is internal.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
