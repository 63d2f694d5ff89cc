"""The tasks that a worker has claimed, and the slots in which it executes steps."""

from collections.abc import Iterable
from dataclasses import replace
from threading import Event, Lock, local

from calve.engine.model import Changes, Task, TaskKind

_Claim = tuple[str, int]
"""The key and the generation of a task."""


class ClaimedTasks:
    """The tasks that a worker is busy with, and those that only the store considers its own.

    If an answer of the database is lost, a worker may own tasks that it does not know of: it has claimed them, or could
    not release them. As the worker is alive, no other worker would ever take them over.
    """

    def __init__(self) -> None:
        self.owner = ""
        """The uuid under which the worker is registered."""
        self._lock = Lock()
        self._held: dict[_Claim, TaskKind] = {}
        self._missed: set[_Claim] = set()

    @property
    def steps(self) -> int:
        """How many of its tasks are steps."""
        with self._lock:
            return sum(kind is TaskKind.STEP for kind in self._held.values())

    def add(self, task: Task) -> None:
        """Add a task that the worker begins."""
        with self._lock:
            self._held[task.key, task.generation] = task.kind

    def remove(self, task: Task) -> None:
        """Remove a task that has ended, whatever its result."""
        with self._lock:
            self._held.pop((task.key, task.generation), None)

    def missed(self, owned: Iterable[Task]) -> list[Task]:
        """Return the tasks that the worker owns in the store but does not know, both now and at the last call.

        One call is not enough: the answer that delivers a task may be on its way.
        """
        with self._lock:
            unknown = {(task.key, task.generation): task for task in owned}
            for held in self._held:
                unknown.pop(held, None)
            again = [task for claim, task in unknown.items() if claim in self._missed]
            self._missed = set(unknown)
        return again


class Slots:
    """Counts the free slots of a worker; threads reserve slots first, so that no two of them use the same one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._lock = Lock()

    @property
    def free(self) -> int:
        """How many slots are free and not reserved."""
        return self._free

    def reserve(self, at_most: int) -> int:
        """Reserve up to ``at_most`` free slots; return how many were reserved."""
        with self._lock:
            taken = max(0, min(at_most, self._free))
            self._free -= taken
        return taken

    def release(self, count: int) -> bool:
        """Release slots; return whether none were free before."""
        with self._lock:
            was_none = self._free == 0
            self._free += count
        return was_none and count > 0


class _ThreadSlots(local):
    own = 0
    """1 if the thread executes steps, so that it can continue with the next one."""
    reserved = 0
    """Further slots that the thread has reserved for the transaction that it writes."""


class StepReservations:
    """Lets a worker keep the steps that its own transactions start, without claiming them from the queue."""

    def __init__(self, claimed: ClaimedTasks, slots: Slots, ending: Event) -> None:
        self._claimed = claimed
        self._slots = slots
        self._ending = ending
        self._thread = _ThreadSlots()

    def join_thread(self) -> None:
        """Count the calling thread as a slot of its own."""
        self._thread.own = 1

    def reserve(self, changes: Changes) -> None:
        """Make the worker the owner of new steps, as many as it has free slots, before they are committed."""
        thread = self._thread
        self._slots.release(thread.reserved)  # reserved for a transaction that is tried again
        thread.reserved = 0
        if self._ending.is_set():
            return
        steps = [at for at, each in enumerate(changes.admissions) if each.task.kind is TaskKind.STEP]
        thread.reserved = self._slots.reserve(len(steps) - thread.own)
        for at in steps[: thread.own + thread.reserved]:
            admission = changes.admissions[at]
            changes.admissions[at] = replace(admission, task=replace(admission.task, owner=self._claimed.owner))

    def take_next(self, owned: list[Task]) -> Task | None:
        """Take the step with which the calling thread continues, if it executes steps."""
        if not owned or not self._thread.own:
            return None
        task = owned.pop(0)
        self._claimed.add(task)
        return task

    def settle(self, used: int) -> bool:
        """Release the reserved slots that no step uses; return whether none were free before."""
        reserved, self._thread.reserved = self._thread.reserved, 0
        return self._slots.release(reserved - used)
