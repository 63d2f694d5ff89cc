"""The web server: a route for every operation, GraphQL, streams, and the middleware before them.

Import ``create_app`` and ``WebServices`` to make one, ``serve`` and ``listen`` to run it.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
