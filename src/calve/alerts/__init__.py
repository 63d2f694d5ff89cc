"""Alerts: who is notified when something happens to a workflow, and how."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
