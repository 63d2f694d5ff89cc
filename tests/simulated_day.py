"""A simulated day of workflows that start by time or by changes of tables, whose scheduler dies repeatedly."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import create_engine, select
from tests.engines import HandClock

from calve import failpoints
from calve.capture import Checkpoint, Commit, Operation, Uncommitted, Wanted
from calve.definition import installed, load
from calve.definition.model import CronTrigger, IncrementalTrigger
from calve.definition.schedules import zone_of
from calve.engine import Blueprints, Cache, Changes, Engine, Run, Tools, TriggerMark, WorkerRecord
from calve.engine.decisions import Transactions
from calve.failpoints import FailpointReached
from calve.lake import TableName
from calve.store import Store
from calve.store.tables import run
from calve.triggers import Scheduler, TimeTriggers, Trigger, TriggerType
from calve.triggers.tables import TableChanges

POINTS = ("triggers.read", "triggers.synced", "triggers.looked", "triggers.prepared", "triggers.fired")
MINUTE = 60_000
HOUR = 60 * MINUTE
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham")
DEFINITION = "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}\n"

Fired = Counter[tuple[str, int]]
"""How often each workflow was started for each moment."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A workflow that starts at some minutes of some hours, in a zone."""

    workflow_id: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...] | None
    zone: str

    @property
    def trigger(self) -> CronTrigger:
        """Its trigger."""
        hours = "*" if self.hours is None else ",".join(map(str, self.hours))
        return CronTrigger(cron=f"{','.join(map(str, self.minutes))} {hours} * * *", timezone=self.zone)

    def moments(self, after: int, until: int) -> list[int]:
        """Return when it starts, found minute by minute; not made for days on which its clocks change."""
        zone, found = zone_of(self.zone), list[int]()
        for moment in range(after // MINUTE * MINUTE + MINUTE, until + 1, MINUTE):
            local = _local(moment, zone)
            if local.minute in self.minutes and (self.hours is None or local.hour in self.hours):
                found.append(moment)
        return found


def _local(moment: int, zone: ZoneInfo) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)).astimezone(zone)


@dataclass(frozen=True, slots=True)
class Watching:
    """A workflow that starts when a table changes, which it does at some moments."""

    workflow_id: str
    commits: tuple[int, ...]

    @property
    def trigger(self) -> IncrementalTrigger:
        """Its trigger."""
        return IncrementalTrigger(source_tables=(f"db.{self.workflow_id}",))


@dataclass(frozen=True, slots=True)
class Tables:
    """What an incremental trigger asks of a lake and of captures, about tables whose changes are known beforehand."""

    commits: dict[str, tuple[int, ...]]
    clock: HandClock

    def parse(self, text: str) -> TableName:
        """Return a table."""
        return TableName.parse(text, ("lake",), "db")

    def since(self, table: str, start: Checkpoint | None, wanted: Wanted) -> Uncommitted:
        """Return what has come into a table by now."""
        del wanted
        come = [at for at in self.commits[table] if at <= self.clock.now]
        after = start.snapshot_id or 0 if start else 0
        commits = [Commit(number, Operation.APPEND, at, 1, 1) for number, at in enumerate(come, 1) if number > after]
        head = Checkpoint(table, len(come) or None, len(come), None, 0, self.clock.now)
        return Uncommitted(table, table, f"v{len(come)}", start, head, tuple(commits))


def watching(size: int, chance: random.Random, after: int, until: int) -> list[Watching]:
    """Return workflows whose tables change now and then, each some times a day."""
    hours = max(1, (until - after) // HOUR)
    return [
        Watching(f"t{number}", tuple(sorted(chance.sample(range(after + 1, until, MINUTE), max(1, hours // 2)))))
        for number in range(size)
    ]


def workflows(size: int, chance: random.Random) -> list[Timed]:
    """Return workflows with all sorts of schedules: most start once an hour."""
    made = []
    for number in range(size):
        zone = chance.choice(ZONES)
        minutes: Sequence[int] = (chance.randrange(60),)
        hours = None
        match chance.randrange(10):
            case 0:
                hours = tuple(sorted(chance.sample(range(24), 3)))
            case 1:
                minutes = tuple(range(chance.randrange(15), 60, 15))
            case _:
                pass
        made.append(Timed(f"w{number}", tuple(minutes), hours, zone))
    return made


@dataclass
class Day:
    """The simulation: a store, a clock that is moved by hand, and one scheduler after the other."""

    store: Store
    url: str
    start: int
    seed: int = 0
    first_id: int = 1
    clock: HandClock = field(init=False)
    deaths: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        """Begin at the start."""
        self._tables: dict[str, tuple[int, ...]] = {}
        self._seen = self.start
        self.clock = HandClock(self.start)
        self.chance = random.Random(self.seed)
        self._numbers = count(self.first_id)
        self._pushed: list[Timed | Watching] = []
        self.scheduler = self._born()
        self._worker = ""

    def _tools(self) -> Tools:
        state = self.store.engine
        return Tools(state, Blueprints(state.version), installed(), Cache(), self.clock, self._new_id)

    def _new_id(self) -> str:
        return f"00000000-0000-7000-8000-{next(self._numbers):012d}"

    def _born(self) -> Scheduler:
        """Return a scheduler that knows nothing of those before it."""
        tools, triggers = self._tools(), self.store.triggers
        tables: Any = Tables(self._tables, self.clock)
        changes = TableChanges(tools, triggers, tables, tables)
        self._transactions = Transactions(tools)
        return Scheduler(tools, triggers, {TriggerType.TIME: TimeTriggers(), TriggerType.INCREMENTAL: changes})

    def push(self, timed: Sequence[Timed | Watching]) -> None:
        """Push workflows; those that are there get another version with the same trigger."""
        self._pushed = [*self._pushed, *(each for each in timed if each not in self._pushed)]
        engine = Engine(self._tools())
        base = load(DEFINITION, name="test", vocabulary=installed()).required()
        for each in timed:
            field = "time_triggers" if isinstance(each, Timed) else "incremental_triggers"
            if isinstance(each, Watching):
                self._tables[f"lake.db.{each.workflow_id}"] = each.commits
            workflow = base.workflow.model_copy(update={"id": each.workflow_id, field: (each.trigger,)})
            engine.push(base.model_copy(update={"workflow": workflow}))

    def live(self, until: int, *, step: int = 1) -> None:
        """Let time pass; every hour the scheduler dies at a point of its work, and another comes minutes later.

        Args:
            until: when it is over.
            step: in steps of at least so many milliseconds.
        """
        death = self.start + HOUR
        while self.clock.now < until:
            self.notice()
            self.work()
            if self.clock.now >= death:
                self._die(until)
                death += HOUR
            due = self.store.triggers.next_due() or until
            due = min([due, *(at for commits in self._tables.values() for at in commits if at > self.clock.now)])
            self.clock.now = min(max(due, self.clock.now + step), max(death, self.clock.now + 1), until)
        self.notice()
        self.work()

    def notice(self) -> None:
        """Make triggers due whose tables have changed, as the watcher does."""
        changed = [
            (table.rpartition(".")[2], "incremental:0")
            for table, commits in self._tables.items()
            if any(self._seen < at <= self.clock.now for at in commits)
        ]
        self._seen = self.clock.now
        self.store.triggers.make_due(changed, self.clock.now)

    def _carry_out(self) -> int:
        """Bring instances to their end, which lets a workflow be started by the next change; return how many."""
        if not self._tables:
            return 0
        if not self._worker:
            self._worker = self._new_id()
            self.store.engine.register(WorkerRecord(self._worker, "day", 1, self.start, self.start, 100))
        tasks = self.store.engine.claim(self._worker, self.clock.now, runs=100, steps=0)
        for task in tasks:
            self._transactions.decide(task)
        return len(tasks)

    def work(self) -> None:
        """Take turns until there is nothing to do."""
        while True:
            self.turns += 1
            turn = self.scheduler.turn()
            if not turn.is_full and not turn.looked and not self._carry_out():
                return

    def _die(self, until: int) -> None:
        """Go on until the scheduler dies at some point of its work; another one is there some minutes later."""
        failpoints.arm(f"{self.chance.choice(POINTS)}:{self.chance.randrange(1, 4)}:error")
        try:
            while self.clock.now < until:
                self.push(self.chance.sample(self._pushed, 1))
                self.notice()
                self.work()
                self.clock.now += 5 * MINUTE
        except FailpointReached:
            self.deaths += 1
        finally:
            failpoints.arm(None)
        self.clock.now = min(until, self.clock.now + self.chance.randrange(10) * MINUTE)
        self.revive()

    def revive(self) -> None:
        """Let another scheduler take over, which knows nothing of the one before."""
        self.scheduler = self._born()

    def rewind(self, now: Trigger, before: Trigger) -> None:
        """Set the row of a trigger back to what it was."""
        mark = TriggerMark(now.workflow_id, now.trigger_id, now.seq, before.state, before.due_at)
        self.store.engine.commit(Changes(marks=[mark]))

    def fired(self) -> Fired:
        """Return how often each workflow was started for each moment."""
        engine = create_engine(self.url)
        try:
            with engine.connect() as connection:
                rows = [(row.workflow_id, json.loads(row.run_params)) for row in connection.execute(select(run))]
        finally:
            engine.dispose()
        return Counter((name, int(params["RUN_TS"]["value"])) for name, params in rows if params)

    def taken(self, watching: Watching) -> list[tuple[int | None, int | None]]:
        """Return which changes started the instances of a workflow, in order: after which, up to which."""
        runs = self.store.engine.instances(workflow_id=watching.workflow_id, limit=10_000)
        tables = [table for run in sorted(runs, key=_number) for table in run.initiator.trigger["tables"]]
        return [(table["from_snapshot_id"], table["to_snapshot_id"]) for table in tables]


def _number(each: Run) -> int:
    return each.instance_id


def is_once(watching: Watching, taken: Sequence[tuple[int | None, int | None]], until: int) -> bool:
    """Tell whether every change of a table is in exactly one of the ranges that were taken."""
    ends = [to for _, to in taken]
    come = sum(at <= until for at in watching.commits)
    return [start for start, _ in taken] == [None, *ends[:-1]][: len(taken)] and (ends[-1] if ends else 0) == come


def expected(timed: Sequence[Timed], after: int, until: int) -> Fired:
    """Return what is to be: each moment of each workflow, once."""
    return Counter((each.workflow_id, moment) for each in timed for moment in each.moments(after, until))
