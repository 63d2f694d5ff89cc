"""A worker: claims tasks, executes them in threads, and sends heartbeats."""

import logging
import queue
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calve.engine.decisions import Transaction, Transactions
from calve.engine.instances import Tools
from calve.engine.model import Task, TaskKind, WorkerRecord
from calve.engine.worker.claims import ClaimedTasks, Slots, StepReservations
from calve.engine.worker.clock import AnchoredClock
from calve.engine.worker.executor import Executor
from calve.engine.worker.heartbeat import Heartbeat, IsGone
from calve.engine.worker.log_context import log_context
from calve.errors import CalveError, Conflict, LeaseLost, StoreError

log = logging.getLogger(__name__)

_STUMBLES = 5
"""How often the engine itself may fail on a task before it sets the run aside."""
_LEAVING = 2.0
"""How many seconds interrupted steps have to end before the worker abandons them."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker behaves; times in seconds."""

    slots: int = 8
    """How many steps it executes concurrently."""
    deciders: int = 2
    """How many runs it advances concurrently."""
    tick: float = 0.5
    heartbeat: float = 2.0
    lease: float = 10.0
    """After how many seconds of silence a worker counts as dead."""
    poll: float = 1.0
    """The longest time that it sleeps when nothing wakes it."""
    tries: int = 2
    """How many workers may die while they own a task before its run is set aside."""
    drain: float = 30.0
    """How long steps may continue after the worker was asked to end."""
    upkeep_seconds: float = 60.0
    """How often the worker calls ``upkeep``."""


Listener = Callable[[Transaction], None]
"""Called with every committed transaction."""
MakeExecutor = Callable[[Transactions, threading.Event], Executor]


class Worker:
    """Claims tasks from the store and executes them until it is asked to end."""

    def __init__(
        self,
        tools: Tools,
        make_executor: MakeExecutor,
        *,
        clock: AnchoredClock,
        identity: WorkerRecord,
        is_gone: IsGone = lambda _: False,
        options: WorkerOptions | None = None,
        listener: Listener = lambda _: None,
        upkeep: Callable[[], None] = lambda: None,
    ) -> None:
        self._upkeep = upkeep
        self._tools, self._clock, self._options, self._listener = tools, clock, options or WorkerOptions(), listener
        self._ending, self._left = threading.Event(), threading.Event()
        self._claimed, self._slots = ClaimedTasks(), Slots(self._options.slots)
        self._reservations = StepReservations(self._claimed, self._slots, self._ending)
        self._transactions = Transactions(tools, self._reservations.reserve)
        self._executor = make_executor(self._transactions, self._left)
        self._steps: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._runs: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._heartbeat = Heartbeat(
            tools,
            clock,
            self._executor,
            self._claimed,
            replace(identity, slots=self._options.slots),
            is_gone,
            round(self._options.lease * 1_000),
        )
        self._lock = threading.Lock()
        self._deciding = 0
        self._failures: dict[str, int] = {}

    @property
    def uuid(self) -> str:
        """The uuid under which it is registered; a new one after it was considered dead."""
        return self._heartbeat.uuid

    @property
    def is_idle(self) -> bool:
        """Tell whether it has no task."""
        with self._lock:
            return self._slots.free == self._slots.size and not self._deciding  # nor is a claim under way

    @property
    def under_way(self) -> int:
        """How many steps it executes now."""
        return self._claimed.steps

    def run(self) -> None:
        """Work until ``end`` is called; then wait for running steps, and unregister."""
        options = self._options
        works = [self._execute_steps] * options.slots + [self._decide_runs] * options.deciders
        works += [self._send_heartbeats, self._keep_up]
        threads = [threading.Thread(target=work, name=f"calve-{work.__name__}", daemon=True) for work in works]
        while not self._ending.is_set() and not self._guarded(self._heartbeat.register):
            continue
        for thread in threads:
            thread.start()
        try:
            while not self._ending.is_set():
                self._guarded(self._claim)
            self._drain()
        finally:
            self._left.set()
            self._executor.interrupt_all()
            for _ in range(options.slots):
                self._steps.put(None)
            for _ in range(options.deciders):
                self._runs.put(None)
            until = self._clock() + _LEAVING * 1_000
            for thread in threads:
                thread.join(timeout=max(0.0, (until - self._clock()) / 1_000))
            self._guarded(self._executor.close)
            self._guarded(self._upkeep)
            self._guarded(lambda: self._tools.state.retire(self.uuid))

    def end(self) -> None:
        """Claim no more tasks, and end when the running steps have ended or the drain time is over."""
        self._ending.set()
        self._tools.state.wake()

    def leave(self) -> None:
        """End immediately, and interrupt running steps, since their outcome could not be recorded."""
        self._left.set()
        self.end()

    def _claim(self) -> None:
        """Claim as many tasks as there is room for, or sleep until there may be some."""
        state, now = self._tools.state, self._clock()
        with self._lock:
            # Twice the number of threads: the next run is ready when one is done, and other workers get some too.
            runs = 2 * self._options.deciders - self._deciding
        # Reserved before the claim: a thread that ends a step takes its successor meanwhile, and must not use the
        # same slot.
        steps, tasks = self._slots.reserve(self._slots.size), []
        try:
            tasks = state.claim(self.uuid, now, runs=runs, steps=steps) if steps or runs else []
        finally:
            self._slots.release(steps - self._accept(tasks))
        if not tasks:
            due = state.next_due(now)
            longest = self._options.poll
            state.wait(longest if due is None or not (steps and runs) else min(longest, max(due, 1) / 1_000))

    def _drain(self) -> None:
        """Wait for the running steps, up to the drain time."""
        until = self._clock() + self._options.drain * 1_000
        while not self.is_idle and not self._left.is_set() and self._clock() < until:
            self._left.wait(0.05)

    def _guarded(self, what: Callable[[], object]) -> bool:
        """Call a function that may find the database unavailable; return whether it was available."""
        try:
            what()
        except StoreError as error:
            log.warning("%s", error.message)
            self._ending.wait(random.uniform(0.1, 1.0))  # noqa: S311 - so that not all come back at once
            return False
        return True

    def _accept(self, tasks: Sequence[Task]) -> int:
        """Hand tasks to the threads; return how many of them need a slot."""
        steps = 0
        for task in tasks:
            self._claimed.add(task)
            if task.kind is TaskKind.RUN:
                with self._lock:
                    self._deciding += 1
                self._runs.put(task)
            else:
                steps += 1
                self._steps.put(task)
        return steps

    def _release(self, tasks: Sequence[Task]) -> None:
        """Release tasks for other workers; if the database is unavailable, a later heartbeat releases them."""
        self._guarded(lambda: self._tools.state.release(tasks))
        for task in tasks:
            self._claimed.remove(task)

    def _execute_steps(self) -> None:
        self._reservations.join_thread()
        while (task := self._steps.get()) is not None:
            following: Task | None = task
            while following is not None:
                task = following
                with log_context(run=task.run_uuid, attempt=task.attempt_uuid):
                    following = self._settle(self._execute(task))
                # Only after the outcome is recorded: until then this worker owns the task in the store, and ``missed``
                # would release it.
                self._claimed.remove(task)
            if self._slots.release(1):
                self._tools.state.wake()

    def _execute(self, task: Task) -> Transaction | None:
        try:
            if task.tries >= self._options.tries:
                return self._quarantine(task, f"{task.tries} workers died while they held it")
            return self._executor.execute(task)
        except (Conflict, StoreError) as error:
            log.warning("attempt %s cannot be executed yet: %s", task.key, error.message)
            self._release([task])
            return None
        except Exception:
            log.exception("attempt %s cannot be executed", task.key)
            return self._failed(task)

    def _decide_runs(self) -> None:
        while (task := self._runs.get()) is not None:
            try:
                with log_context(run=task.run_uuid):
                    self._settle(self._decide(task))
            finally:
                self._claimed.remove(task)
                with self._lock:
                    self._deciding -= 1
                    was_full = self._deciding == 2 * self._options.deciders - 1
                if was_full:
                    self._tools.state.wake()

    def _decide(self, task: Task) -> Transaction | None:
        try:
            if task.tries >= self._options.tries:
                return self._quarantine(task, f"{task.tries} workers died while they held it")
            transaction = self._transactions.decide(task)
            self._failures.pop(task.key, None)
        except LeaseLost:
            return None
        except (Conflict, StoreError) as error:
            log.warning("run %s cannot be advanced yet: %s", task.key, error.message)
            self._release([task])
            return None
        except Exception:
            log.exception("run %s cannot be advanced", task.key)
            return self._failed(task)
        return transaction

    def _failed(self, task: Task) -> Transaction | None:
        """Retry a task on which the engine itself failed; after several failures, set its run aside."""
        self._failures[task.key] = self._failures.get(task.key, 0) + 1
        if self._failures[task.key] < max(self._options.tries, _STUMBLES):
            self._release([task])
            return None
        del self._failures[task.key]
        return self._quarantine(task, "the engine failed on it repeatedly; its log says why")

    def _quarantine(self, task: Task, why: str) -> Transaction | None:
        try:
            return self._transactions.quarantine(task, why)
        except CalveError as error:
            log.warning("run %s cannot be set aside yet: %s", task.run_uuid, error.message)
            return None

    def _settle(self, transaction: Transaction | None) -> Task | None:
        """Accept the steps that a transaction left to this worker; return the one that this thread continues with."""
        owned = list(transaction.committed.held) if transaction else []
        following = self._reservations.take_next(owned)
        if self._reservations.settle(self._accept(owned)):
            self._tools.state.wake()
        if transaction is not None:
            self._notify(transaction)
        return following

    def _notify(self, transaction: Transaction) -> None:
        requested = [attempt.uuid for attempt in transaction.changes.attempts if attempt.action is not None]
        if requested:
            self._executor.interrupt(requested)
        try:
            self._listener(transaction)
        except Exception:
            log.exception("the listener failed on a transaction")

    def _send_heartbeats(self) -> None:
        options, ticks = self._options, 0
        often = max(1, round(options.heartbeat / options.tick))
        while not self._left.wait(options.tick):
            ticks += 1
            # Logs are flushed with each tick, so that people see them within a second; heartbeats are rarer, since each
            # is a write.
            self._guarded(self._executor.flush)
            if ticks % often == 0:
                self._guarded(lambda: self._heartbeat.beat(is_draining=self._ending.is_set()))

    def _keep_up(self) -> None:
        """Call ``upkeep`` regularly, in its own thread: removing many files takes a while."""
        while not self._left.wait(self._options.upkeep_seconds):
            self._guarded(self._upkeep)
