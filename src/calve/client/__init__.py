"""A calve server, from Python: the operations of ``calve.operations``, performed over HTTP.

Import ``Client``, or ``connect`` for the operations of a server.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
