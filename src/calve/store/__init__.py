"""Durable state in one SQL database: SQLite where it is embedded, PostgreSQL where many share it."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
