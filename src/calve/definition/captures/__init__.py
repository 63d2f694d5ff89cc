"""Captures in a definition: who uses their rows, what commits them, and in which order. Pure.

Others import ``CapturedRows``, ``complete`` and ``check_capture_order`` from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
