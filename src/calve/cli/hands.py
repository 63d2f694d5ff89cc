"""A worker in this process: in a thread of a command that follows an instance, or as a command of its own."""

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from calve.cli.desk import Desk
from calve.cli.following import every
from calve.errors import StoreBusy, StoreLost

if TYPE_CHECKING:
    from calve.app import Workplace
    from calve.engine import Listener, Turn, Worker, WorkerOptions

_TRY = 0.5
"""How often to look whether the process that schedules is gone, in seconds."""


class Hands:
    """Carries out the tasks of a project in a thread, as long as no other process is the one that does."""

    def __init__(
        self,
        workplace: "Workplace",
        *,
        options: "WorkerOptions | None" = None,
        listener: "Listener" = lambda _: None,
    ) -> None:
        self.changed = threading.Event()
        """Is set whenever something was done."""
        self._workplace, self._options, self._listener = workplace, options, listener
        self._watch = workplace.store.watch()
        self._stack = ExitStack()
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.look = every(_TRY, self._look)
        """Sees to it that somebody does the work: this process, where no other one does."""

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
        """How many steps are in these hands."""
        return self._worker.under_way if self._worker else 0

    @property
    def is_over(self) -> bool:
        """Tell whether the work has ended."""
        return self._thread is not None and not self._thread.is_alive()

    def take(self) -> None:
        """Begin to work.

        Raises:
            StoreBusy: another process schedules on this database.
        """
        self._stack.enter_context(self._workplace.store.hold_scheduler())
        self._worker = self._workplace.worker(options=self._options, listener=self._heard)
        self._thread = threading.Thread(target=self._work, args=(self._worker,), name="calve-worker", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Begin nothing more, and let what is under way come to its end."""
        if self._worker is not None:
            self._worker.end()

    def check(self) -> None:
        """Raise what the work has ended with, if it has failed, or that the state database is gone."""
        if self._error is not None:
            raise self._error
        try:
            self._watch()
        except StoreLost:
            if self._worker is not None:
                self._worker.leave()
            raise

    def _look(self) -> None:
        self.check()
        if self._worker is None:
            try:
                self.take()
            except StoreBusy:
                self._stack.close()

    def _heard(self, turn: "Turn") -> None:
        self._listener(turn)
        self.changed.set()

    def _work(self, worker: "Worker") -> None:
        try:
            worker.run()
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            self._error = error
        finally:
            self.changed.set()


def tell_if_nobody_works(desk: Desk) -> None:
    """Say on standard error if nothing will happen by itself."""
    if not desk.is_worked():
        click.echo("Nothing carries out the workflows of this project now. Start: calve up", err=True)
