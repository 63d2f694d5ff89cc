"""Incremental processing for data lakes on Apache Iceberg.

``connect`` opens a project or a server; ``merge`` merges a change; ``dsl`` describes workflows.
"""

from lazy_loader import attach_stub

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
