"""The lake: its catalogs, files and Spark, all configured from one definition."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
