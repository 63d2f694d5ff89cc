"""Tells those who wait that there may be something to do: in this process, and between processes."""

import threading
import time
from typing import Any

from calve.errors import CalveError
from calve.store.database import Database

CHANNEL = "calve"
LOOK_SECONDS = 0.15
"""How often the writes of other processes to a SQLite file are looked for."""
_HEAR_SECONDS = 1.0
"""How often the thread that listens to PostgreSQL looks whether it is to end."""
_PAUSES = (0.1, 0.5, 1.0, 5.0)
"""How long to wait before each next try to reach PostgreSQL again, in seconds; the last goes on."""


class Bell:
    """Rings for everybody who waits; who comes late hears what rang since he last listened."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rings = 0
        self._rung = threading.Condition()
        self._heard = threading.local()
        self._version: int | None = None
        self._listener: threading.Thread | None = None
        self._is_closed = threading.Event()

    def ring(self) -> None:
        """Wake everybody who waits in this process."""
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float) -> None:
        """Sleep until the bell rings, or has rung since this thread's last wait, or the time is over."""
        if self._database.is_postgresql:
            self._listen()
            self._sleep(seconds)
        else:
            self._sleep_and_look(seconds)
        self._heard.rings = self._rings

    def close(self) -> None:
        """End the thread that listens."""
        self._is_closed.set()
        self.ring()
        if self._listener is not None:
            self._listener.join()

    def _sleep(self, seconds: float) -> bool:
        heard = getattr(self._heard, "rings", 0)
        with self._rung:
            return self._rung.wait_for(lambda: self._rings != heard, max(0.0, seconds))

    def _sleep_and_look(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_changed():
            left = until - time.monotonic()
            if self._sleep(min(LOOK_SECONDS, left)) or left <= LOOK_SECONDS:
                return

    def _is_changed(self) -> bool:
        """Tell whether another connection has written since somebody last looked; all who wait are told."""
        with self._database.read() as connection:
            version: int = connection.exec_driver_sql("PRAGMA data_version").scalar_one()
        is_changed = version != self._version
        self._version = version
        if is_changed:
            self.ring()
        return is_changed

    def _listen(self) -> None:
        with self._rung:
            if self._listener is None:
                self._listener = threading.Thread(target=self._hear, name="calve-listen", daemon=True)
                self._listener.start()

    def _hear(self) -> None:
        tried = 0
        while not self._is_closed.is_set():
            try:
                connection = self._database.listener(CHANNEL)
            except CalveError:
                self._is_closed.wait(_PAUSES[min(tried, len(_PAUSES) - 1)])
                tried += 1
            else:
                tried = 0
                self._hear_on(connection)

    def _hear_on(self, connection: Any) -> None:
        """Ring for whatever comes, until the connection breaks."""
        import psycopg

        self.ring()  # what was sent while nobody listened
        try:
            while not self._is_closed.is_set():
                for _ in connection.notifies(timeout=_HEAR_SECONDS, stop_after=1):
                    self.ring()
        except psycopg.Error:
            return
        finally:
            connection.close()
