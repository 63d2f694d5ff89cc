"""A worker: claims tasks, carries them out in threads, and stays alive in the eyes of the others."""

import logging
import queue
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calve.engine.about import about
from calve.engine.clocks import AnchoredClock
from calve.engine.executing import Executor
from calve.engine.hands import Hands
from calve.engine.heart import Heart, IsGone
from calve.engine.model import Changes, Task, TaskKind, WorkerRecord
from calve.engine.slots import Share, Slots
from calve.engine.turns import Turn, Turns
from calve.engine.work import Tools
from calve.errors import CalveError, Conflict, LeaseLost, StoreError

log = logging.getLogger(__name__)
_STUMBLES = 5
"""How often the engine itself may fail over a task, which kills nobody, before it is set aside."""
_LEAVING = 2.0
"""How many seconds steps that were interrupted have to end before the worker leaves them."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker behaves; times in seconds."""

    slots: int = 8
    """How many steps it carries out at once."""
    turners: int = 2
    """How many runs it moves on at once."""
    tick: float = 0.5
    heartbeat: float = 2.0
    lease: float = 10.0
    """After how long a silent worker counts as dead."""
    poll: float = 1.0
    """How long it sleeps at most when nothing calls it."""
    tries: int = 2
    """How many workers may die over a task before it is set aside."""
    drain: float = 30.0
    """How long steps may go on after the worker was told to end."""
    upkeep_seconds: float = 60.0
    """How often the worker tidies up."""


Listener = Callable[[Turn], None]
"""Is told of every turn that was written."""
MakeExecutor = Callable[[Turns, threading.Event], Executor]


class Worker:
    """Carries out the tasks of a store until it is told to end."""

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
        self._turns = Turns(tools, self._own)
        self._ending, self._left = threading.Event(), threading.Event()
        self._executor = make_executor(self._turns, self._left)
        self._steps: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._runs: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._hands = Hands()
        self._heart = Heart(
            tools,
            clock,
            self._executor,
            self._hands,
            replace(identity, slots=self._options.slots),
            is_gone,
            round(self._options.lease * 1_000),
        )
        self._lock = threading.Lock()
        self._slots = Slots(self._options.slots)
        self._share = Share()
        self._moving = 0
        self._failures: dict[str, int] = {}

    @property
    def uuid(self) -> str:
        """Under which name it is known now; another one after it was taken for dead."""
        return self._heart.uuid

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is in its hands."""
        with self._lock:
            return self._slots.free == self._slots.size and not self._moving  # nor is anything claimed just now

    @property
    def under_way(self) -> int:
        """How many steps it carries out now."""
        return self._hands.steps

    def run(self) -> None:
        """Work until ``end`` is called; then let the steps under way come to their end, and leave."""
        options = self._options
        works = [self._carry_out_steps] * options.slots + [self._move_runs] * options.turners
        works += [self._beat, self._tidy]
        threads = [threading.Thread(target=work, name=f"calve-{work.__name__}", daemon=True) for work in works]
        while not self._ending.is_set() and not self._guarded(self._heart.register):
            continue
        for thread in threads:
            thread.start()
        try:
            while not self._ending.is_set():
                self._guarded(self._dispatch)
            self._drain()
        finally:
            self._left.set()
            self._executor.interrupt_all()
            for _ in range(options.slots):
                self._steps.put(None)
            for _ in range(options.turners):
                self._runs.put(None)
            until = self._clock() + _LEAVING * 1_000
            for thread in threads:
                thread.join(timeout=max(0.0, (until - self._clock()) / 1_000))
            self._guarded(self._executor.close)
            self._guarded(self._upkeep)
            self._guarded(lambda: self._tools.state.retire(self.uuid))

    def end(self) -> None:
        """Claim nothing more, and leave when the steps under way have ended or their time is over."""
        self._ending.set()
        self._tools.state.wake()

    def leave(self) -> None:
        """Leave at once: what is under way is ended, since nobody can record how it ends."""
        self._left.set()
        self.end()

    def _dispatch(self) -> None:
        """Claim what there is room for, or sleep until something comes up."""
        state, now = self._tools.state, self._clock()
        with self._lock:
            runs = 2 * self._options.turners - self._moving
        steps, tasks = self._slots.reserve(self._slots.size), []
        try:
            tasks = state.claim(self.uuid, now, runs=runs, steps=steps) if steps or runs else []
        finally:
            self._slots.give(steps - self._accept(tasks))
        if not tasks:
            due = state.next_due(now)
            longest = self._options.poll
            state.wait(longest if due is None or not (steps and runs) else min(longest, max(due, 1) / 1_000))

    def _drain(self) -> None:
        """Wait for the steps under way, then have them end."""
        until = self._clock() + self._options.drain * 1_000
        while not self.is_idle and not self._left.is_set() and self._clock() < until:
            self._left.wait(0.05)

    def _guarded(self, what: Callable[[], object]) -> bool:
        """Bear with a database that is away for a while; tell whether it was there."""
        try:
            what()
        except StoreError as error:
            log.warning("%s", error.message)
            self._ending.wait(random.uniform(0.1, 1.0))  # noqa: S311 - so that not all come back at once
            return False
        return True

    def _own(self, changes: Changes) -> None:
        """Take at once as many of the new steps as there are free hands."""
        share = self._share
        self._slots.give(share.reserved)  # of a turn that is taken again
        share.reserved = 0
        if self._ending.is_set():
            return
        steps = [at for at, each in enumerate(changes.admissions) if each.task.kind is TaskKind.STEP]
        share.reserved = self._slots.reserve(len(steps) - share.own)
        for at in steps[: share.own + share.reserved]:
            admission = changes.admissions[at]
            changes.admissions[at] = replace(admission, task=replace(admission.task, owner=self.uuid))

    def _accept(self, tasks: Sequence[Task]) -> int:
        """Hand tasks to the threads; return for how many of them hands are needed."""
        steps = 0
        for task in tasks:
            self._hands.take(task)
            if task.kind is TaskKind.RUN:
                with self._lock:
                    self._moving += 1
                self._runs.put(task)
            else:
                steps += 1
                self._steps.put(task)
        return steps

    def _give_back(self, tasks: Sequence[Task]) -> None:
        """Let others do tasks; where the database does not take them now, the heart sees to it later."""
        self._guarded(lambda: self._tools.state.release(tasks))
        for task in tasks:
            self._hands.let_go(task)

    def _carry_out_steps(self) -> None:
        self._share.own = 1
        while (task := self._steps.get()) is not None:
            following: Task | None = task
            while following is not None:
                task = following
                with about(run=task.run_uuid, attempt=task.attempt_uuid):
                    following = self._told(self._carry_out(task))
                self._hands.let_go(task)
            if self._slots.give(1):
                self._tools.state.wake()

    def _carry_out(self, task: Task) -> Turn | None:
        try:
            if task.tries >= self._options.tries:
                return self._give_up(task, f"{task.tries} workers died over it")
            return self._executor.carry_out(task)
        except (Conflict, StoreError) as error:
            log.warning("attempt %s cannot be carried out yet: %s", task.key, error.message)
            self._give_back([task])
            return None
        except Exception:
            log.exception("attempt %s cannot be carried out", task.key)
            return self._failed(task)

    def _move_runs(self) -> None:
        while (task := self._runs.get()) is not None:
            try:
                with about(run=task.run_uuid):
                    self._told(self._move(task))
            finally:
                self._hands.let_go(task)
                with self._lock:
                    self._moving -= 1
                    was_full = self._moving == 2 * self._options.turners - 1
                if was_full:
                    self._tools.state.wake()

    def _move(self, task: Task) -> Turn | None:
        try:
            if task.tries >= self._options.tries:
                return self._give_up(task, f"{task.tries} workers died over it")
            turn = self._turns.move_run(task)
            self._failures.pop(task.key, None)
        except LeaseLost:
            return None
        except (Conflict, StoreError) as error:
            log.warning("run %s cannot be moved yet: %s", task.key, error.message)
            self._give_back([task])
            return None
        except Exception:
            log.exception("run %s cannot be moved", task.key)
            return self._failed(task)
        return turn

    def _failed(self, task: Task) -> Turn | None:
        """Try a task again that the engine itself stumbled over, and set its run aside after some times."""
        self._failures[task.key] = self._failures.get(task.key, 0) + 1
        if self._failures[task.key] < max(self._options.tries, _STUMBLES):
            self._give_back([task])
            return None
        del self._failures[task.key]
        return self._give_up(task, "the engine stumbled over it again and again; its log says why")

    def _give_up(self, task: Task, why: str) -> Turn | None:
        try:
            return self._turns.give_up(task, why)
        except CalveError as error:
            log.warning("run %s cannot be set aside yet: %s", task.run_uuid, error.message)
            return None

    def _told(self, turn: Turn | None) -> Task | None:
        """Take on what a turn has left in our hands, and tell of it; return the step that this thread goes on with."""
        share, held = self._share, list(turn.committed.held) if turn else []
        following = held.pop(0) if held and share.own else None
        if following is not None:
            self._hands.take(following)
        is_relief = self._slots.give(share.reserved - self._accept(held))
        share.reserved = 0
        if is_relief:
            self._tools.state.wake()
        if turn is not None:
            self._tell(turn)
        return following

    def _tell(self, turn: Turn) -> None:
        asked = [attempt.uuid for attempt in turn.changes.attempts if attempt.action is not None]
        if asked:
            self._executor.interrupt(asked)
        try:
            self._listener(turn)
        except Exception:
            log.exception("whoever is told of turns stumbled over one")

    def _beat(self) -> None:
        options, ticks = self._options, 0
        often = max(1, round(options.heartbeat / options.tick))
        while not self._left.wait(options.tick):
            ticks += 1
            self._guarded(self._executor.flush)
            if ticks % often == 0:
                self._guarded(lambda: self._heart.beat(is_draining=self._ending.is_set()))

    def _tidy(self) -> None:
        """Tidy up now and then, beside all else: to remove many files takes a while."""
        while not self._left.wait(self._options.upkeep_seconds):
            self._guarded(self._upkeep)
