"""Alerts: who is notified when something happens to a workflow, and how.

Import ``Alerts``, its records, and the port that the store implements.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
