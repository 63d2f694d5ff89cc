"""Reports from a table's metadata: its commits, the partitions that they changed, how late rows arrived.

Import ``Tables`` and its reports from here; nothing here moves a checkpoint.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
