"""A simulated day of many workflows with time triggers, whose scheduler dies again and again."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from zoneinfo import ZoneInfo

from sqlalchemy import create_engine, select
from tests.engines import HandClock

from calve import failpoints
from calve.definition import installed, load
from calve.definition.model.triggers import CronTrigger
from calve.definition.schedules import zone_of
from calve.engine import Blueprints, Cache, Engine, Tools
from calve.engine.model import Changes, TriggerMark
from calve.failpoints import FailpointReached
from calve.store import Store
from calve.store.engine_tables import run
from calve.triggers import Kind, Scheduler, Trigger
from calve.triggers.time import TimeTriggers

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
        self.clock = HandClock(self.start)
        self.chance = random.Random(self.seed)
        self._numbers = count(self.first_id)
        self._pushed: list[Timed] = []
        self.scheduler = self._born()

    def _tools(self) -> Tools:
        state = self.store.engine
        return Tools(state, Blueprints(state.version), installed(), Cache(), self.clock, self._new_id)

    def _new_id(self) -> str:
        return f"00000000-0000-7000-8000-{next(self._numbers):012d}"

    def _born(self) -> Scheduler:
        """Return a scheduler that knows nothing of those before it."""
        return Scheduler(self._tools(), self.store.triggers, {Kind.TIME: TimeTriggers()})

    def push(self, timed: Sequence[Timed]) -> None:
        """Push workflows; those that are there get another version with the same trigger."""
        self._pushed = [*self._pushed, *(each for each in timed if each not in self._pushed)]
        engine = Engine(self._tools())
        base = load(DEFINITION, name="test", vocabulary=installed()).required()
        for each in timed:
            workflow = base.workflow.model_copy(update={"id": each.workflow_id, "time_triggers": (each.trigger,)})
            engine.push(base.model_copy(update={"workflow": workflow}))

    def live(self, until: int, *, step: int = 1) -> None:
        """Let time pass; every hour the scheduler dies at a point of its work, and another comes minutes later.

        Args:
            until: when it is over.
            step: in steps of at least so many milliseconds.
        """
        death = self.start + HOUR
        while self.clock.now < until:
            self.work()
            if self.clock.now >= death:
                self._die(until)
                death += HOUR
            due = self.store.triggers.next_due() or until
            self.clock.now = min(max(due, self.clock.now + step), max(death, self.clock.now + 1), until)
        self.work()

    def work(self) -> None:
        """Take turns until there is nothing to do."""
        while True:
            self.turns += 1
            turn = self.scheduler.turn()
            if not turn.is_full and not turn.looked:
                return

    def _die(self, until: int) -> None:
        """Go on until the scheduler dies at some point of its work; another one is there some minutes later."""
        failpoints.arm(f"{self.chance.choice(POINTS)}:{self.chance.randrange(1, 4)}:error")
        try:
            while self.clock.now < until:
                self.push(self.chance.sample(self._pushed, 1))
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
                rows = connection.execute(select(run.c.workflow_id, run.c.run_params))
                return Counter((row.workflow_id, int(json.loads(row.run_params)["RUN_TS"]["value"])) for row in rows)
        finally:
            engine.dispose()


def expected(timed: Sequence[Timed], after: int, until: int) -> Fired:
    """Return what is to be: each moment of each workflow, once."""
    return Counter((each.workflow_id, moment) for each in timed for moment in each.moments(after, until))
