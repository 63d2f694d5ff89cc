"""The state database as the rest of calve sees it."""

from types import TracebackType
from typing import Self

from calve.store.captures import SqlCaptureState
from calve.store.database import Database
from calve.store.migrate import migrate


class Store:
    """The state database; ``captures`` keeps checkpoints and captures. Close it when done."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.captures = SqlCaptureState(database)

    def close(self) -> None:
        """Give all connections back; the store cannot be used any more."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(url: str) -> Store:
    """Open the state database of a SQLAlchemy URL, and bring its schema up to date.

    A SQLite file and its folder are made when they are not there. After a fork, the child opens its own.

    Raises:
        SettingsInvalid: the URL is neither of SQLite nor of PostgreSQL.
        EnvironmentUnfit: the driver for PostgreSQL is not installed.
        StoreUnavailable: the database cannot be reached.
        StoreSchemaUnknown: it was written by a newer calve.
    """
    database = Database(url)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(database)
