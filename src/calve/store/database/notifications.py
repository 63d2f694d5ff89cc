"""Wakes threads that wait for work, in this process and in others."""

import threading
import time
from typing import Any

from calve.errors import CalveError
from calve.store.database.database import Database

CHANNEL = "calve"
LOOK_SECONDS = 0.15
"""How often to look for writes of other processes to a SQLite file."""
_RECEIVE_SECONDS = 1.0
"""How often the thread that listens to PostgreSQL checks whether to end."""
_PAUSES = (0.1, 0.5, 1.0, 5.0)
"""How long to wait before each attempt to reconnect to PostgreSQL, in seconds; the last value repeats."""


class Notifier:
    """Wakes waiting threads; a thread that starts to wait later sees notifications since its last wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._count = 0
        self._changed = threading.Condition()
        self._seen = threading.local()
        self._version: int | None = None
        self._listener: threading.Thread | None = None
        self._is_closed = threading.Event()

    def notify(self) -> None:
        """Wake all threads that wait in this process."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Sleep until a notification or a timeout; return at once if one came since this thread's last wait."""
        if self._database.is_postgresql:
            self._start_listener()
            self._sleep(seconds)
        else:
            self._sleep_and_look(seconds)
        self._seen.count = self._count

    def close(self) -> None:
        """End the listening thread."""
        self._is_closed.set()
        self.notify()
        if self._listener is not None:
            self._listener.join()

    def _sleep(self, seconds: float) -> bool:
        # A counter, not an event: a notification between two waits of this thread must not be lost.
        seen = getattr(self._seen, "count", 0)
        with self._changed:
            return self._changed.wait_for(lambda: self._count != seen, max(0.0, seconds))

    def _sleep_and_look(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_changed():
            left = until - time.monotonic()
            if self._sleep(min(LOOK_SECONDS, left)) or left <= LOOK_SECONDS:
                return

    def _is_changed(self) -> bool:
        """Tell whether another connection has written since the last look; if so, wake all waiting threads."""
        with self._database.read() as connection:
            # data_version changes when another connection commits: cheaper than reading the queue.
            version: int = connection.exec_driver_sql("PRAGMA data_version").scalar_one()
        is_changed = version != self._version
        self._version = version
        if is_changed:
            self.notify()
        return is_changed

    def _start_listener(self) -> None:
        with self._changed:
            if self._listener is None:
                self._listener = threading.Thread(target=self._listen, name="calve-listen", daemon=True)
                self._listener.start()

    def _listen(self) -> None:
        tried = 0
        while not self._is_closed.is_set():
            try:
                connection = self._database.listener(CHANNEL)
            except CalveError:
                self._is_closed.wait(_PAUSES[min(tried, len(_PAUSES) - 1)])
                tried += 1
            else:
                tried = 0
                self._receive(connection)

    def _receive(self, connection: Any) -> None:
        """Pass on notifications until the connection breaks."""
        import psycopg

        self.notify()  # for notifications sent while this process was not listening
        try:
            while not self._is_closed.is_set():
                for _ in connection.notifies(timeout=_RECEIVE_SECONDS, stop_after=1):
                    self.notify()
        except psycopg.Error:
            return
        finally:
            connection.close()
