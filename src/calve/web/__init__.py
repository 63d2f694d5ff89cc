"""The web UI: pages under ``/``, made on the server from the same operations as the REST API.

Import ``add_pages`` to give them to an app.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
