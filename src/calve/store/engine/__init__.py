"""What the engine keeps: workflows, instances, the queue, permits, signals and triggers.

Other packages import ``SqlEngineState`` and ``SqlTriggerState``; the store's own modules also import what reads rows.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
