"""The SQL step: runs statements on any database that SQLAlchemy supports.

Spark steps and `calve sql` also use its parser, its row counter and its error positions.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
