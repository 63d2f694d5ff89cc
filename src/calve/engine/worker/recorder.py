"""Records the outcome and the artifacts of attempts, however long the database is unavailable."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from threading import Event

from calve.engine.decisions import Transaction, Transactions
from calve.engine.model import LogChunk, Task
from calve.engine.ports import Outcome
from calve.errors import Conflict, LeaseLost, StoreError

log = logging.getLogger(__name__)

RETRY_DELAYS = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds between tries to reach an unavailable database; the last one repeats."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records the results of attempts. A step does not fail because the database is unavailable."""

    transactions: Transactions
    is_dead: Event
    """Set when the worker must drop everything."""

    def record(self, task: Task, outcome: Outcome, logs: list[LogChunk]) -> Transaction | None:
        """Record an outcome, so that finished work is not repeated; None if this worker no longer owns the task."""
        delays, conflicts = _delays(), 0
        while True:
            try:
                return self.transactions.record(task, outcome, logs)
            except LeaseLost:
                log.warning("attempt %s was given to another worker; its outcome here is dropped", task.key)
                return None
            except (Conflict, StoreError) as error:
                # Only conflicts are counted: a database comes back, and finished work must not be repeated.
                conflicts += isinstance(error, Conflict)
                if conflicts > len(RETRY_DELAYS):
                    raise
                log.warning("the outcome of %s cannot be recorded yet: %s", task.key, error.message)
            if self.is_dead.wait(next(delays)):
                return None

    def keep_artifacts(self, task: Task, artifacts: dict[str, object]) -> None:
        """Store artifacts of an attempt that is being executed.

        Raises:
            LeaseLost: this worker no longer owns the attempt.
            StoreError: the worker must end before the database is available again.
        """
        delays = _delays()
        while True:
            try:
                return self.transactions.keep_artifacts(task, artifacts)
            except StoreError as error:
                log.warning("the artifacts of %s cannot be stored yet: %s", task.key, error.message)
                if self.is_dead.wait(next(delays)):
                    raise


def _delays() -> Iterator[float]:
    return chain(RETRY_DELAYS, repeat(RETRY_DELAYS[-1]))
