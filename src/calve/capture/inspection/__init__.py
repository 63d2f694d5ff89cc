"""What a table's metadata tells about its history: commits, the partitions they touched, how late rows came.

Import what describes tables from here; nothing here moves a checkpoint.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
