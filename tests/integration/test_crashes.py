"""Processes killed at every durable boundary of capture, commit, abandon and gc: each row still comes once.

CI kills each of them with a lease or without one, ``make test-all`` both ways.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest
from tests.memory_folders import folder_in_memory
from tests.scope import in_ci

from calve import settings
from calve.app import open_captures
from calve.capture import Captures, Operation, Status, Wanted
from calve.lake import Lake
from calve.settings import Settings, StoreSettings
from calve.testing import PyIcebergWriter, Rows, crashes as work_of
from calve.testing.crashes import Crashes, Errand
from calve.testing.replicas import rows_at

COLUMNS = {"id": "long", "day": "int", "v": "string"}
WANTED = Wanted(operations=frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE}))
WORKS = {
    "capture": work_of.capture,
    "commit": work_of.commit,
    "abandon": work_of.abandon,
    "collect": work_of.collect,
}
ENOUGH = 300
KILLED = [("capture", True), ("commit", False), ("abandon", False), ("collect", True)]
"""What is killed in CI, and whether it holds a lease: that adds boundaries to a capture and to what gc removes."""
STRIDE = in_ci(10, otherwise=3)
"""How far apart the points of a recovery are at which it is killed too."""


@dataclass
class World:
    """Two tables with a history, and consumers that stand in the middle of it."""

    settings: Settings
    crashes: Crashes
    captures: Captures
    lake: Lake
    writer: PyIcebergWriter
    starts: dict[str, int] = field(default_factory=dict)
    """Where every consumer begins, by table."""
    truth: dict[str, tuple[Rows, Rows]] = field(default_factory=dict)
    """The rows that came and went since, by table."""
    owned: dict[Path, int] = field(default_factory=dict)
    """The files of the tables, and their sizes."""
    delivered: dict[str, dict[str, tuple[Rows, Rows]]] = field(default_factory=dict)
    """What was read of every capture, by table."""

    def build(self) -> None:
        """Make the tables: one with changed and deleted rows, one with appends only."""
        writer, lake = self.writer, self.lake
        for table in ("db.changed", "db.appended"):
            writer.create(table, COLUMNS, days=True)
            writer.append([{"id": n, "day": n % 2, "v": "old"} for n in range(6)])
            start = rows_at(lake, table)
            self.starts[table] = lake.catalog("lake").load(lake.parse(table)).metadata["current-snapshot-id"]
            writer.append([{"id": n, "day": 1, "v": "new"} for n in range(10, 13)])
            if table == "db.changed":
                writer.update([2, 10], "v", "changed")
                writer.delete([3])
                writer.compact()
            end = rows_at(lake, table)
            self.truth[table] = (end - start, start - end)
        self.owned = {path: path.stat().st_size for path in self._warehouse.glob("db/**/*") if path.is_file()}

    def begin(self, consumer: str, *, lease: bool) -> Errand:
        """Let a new consumer stand at the start."""
        for table, snapshot_id in self.starts.items():
            self.captures.set_checkpoint(table, consumer, str(snapshot_id), "begin here")
        return Errand(tuple(self.starts), consumer, WANTED, lease)

    def prepare(self, work: str, errand: Errand) -> None:
        """Do what comes before some work: commit and abandon close a capture, and gc removes one."""
        if work != "capture":
            self.crashes.run(self.settings, work_of.capture, errand)
            self.look(errand)
        if work == "collect":
            self.crashes.run(self.settings, work_of.abandon, errand)

    def look(self, errand: Errand) -> None:
        """Read what is open, as a consumer would before it commits; a second look must see the same."""
        for stored in self.captures.captures(errand.consumer):
            if stored.status is Status.OPEN:
                changes = self.captures.show(stored.capture_id).tables
                seen = {change.source_table: self.writer.read(change) for change in changes}
                assert self.delivered.setdefault(stored.capture_id, seen) == seen

    def recover(self, errand: Errand, plan: str | None = None) -> bool:
        """Go on as new processes would, until all is delivered; the first may be killed again: tell whether it was."""
        was_killed = False
        for work in (work_of.resume, work_of.finish):
            ended = self.crashes.run(self.settings, work, errand, plan=None if was_killed else plan)
            while ended.killed:
                was_killed = True
                self.look(errand)
                ended = self.crashes.run(self.settings, work, errand)
            self.look(errand)
        return was_killed

    def check(self, errand: Errand) -> None:
        """Check that everything was delivered once, and that nothing is left behind or damaged."""
        listed = self.captures.captures(errand.consumer)
        committed = [stored.capture_id for stored in listed if stored.status is Status.COMMITTED]
        assert {stored.status for stored in listed} <= {Status.COMMITTED, Status.ABANDONED}
        assert all(stored.collected_at for stored in listed)
        for table, (came, gone) in self.truth.items():
            read = [self.delivered[capture_id][table] for capture_id in committed]
            assert sum((rows for rows, _ in read), Rows()) == came
            assert sum((rows for _, rows in read), Rows()) == gone
        self._check_clean()

    def _check_clean(self) -> None:
        catalog = self.lake.catalog("lake")
        assert [name for name in catalog.tables(("icdc",)) if name.startswith("icdc.")] == []
        for table in self.starts:
            assert list(catalog.load(self.lake.parse(table)).metadata["refs"]) == ["main"]
        assert [str(path) for path in self._warehouse.glob("icdc/**/*")] == []
        assert {path: path.stat().st_size for path in self.owned} == self.owned
        extra = {path for path in self._warehouse.glob("db/**/*") if path.is_file()} - self.owned.keys()
        assert all(".metadata.json" in path.name for path in extra)  # of commits that tagged, killed ones too

    @property
    def _warehouse(self) -> Path:
        return Path(self.settings.catalogs["lake"].properties["warehouse"])


@pytest.fixture(scope="module")
def crashes() -> Iterator[Crashes]:
    """Give processes that can be killed."""
    opened = Crashes()
    yield opened
    opened.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder in memory where there is one."""
    with folder_in_memory() as made:
        yield made


@contextmanager
def opened(loaded: Settings, crashes: Crashes) -> Iterator[World]:
    """Make a lake with two tables, and look at it with eyes that stay open while other processes die."""
    lake, writer = Lake(loaded), PyIcebergWriter(loaded)
    with open_captures(loaded) as captures:
        made = World(loaded, crashes, captures, lake, writer)
        made.build()
        yield made
    writer.close()
    lake.close()


@pytest.fixture
def world(folder: Path, crashes: Crashes) -> Iterator[World]:
    """Give a lake with two tables, and a store in SQLite."""
    with opened(settings.load(folder, {}), crashes) as made:
        yield made


@pytest.fixture
def world_on_postgres(folder: Path, crashes: Crashes, postgres_database: str) -> Iterator[World]:
    """Give the same with a store in PostgreSQL."""
    loaded = settings.load(folder, {})
    with opened(loaded.model_copy(update={"store": StoreSettings(url=postgres_database)}), crashes) as made:
        yield made


def kill_everywhere(world: World, name: str, *, lease: bool, everywhere: bool) -> int:
    """Kill some work at its first point, its second, and so on until it comes through; recover each time."""
    for nth in range(1, ENOUGH):
        errand = world.begin(f"{name}-{nth}", lease=lease)
        world.prepare(name, errand)
        plan = f"*:{nth}:kill"
        ended = world.crashes.run(world.settings, WORKS[name], errand, plan=plan, everywhere=everywhere)
        world.look(errand)
        world.recover(errand)
        world.check(errand)
        if not ended.killed:
            return nth - 1
    raise AssertionError(f"{name} passes more than {ENOUGH} points")


def points_of(world: World, name: str, *, lease: bool, everywhere: bool) -> list[str]:
    """Return the points that some work passes, by letting it count them."""
    errand = world.begin(f"{name}-counts", lease=lease)
    world.prepare(name, errand)
    ended = world.crashes.run(world.settings, WORKS[name], errand, plan="*:1:count", everywhere=everywhere)
    world.look(errand)
    world.recover(errand)
    world.check(errand)
    return list(ended.points)


@pytest.mark.parametrize(("name", "lease"), in_ci(KILLED, otherwise=list(product(WORKS, [False, True]))))
def test_a_kill_at_any_point_loses_nothing_and_leaves_nothing(world: World, name: str, *, lease: bool) -> None:
    """Whatever the last thing that lasted before the kill, the next process delivers every row once."""
    kills = kill_everywhere(world, name, lease=lease, everywhere=True)
    assert kills == len(points_of(world, name, lease=lease, everywhere=True))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("capture", {"store.begin", "capture.tagged", "capture.written", "capture.registered", "store.open"}),
        ("commit", {"store.commit"}),
        ("abandon", {"store.abandon"}),
        ("collect", {"gc.dropped", "gc.deleted", "store.mark_collected"}),
    ],
)
def test_every_failpoint_is_reached(world: World, name: str, expected: set[str]) -> None:
    """The loops above pass the failpoints that the code names, on both sides of every transaction."""
    points = points_of(world, name, lease=True, everywhere=False)
    assert expected <= {point.removesuffix(".before_commit").removesuffix(".after_commit") for point in points}
    transactions = {point.rpartition(".")[0] for point in points if point.startswith("store.")}
    assert {f"{name}.{side}" for name in transactions for side in ("before_commit", "after_commit")} <= set(points)


@pytest.mark.parametrize("name", ["capture", "commit"])
def test_a_second_kill_during_the_recovery_is_survived_too(world: World, name: str) -> None:
    """Killed at any failpoint and then at any failpoint of what recovers from that, every row still comes once."""
    for nth, _ in enumerate(points_of(world, name, lease=True, everywhere=False), start=1):
        for again in range(1 + nth % STRIDE, ENOUGH, STRIDE):  # some of them for each, in turn
            errand = world.begin(f"{name}-{nth}-{again}", lease=True)
            world.prepare(name, errand)
            assert world.crashes.run(world.settings, WORKS[name], errand, plan=f"*:{nth}:kill").killed
            world.look(errand)
            was_killed = world.recover(errand, plan=f"*:{again}:kill")
            world.check(errand)
            if not was_killed:
                break
        else:
            raise AssertionError(f"the recovery passes more than {ENOUGH} points")


@pytest.mark.parametrize("name", ["capture", "commit"])
def test_a_kill_at_any_failpoint_is_survived_on_postgresql(world_on_postgres: World, name: str) -> None:
    """The store may as well be PostgreSQL."""
    kills = kill_everywhere(world_on_postgres, name, lease=True, everywhere=False)
    assert kills == len(points_of(world_on_postgres, name, lease=True, everywhere=False))
