"""The interface of the state database to the rest of calve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from calve.store.database import Database, Notifier, has_scheduler, only_scheduler
from calve.store.schema import is_at_head, migrate

if TYPE_CHECKING:
    from calve.store.access import SqlAccessState
    from calve.store.alerts import SqlAlertState
    from calve.store.captures import SqlCaptureState, SqlDeliveryState, SqlLagSamples, SqlLineage
    from calve.store.database import Transactions
    from calve.store.engine import SqlEngineState, SqlPositions, SqlTriggerState
    from calve.store.retention import SqlRetention
    from calve.store.telemetry import SqlTelemetryState


class Store:
    """The state database. Close it when done.

    Each part is imported when it is first used: a command that reads captures does not load the engine.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._notifier = Notifier(database)

    @cached_property
    def captures(self) -> "SqlCaptureState":
        """Checkpoints and captures."""
        from calve.store.captures import SqlCaptureState

        return SqlCaptureState(self._database)

    @cached_property
    def deliveries(self) -> "SqlDeliveryState":
        """Branches of deliveries, and the tables that they were delivered to."""
        from calve.store.captures import SqlDeliveryState

        return SqlDeliveryState(self._database)

    @cached_property
    def lag_samples(self) -> "SqlLagSamples":
        """The lag of consumers over time."""
        from calve.store.captures import SqlLagSamples

        return SqlLagSamples(self._transactions)

    @cached_property
    def lineage(self) -> "SqlLineage":
        """The tables that steps read and wrote."""
        from calve.store.captures import SqlLineage

        return SqlLineage(self._transactions)

    @cached_property
    def access(self) -> "SqlAccessState":
        """Users, tokens, sessions, secrets and the audit log."""
        from calve.store.access import SqlAccessState

        return SqlAccessState(self._database)

    @cached_property
    def engine(self) -> "SqlEngineState":
        """Workflows, their instances, and the queue."""
        from calve.store.engine import SqlEngineState

        return SqlEngineState(self._transactions)

    @cached_property
    def triggers(self) -> "SqlTriggerState":
        """The triggers of active versions."""
        from calve.store.engine import SqlTriggerState

        return SqlTriggerState(self._transactions)

    @cached_property
    def positions(self) -> "SqlPositions":
        """The event that each follower has reached."""
        from calve.store.engine import SqlPositions

        return SqlPositions(self._transactions)

    @cached_property
    def alerts(self) -> "SqlAlertState":
        """Alerts to be sent."""
        from calve.store.alerts import SqlAlertState

        return SqlAlertState(self._transactions)

    @cached_property
    def telemetry(self) -> "SqlTelemetryState":
        """Numbers for metrics and spans."""
        from calve.store.telemetry import SqlTelemetryState

        return SqlTelemetryState(self._transactions)

    @cached_property
    def retention(self) -> "SqlRetention":
        """Records that are older than their retention."""
        from calve.store.retention import SqlRetention

        return SqlRetention(self._transactions)

    @cached_property
    def _transactions(self) -> "Transactions":
        from calve.store.database import Transactions

        return Transactions(self._database, self._notifier)

    @contextmanager
    def hold_scheduler(self) -> Iterator[None]:
        """Be the only process that schedules on a SQLite file; on PostgreSQL, several may.

        Raises:
            StoreBusy: another process does so; the error names it.
            StoreDamaged: the file is damaged.
        """
        file = self._database.file
        if file is None:
            yield
            return
        with only_scheduler(_scheduler_lock(file)):
            self._database.check_whole()
            yield

    def has_scheduler(self) -> bool:
        """Tell whether a process schedules on the SQLite file, without reading the file."""
        file = self._database.file
        return file is not None and has_scheduler(_scheduler_lock(file))

    def watch(self) -> Callable[[], None]:
        """Return a check that raises StoreLost once the SQLite file has been deleted or replaced."""
        return self._database.watch()

    def problem(self) -> str | None:
        """Return what is wrong with the database; None if nothing is.

        Raises:
            StoreUnavailable: it cannot be reached.
        """
        if is_at_head(self._database):
            return None
        return f"The schema of {self._database.shown} is not that of this calve."

    def close(self) -> None:
        """Close all connections; the store cannot be used any more."""
        self._notifier.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _scheduler_lock(file: Path) -> Path:
    return file.with_name(f"{file.name}-scheduler")


def open_store(url: str) -> Store:
    """Open the state database at a SQLAlchemy URL, and create or upgrade its schema.

    A SQLite file and its folder are created if they do not exist. After a fork, the child opens its own store.

    Raises:
        SettingsInvalid: the URL is neither of SQLite nor of PostgreSQL.
        EnvironmentUnfit: the driver for PostgreSQL is not installed.
        StoreUnavailable: the database cannot be reached.
        StoreSchemaUnknown: it was written by a newer calve, or long before the first release.
    """
    database = Database(url)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(database)
