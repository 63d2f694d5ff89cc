"""The part of Joda-Time that expressions use: date-times, time zones, formatters. Pure.

Only expressions import it: everything else calculates with Python's dates.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
