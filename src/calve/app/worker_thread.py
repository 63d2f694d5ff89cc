"""A worker in a thread of this process, for code that waits for instances."""

import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from calve.errors import StoreBusy, StoreLost

if TYPE_CHECKING:
    from calve.app.project import Project
    from calve.engine import Listener, Transaction, Worker, WorkerOptions

_TRY = 0.5
"""Seconds between two checks of whether another process still works on the project."""


class WorkerThread:
    """A worker in a thread; on SQLite it waits until no other process works on the project."""

    def __init__(
        self,
        project: "Project",
        *,
        options: "WorkerOptions | None" = None,
        listener: "Listener" = lambda _: None,
    ) -> None:
        self.changed = threading.Event()
        """Set after every turn of the worker."""
        self._project, self._options, self._listener = project, options, listener
        self._watch = project.store.watch()
        self._stack = ExitStack()
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._looked = -_TRY

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._thread is not None:
            self._thread.join()
        self._stack.close()

    @property
    def under_way(self) -> int:
        """How many steps the worker is running."""
        return self._worker.under_way if self._worker else 0

    @property
    def is_over(self) -> bool:
        """Tell whether the worker has ended."""
        return self._thread is not None and not self._thread.is_alive()

    def take(self) -> None:
        """Start the worker.

        Raises:
            StoreBusy: another process schedules on this database.
        """
        self._stack.enter_context(self._project.store.hold_scheduler())
        self._worker = self._project.worker(options=self._options, listener=self._heard)
        self._thread = threading.Thread(target=self._work, args=(self._worker,), name="calve-worker", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Start no more steps, and let running ones finish."""
        if self._worker is not None:
            self._worker.end()

    def check(self) -> None:
        """Raise the error with which the worker failed, or StoreLost if the state database is gone."""
        if self._error is not None:
            raise self._error
        try:
            self._watch()
        except StoreLost:
            if self._worker is not None:
                self._worker.leave()
            raise

    def look(self) -> None:
        """Start the worker once no other process works on the project; call this often, it checks twice a second."""
        if time.monotonic() - self._looked < _TRY:
            return
        self._looked = time.monotonic()
        self.check()
        if self._worker is None:
            try:
                self.take()
            except StoreBusy:
                self._stack.close()

    def _heard(self, turn: "Transaction") -> None:
        self._listener(turn)
        self.changed.set()

    def _work(self, worker: "Worker") -> None:
        try:
            worker.run()
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            self._error = error
        finally:
            self.changed.set()
