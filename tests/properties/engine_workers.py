"""Workers without threads that take their turns one by one, die, and come back too late; and a look at all tables."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, select
from tests.engines import DONE, Playground

from calve.engine import (
    Cache,
    Changes,
    Committed,
    Executor,
    Outcome,
    StepContext,
    Task,
    TaskKind,
    Transaction,
    WorkerRecord,
)
from calve.engine.decisions import Transactions
from calve.engine.ports import EngineState
from calve.errors import Conflict, LeaseLost
from calve.store import tables
from calve.store.engine.rows import EVENT

TABLES = (tables.run, tables.attempt, tables.task, tables.claim, tables.event)
Rows = Mapping[str, Any]


@dataclass(frozen=True)
class Picture:
    """Everything that is stored."""

    runs: Rows
    attempts: Rows
    tasks: Rows
    """By key."""
    claims: list[Any]
    limits: Mapping[str, int]
    """Of tags."""
    events: list[Any]

    @classmethod
    def of(cls, connection: Connection) -> "Picture":
        """Look at all tables."""

        def rows(table: Any, order: Any) -> list[Any]:
            return list(connection.execute(select(table).order_by(order)))

        return cls(
            runs={row.uuid: row for row in rows(tables.run, tables.run.c.uuid)},
            attempts={row.uuid: row for row in rows(tables.attempt, tables.attempt.c.attempt_id)},
            tasks={row.key: row for row in rows(tables.task, tables.task.c.seq)},
            claims=rows(tables.claim, tables.claim.c.seq),
            limits={row.tag: row.max_allowed for row in rows(tables.tag_permit, tables.tag_permit.c.tag)},
            events=[EVENT.from_row(row) for row in rows(tables.event, tables.event.c.seq)],
        )

    def newest(self, run_uuid: str) -> dict[str, Any]:
        """Return the newest attempt of each step of a run, carried ones not."""
        return {row.step_id: row for row in self.attempts.values() if row.run_uuid == run_uuid}

    def children(self, attempt_uuid: str) -> list[Any]:
        """Return the latest child runs of an attempt."""
        return [row for row in self.runs.values() if row.parent_attempt == attempt_uuid and row.is_latest]


class Watched:
    """A store's state: something may happen just before a commit, and what was read before must then be refused."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self.meanwhile: Callable[[], None] | None = None
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def commit(self, changes: Changes) -> Committed:
        """Commit, after what happens meanwhile."""
        if self.meanwhile is None:
            return self._state.commit(changes)
        act, self.meanwhile = self.meanwhile, None
        act()
        is_stale = any(self._seq(run.uuid) != run.seq for run in changes.runs)
        try:
            committed = self._state.commit(changes)
        except (Conflict, LeaseLost):
            self.refused += 1
            raise
        assert not is_stale, "a turn was written over a run that had changed since it was read"
        return committed

    def _seq(self, run_uuid: str) -> int | None:
        found = self._state.load(run_uuid)
        return found.run.seq if found else None


@dataclass
class Work:
    """The work of every step: it gives what it is told to give."""

    outcome: Outcome = DONE
    is_executed: bool = False
    """Whether it has been called to work, rather than to end."""

    def execute(self, _: StepContext) -> Outcome:
        """Give the outcome."""
        self.is_executed = True
        return self.outcome

    def terminate(self, _: StepContext) -> None:
        """End at once."""


@dataclass
class Member:
    """A worker: a process of its own, with its own cache and its own hands."""

    playground: Playground
    folder: Path
    hand: list[Task] = field(default_factory=list)
    is_greedy: bool = False
    """Whether it takes new steps at once."""

    def __post_init__(self) -> None:
        """Be born."""
        self.state = Watched(self.playground.state)
        self.tools = replace(self.playground.tools, cache=Cache(), state=cast("EngineState", self.state))
        self.work = Work()
        self.transactions = Transactions(self.tools, self._own)
        self.executor = Executor(
            self.tools,
            self.transactions,
            {"Sleep": lambda: self.work},
            self.folder,
            self.playground.secret_for,
            self.playground.clock.monotonic,
            threading.Event(),
        )
        self.register()

    def register(self) -> None:
        """Become known under a new name."""
        self.uuid = self.tools.new_id()
        self.playground.state.register(WorkerRecord(self.uuid, "pool", 1, 0, 0, 100))

    def _own(self, changes: Changes) -> None:
        for position, admission in enumerate(changes.admissions):
            if self.is_greedy and admission.task.kind is TaskKind.STEP:
                changes.admissions[position] = replace(admission, task=replace(admission.task, owner=self.uuid))

    def claim(self, runs: int, steps: int) -> None:
        """Take tasks into its hands."""
        self.hand += self.playground.state.claim(self.uuid, self.playground.clock(), runs=runs, steps=steps)

    def do(self, task: Task, outcome: Outcome) -> Transaction | None:
        """Do a task, whoever holds it now; None if it was no longer its own."""
        self.work.outcome, self.work.is_executed = outcome, False
        if task.kind is TaskKind.STEP:
            turn = self.executor.execute(task)
        else:
            try:
                turn = self.transactions.decide(task)
            except LeaseLost:
                turn = None
        if turn is not None:
            self.hand += turn.committed.held
        return turn
