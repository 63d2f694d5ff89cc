"""How calve connects to SQLite and PostgreSQL: connections, transactions, locks and notifications.

Import ``Database``, ``Transactions`` and the helpers for statements from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
