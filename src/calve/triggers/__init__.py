"""Triggers: what starts workflows by time, by signals, and by changes of tables."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
