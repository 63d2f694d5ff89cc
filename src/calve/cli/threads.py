"""Threads of a command that run the schedulers and background services of a project."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calve.app import BackgroundService, Project
    from calve.triggers import SchedulerRound


class SchedulerThreads:
    """The schedulers and background services of a project, a thread for each."""

    def __init__(
        self, project: "Project", listener: "Callable[[SchedulerRound], None]" = lambda _: None, served: str = ""
    ) -> None:
        self._project = project
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name=f"calve-{type(each).__name__.lower()}", daemon=True)
            for each in project.background_services(listener, served)
        ]

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Ask all threads to end, and wait for them."""
        self._stop.set()
        self._project.engine.state.wake()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Raise the error of a thread that has failed, if any has."""
        for error in self._errors:
            raise error

    def _run(self, service: "BackgroundService") -> None:
        try:
            service.run(self._stop)
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            self._errors.append(error)


@contextmanager
def scheduler_threads(
    project: "Project", listener: "Callable[[SchedulerRound], None]" = lambda _: None, served: str = ""
) -> Iterator[SchedulerThreads]:
    """Run the schedulers and background services of a project until the block ends.

    Args:
        project: the project.
        listener: called with every round of a scheduler.
        served: the address at which this process serves the web UI, if it does.
    """
    threads = SchedulerThreads(project, listener, served)
    threads.start()
    try:
        yield threads
    finally:
        threads.end()
