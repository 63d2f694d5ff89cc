"""Runs programs under a supervisor: launch, log, re-attach after a crash, kill, read outputs, isolate.

The step types that run programs or containers import from here. docs/explain/access.md describes the isolation.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
