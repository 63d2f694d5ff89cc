"""Settings: ``calve.toml``, overridden by environment variables.

Import ``load`` and the sections from here; nothing else reads the file or the environment.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
