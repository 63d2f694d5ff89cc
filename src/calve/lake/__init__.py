"""The lake: its catalogs, files and Spark, all configured from one definition.

Import ``Lake``, names of tables and rights from here; PyIceberg and Spark are loaded when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
