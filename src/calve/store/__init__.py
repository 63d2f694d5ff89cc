"""Durable state in one SQL database: SQLite where it is embedded, PostgreSQL where many share it.

Import ``open_store`` and the states that implement the ports; only the application does.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
