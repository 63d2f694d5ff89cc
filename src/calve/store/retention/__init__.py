"""Finds and deletes records that are older than their retention.

Import ``SqlRetention`` from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
