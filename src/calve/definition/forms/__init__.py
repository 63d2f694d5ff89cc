"""The forms in which a definition may be written, and their conversion to the canonical form.

Others import ``canonical``, and how params are written, from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
