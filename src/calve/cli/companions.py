"""Schedulers and whoever works beside them, each in a thread of a command."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calve.app import Follower, Workplace
    from calve.triggers import Turn


class Companions:
    """Threads that go on until they are told to end."""

    def __init__(self, workplace: "Workplace", listener: "Callable[[Turn], None]" = lambda _: None) -> None:
        self._workplace = workplace
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name=f"calve-{type(each).__name__.lower()}", daemon=True)
            for each in workplace.companions(listener)
        ]

    def start(self) -> None:
        """Let them begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let them come to their end, and wait for it."""
        self._stop.set()
        self._workplace.engine.state.wake()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Raise what one of them has ended with, if it has failed."""
        for error in self._errors:
            raise error

    def _run(self, companion: "Follower") -> None:
        try:
            companion.run(self._stop)
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            self._errors.append(error)


@contextmanager
def accompanied(
    workplace: "Workplace", listener: "Callable[[Turn], None]" = lambda _: None, *, is_alone: bool = False
) -> Iterator[Companions]:
    """Have the schedulers of a project, and whoever works beside them, at work.

    Args:
        workplace: of which project.
        listener: is told of every turn of a scheduler.
        is_alone: whether this process does nothing else, so that on SQLite it has to be the only one.
    """
    with ExitStack() as stack:
        if is_alone:
            stack.enter_context(workplace.store.hold_scheduler())
        companions = Companions(workplace, listener)
        companions.start()
        stack.callback(companions.end)
        yield companions
