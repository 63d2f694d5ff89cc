"""Parameters at run time: merged by precedence, evaluated, cast, interpolated, and hidden if secret.

Others import ``Parameter``, the functions that merge and evaluate params, and retry policies from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
