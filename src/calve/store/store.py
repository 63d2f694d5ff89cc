"""The state database as the rest of calve sees it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from calve.store.access import SqlAccessState
from calve.store.alerts import SqlAlertState
from calve.store.captures import SqlCaptureState
from calve.store.database import Database
from calve.store.deliveries import SqlDeliveryState
from calve.store.engine_state import SqlEngineState
from calve.store.following import SqlPositions
from calve.store.locking import only_scheduler
from calve.store.migrate import is_at_head, migrate
from calve.store.notifying import Bell
from calve.store.retention import SqlRetention
from calve.store.telemetry import SqlTelemetryState
from calve.store.transacting import Transactions
from calve.store.triggers import SqlTriggerState


class Store:
    """The state database. Close it when done.

    ``captures`` keeps checkpoints and captures, ``deliveries`` what is being delivered, ``engine`` workflows and what
    becomes of them, and ``triggers`` what starts them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bell = Bell(database)
        self.access = SqlAccessState(database)
        """Who may get in, and the secrets."""
        self.captures = SqlCaptureState(database)
        self.deliveries = SqlDeliveryState(database)
        transactions = Transactions(database, self._bell)
        self.engine = SqlEngineState(transactions)
        self.alerts = SqlAlertState(transactions)
        """What is to be sent to whom."""
        self.telemetry = SqlTelemetryState(transactions)
        self.positions = SqlPositions(transactions)
        """How far those who follow events have come."""
        self.triggers = SqlTriggerState(transactions)
        self.retention = SqlRetention(transactions)
        """What is kept for a while only."""

    @contextmanager
    def hold_scheduler(self) -> Iterator[None]:
        """Be the only process that schedules on a SQLite file; on PostgreSQL, many may.

        Raises:
            StoreBusy: another process does so; it is named.
            StoreDamaged: the file is not whole.
        """
        file = self._database.file
        if file is None:
            yield
            return
        with only_scheduler(file.with_name(f"{file.name}-scheduler")):
            self._database.check_whole()
            yield

    def watch(self) -> Callable[[], None]:
        """Return what raises StoreLost once the SQLite file that is there now was deleted or replaced."""
        return self._database.watch()

    def problem(self) -> str | None:
        """Return what is wrong with the database, if anything is.

        Raises:
            StoreUnavailable: it cannot be reached.
        """
        if is_at_head(self._database):
            return None
        return f"The schema of {self._database.shown} is not that of this calve."

    def close(self) -> None:
        """Give all connections back; the store cannot be used any more."""
        self._bell.close()
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
