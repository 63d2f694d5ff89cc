"""What a worker has in its hands, and what only the store believes to be there.

If an answer of the database is lost, a worker may own tasks that it knows nothing of: it has claimed them, or could not
give them back. As it is alive, nobody else would ever take them from it.
"""

from collections.abc import Iterable
from threading import Lock

from calve.engine.model import Task, TaskKind

Mark = tuple[str, int]
"""A task, as it was handed out."""


class Hands:
    """The tasks that a worker is busy with."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[Mark, TaskKind] = {}
        self._missed: set[Mark] = set()

    @property
    def steps(self) -> int:
        """How many of them are steps."""
        with self._lock:
            return sum(kind is TaskKind.STEP for kind in self._held.values())

    def take(self, task: Task) -> None:
        """Begin with a task."""
        with self._lock:
            self._held[task.key, task.generation] = task.kind

    def let_go(self, task: Task) -> None:
        """Be done with a task, whatever came of it."""
        with self._lock:
            self._held.pop((task.key, task.generation), None)

    def missed(self, owned: Iterable[Task]) -> list[Task]:
        """Return the tasks on record as the worker's own that are not in its hands, and were not the last time.

        Once is not enough: the answer that brings a task may be on its way.
        """
        with self._lock:
            unknown = {(task.key, task.generation): task for task in owned}
            for held in self._held:
                unknown.pop(held, None)
            again = [task for mark, task in unknown.items() if mark in self._missed]
            self._missed = set(unknown)
        return again
