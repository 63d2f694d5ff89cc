"""The breakpoints of workflows, remembered for a moment: every step that begins asks for them."""

from collections.abc import Callable
from threading import Lock

from calve.engine.model import Breakpoint

MOMENT_MS = 100
"""How old an answer may be, and so how soon a breakpoint that another process sets is heeded."""


class Breakpoints:
    """Does not ask the store again at once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[Breakpoint]]] = {}
        self._lock = Lock()

    def of(self, workflow_id: str, now: int, ask: Callable[[str], list[Breakpoint]]) -> list[Breakpoint]:
        """Return the breakpoints of a workflow, as they were at most a moment ago."""
        with self._lock:
            known = self._known.get(workflow_id)
        if known is not None and 0 <= now - known[0] <= MOMENT_MS:
            return known[1]
        found = ask(workflow_id)
        with self._lock:
            self._known = {name: kept for name, kept in self._known.items() if 0 <= now - kept[0] <= MOMENT_MS}
            self._known[workflow_id] = (now, found)
        return found

    def forget(self) -> None:
        """Ask anew: some have changed."""
        with self._lock:
            self._known = {}
