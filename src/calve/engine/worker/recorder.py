"""Records the outcome and the artifacts of attempts, however long the database is away."""

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
"""Seconds between tries to reach a database that does not answer; the last one from then on."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records what comes of attempts. The step is not to blame for a database that is away."""

    transactions: Transactions
    is_dead: Event
    """Set when the worker has to drop everything."""

    def record(self, task: Task, outcome: Outcome, logs: list[LogChunk]) -> Transaction | None:
        """Record an outcome, so that finished work is not done again; None if the task is no longer this worker's."""
        delays, conflicts = _delays(), 0
        while True:
            try:
                return self.transactions.record(task, outcome, logs)
            except LeaseLost:
                log.warning("attempt %s was given to another worker; its outcome here is dropped", task.key)
                return None
            except (Conflict, StoreError) as error:
                # Only conflicts are counted: a database comes back, and the work that was done is not to be repeated.
                conflicts += isinstance(error, Conflict)
                if conflicts > len(RETRY_DELAYS):
                    raise
                log.warning("the outcome of %s cannot be recorded yet: %s", task.key, error.message)
            if self.is_dead.wait(next(delays)):
                return None

    def keep_artifacts(self, task: Task, artifacts: dict[str, object]) -> None:
        """Store artifacts of an attempt that is being executed.

        Raises:
            LeaseLost: the attempt is no longer this worker's.
            StoreError: the worker has to go before the database is back.
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
