"""GraphQL over the same operations as REST: queries, mutations, and events as a subscription.

Import ``routers``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
