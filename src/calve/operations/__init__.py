"""Everything that can be asked or done: each operation is declared once, and all edges follow from it.

Import ``Operations`` to perform them, ``declared`` to derive an edge from them.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
