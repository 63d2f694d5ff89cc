"""Captures, checkpoints and deliveries in SQL, for a process that runs no workflows.

Import ``SqlCaptureState`` and ``SqlDeliveryState`` from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
