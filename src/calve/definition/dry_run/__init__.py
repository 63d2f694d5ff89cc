"""Dry runs: the params of a definition resolved, checked and rendered before a run.

Others import ``dry_run``, ``resolve`` and ``rendered`` from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
