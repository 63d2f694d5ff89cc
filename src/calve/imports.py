"""Imports of this process: one thread at a time.

Python locks each module on its own. If two threads enter a library at different modules, and these import each other,
each thread waits for the other. Python notices, and lets one of them continue with a module that has run in part only:
``cannot import name … from partially initialized module``. PySpark, PyIceberg, SQLAlchemy, OpenLineage and others are
such libraries, and calve imports them when they are first used, in the threads of steps (decision 0023).

So the first import of a module waits until no other thread imports. A module that is loaded costs nothing.
"""

import logging
import os
import sys
import threading
from typing import Any

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 30.0
"""If nobody begins to import for so long, threads import without turns: better a rare error than to wait for ever."""


class ImportTurns:
    """The turns of the threads that import. A thread that has the turn may import further modules."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.RLock()
        self._taken = 0
        self._is_over = False

    def take(self) -> Any:
        """Wait for the turn; return the lock that is held, or None if the turns have ended."""
        # A fork may replace the lock: what is held must be what is released.
        lock = self._lock
        while not self._is_over:
            seen = self._taken
            if lock.acquire(timeout=self._patience):
                self._taken += 1
                return lock
            if self._taken == seen:
                self._end()
        return None

    def _end(self) -> None:
        self._is_over = True
        log.warning("An import took more than %.0f s; threads do not wait for each other's anymore.", self._patience)

    def renew(self) -> None:
        """Forget who has the turn: in a process that was forked, that thread does not exist."""
        self._lock = threading.RLock()


def take_turns(patience: float = _PATIENCE_SECONDS) -> None:
    """Let only one thread of this process import at a time; call this before threads start."""
    # importlib has no public hook before it locks a module. A wrapper of __import__ would miss import_module, and would
    # be a frame in each traceback and each warning's stacklevel.
    bootstrap: Any = sys.modules["_frozen_importlib"]
    if not hasattr(bootstrap, "_ModuleLockManager"):
        log.warning("This Python locks modules in another way; steps that start together may fail to import.")
    elif not hasattr(bootstrap._ModuleLockManager, "calve_turns"):  # noqa: SLF001
        turns = ImportTurns(patience)
        os.register_at_fork(after_in_child=turns.renew)
        bootstrap._ModuleLockManager = _in_turn(bootstrap._ModuleLockManager, turns)  # noqa: SLF001


def _in_turn(manager: Any, turns: ImportTurns) -> Any:
    """Return importlib's context manager around an import, which also waits for the turn."""

    class TurnAndModuleLock(manager):  # type: ignore[misc]  # importlib's class has no types
        calve_turns = turns

        def __enter__(self) -> None:
            self._turn = turns.take()
            try:
                super().__enter__()
            except BaseException:
                self._end()
                raise

        def __exit__(self, *args: object, **kwargs: object) -> None:
            try:
                super().__exit__(*args, **kwargs)
            finally:
                self._end()

        def _end(self) -> None:
            if self._turn is not None:
                self._turn.release()

    return TurnAndModuleLock
