"""Retention: how long records are kept, and what deletes them.

Import ``Pruner``, and the port and the records that the store implements it with.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
