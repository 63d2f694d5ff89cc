"""Signals: announced by programs and steps, joined by triggers, and traced from sender to instance.

Import ``Signals``, its documents, and the port that the store implements.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
