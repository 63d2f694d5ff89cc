"""Who may use the server: the middleware before all routes, and the routes to sign in.

Import ``guarded`` and ``AccessControl`` to protect an app.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
