"""Settings: ``calve.toml``, overridden by the environment, which nothing else reads."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
