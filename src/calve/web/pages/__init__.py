"""The pages, one module a topic; ``routers`` lists them.

Only the app of ``calve.web`` imports it; a page has no other way in than its route.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
