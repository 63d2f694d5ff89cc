"""The SQL step: statements on any database that SQLAlchemy knows."""

from calve.steps.sql.runtime import Sql

__all__ = ["Sql"]
