"""The SQL step: statements on any database that SQLAlchemy knows."""

from calve.steps.sql.runtime import WORK, Sql

__all__ = ["WORK", "Sql"]
