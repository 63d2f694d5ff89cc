"""OpenLineage events of the steps that read and write tables.

Import ``Lineage``, which sends events, and ``graph``, which returns the tables that steps really read and wrote.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
