"""calve from Python: one object for a project on this machine or for a server, in scripts and in notebooks.

Users import ``connect`` and the types of its results from ``calve`` itself.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
