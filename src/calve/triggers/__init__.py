"""Triggers: what starts workflows by time, by signals, and by changes of tables.

Import the scheduler, time triggers and the ports from here, the other kinds from ``signals`` and ``tables``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
