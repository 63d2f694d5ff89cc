"""Triggers by changes of tables: noticed by polling catalogs, decided by checkpoints.

Import the watcher and what samples lag; decisions are pure functions beside it.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
