"""The Spark step: SQL, merges and functions on a warm Spark Connect server, applications through spark-submit.

`calve sql` uses the functions that shorten error messages of Spark.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
