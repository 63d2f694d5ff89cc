"""The JSON Schema of definitions, with which editors complete and check them.

Others import ``schema``. It accepts any key of a workflow or job, because unknown keys are params.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
