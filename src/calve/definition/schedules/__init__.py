"""Schedules of time triggers: cron, predefined ones such as ``@daily``, and intervals. Pure.

Others import ``Schedule``, ``zone_of`` and the functions that parse schedules from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
