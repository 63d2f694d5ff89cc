"""`calve.merge`: merge a change into an Iceberg table by the cheapest plan that gives the result of MERGE.

Others import `merge`, what it returns, and `active_session`.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
