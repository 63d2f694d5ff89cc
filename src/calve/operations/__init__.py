"""The operations of calve: each is declared once, and REST, GraphQL, the client and the commands follow from it.

Import ``Operations`` to perform them, ``declared`` to derive an interface from them.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
