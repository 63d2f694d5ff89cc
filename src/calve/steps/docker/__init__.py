"""The Docker step: runs a container on the worker's machine.

Import only the runtime.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
