"""The pages, one module per topic; ``routers`` lists them.

Only ``calve.web`` imports it; pages are reached through their routes.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
