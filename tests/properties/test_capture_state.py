"""Whatever happens in whatever order, the store agrees with a small model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.scope import in_ci

from calve.capture import Artifacts, Checkpoint, Move, Status
from calve.errors import (
    CaptureClosed,
    CaptureError,
    CaptureMissing,
    CheckpointMissing,
    ConcurrentCapture,
    ConcurrentCommit,
)
from calve.lake import TableName
from calve.store import open_store

START = datetime(2026, 1, 1, tzinfo=UTC)
CONSUMERS = ["a", "b"]
TABLES = [TableName("lake", ("db",), "s"), TableName("lake", ("db",), "t")]
Place = tuple[str, TableName]


@dataclass
class Capture:
    """What the model knows of a capture."""

    consumer: str
    key: str | None
    begun: int
    status: Status = Status.WRITING
    moves: dict[TableName, tuple[int, int]] = field(default_factory=dict)
    collected: bool = False


@dataclass
class Model:
    """Checkpoints are lists of all places they ever were at, None for a reset."""

    moved: dict[Place, list[int | None]] = field(default_factory=dict)
    captures: dict[str, Capture] = field(default_factory=dict)

    def version(self, place: Place) -> int:
        """Return the version as the port gives it."""
        history = self.moved.get(place, [])
        return len(history) if history and history[-1] is not None else 0

    def move(self, place: Place, to: int | None) -> None:
        """Add a place to a checkpoint's history."""
        self.moved.setdefault(place, []).append(to)

    def open(self, name: str, moves: dict[TableName, tuple[int, int]], *, supersede: bool) -> None:
        """Open a capture; ``moves`` has the expected version and the new place of each table."""
        capture = self.captures[name]
        others = [other for other in self.captures.values() if other.consumer == capture.consumer]
        kept = [other for other in others if other.status in {Status.OPEN, Status.COMMITTED}]
        is_taken = any(other.key == capture.key for other in kept if other.key)
        rivals = [other for other in others if other.status is Status.OPEN]
        is_stale = any(self.version((capture.consumer, at)) != version for at, (version, _) in moves.items())
        is_writing = capture.status is Status.WRITING and not capture.collected
        if not is_writing or is_taken or (rivals and not supersede) or is_stale:
            raise ConcurrentCapture
        for rival in rivals:
            rival.status = Status.ABANDONED
        capture.status = Status.OPEN
        capture.moves = {at: (len(self.moved.get((capture.consumer, at), [])), to) for at, (_, to) in moves.items()}

    def commit(self, name: str) -> None:
        """Commit a capture."""
        capture = self.captures[name]
        if capture.status is Status.WRITING:
            raise CaptureMissing
        if capture.status is Status.ABANDONED:
            raise CaptureClosed
        if capture.status is Status.COMMITTED:
            return
        if any(len(self.moved.get((capture.consumer, at), [])) != seen for at, (seen, _) in capture.moves.items()):
            raise ConcurrentCommit
        for at, (_, to) in capture.moves.items():
            self.move((capture.consumer, at), to)
        capture.status = Status.COMMITTED

    def abandon(self, name: str) -> None:
        """Abandon a capture."""
        capture = self.captures[name]
        if capture.status is Status.COMMITTED:
            raise CaptureClosed
        capture.status = Status.ABANDONED

    def collect(self, name: str) -> None:
        """Mark a capture as collected."""
        if self.captures[name].status is Status.OPEN:
            raise ConcurrentCapture
        self.captures[name].collected = True

    def set(self, place: Place, expected: int, to: int) -> None:
        """Set a checkpoint by hand."""
        if self.version(place) != expected:
            raise ConcurrentCommit
        self.move(place, to)

    def reset(self, place: Place) -> None:
        """Forget a checkpoint."""
        if self.version(place) == 0:
            raise CheckpointMissing
        self.move(place, None)


def at(snapshot: int) -> Checkpoint:
    """Make a checkpoint."""
    return Checkpoint("u", snapshot, snapshot, None, 0, 0)


def outcome(act: Callable[[], object]) -> type[CaptureError] | None:
    """Return the class of the error that something raises, None when it goes well."""
    try:
        act()
    except CaptureError as error:
        return type(error)
    return None


places = st.tuples(st.sampled_from(CONSUMERS), st.sampled_from(TABLES))
snapshots = st.integers(0, 99)
stale = st.sampled_from([0, 0, 0, 0, 1, -1])
"""How far off the expected version is: mostly not at all."""


class StoreAndModel(RuleBasedStateMachine):
    """Do the same to both and compare."""

    def __init__(self) -> None:
        super().__init__()
        self.store = open_store("sqlite://")
        self.model = Model()
        self.ticks = 0

    def teardown(self) -> None:
        """Close the database."""
        self.store.close()

    def now(self) -> datetime:
        """Let time pass."""
        self.ticks += 1
        return START + timedelta(seconds=self.ticks)

    def both(self, real: Callable[[], object], modelled: Callable[[], object]) -> None:
        """Do it to both, and demand the same outcome."""
        assert outcome(real) == outcome(modelled)

    @rule(consumer=st.sampled_from(CONSUMERS), key=st.sampled_from([None, None, "k", "l"]))
    def begin(self, consumer: str, key: str | None) -> None:
        """Begin a capture."""
        name = f"c{len(self.model.captures)}"
        begun = self.store.captures.begin(name, consumer, key, Artifacts(), self.now())
        self.model.captures[name] = Capture(consumer, key, self.ticks)
        assert begun.number == sum(other.consumer == consumer for other in self.model.captures.values())

    @precondition(lambda self: self.model.captures)
    @rule(
        data=st.data(),
        wanted=st.dictionaries(st.sampled_from(TABLES), st.tuples(stale, snapshots)),
        supersede=st.booleans(),
    )
    def open(self, data: st.DataObject, wanted: dict[TableName, tuple[int, int]], *, supersede: bool) -> None:
        """Open a capture, now and then from a stale version."""
        name = self.one(data)
        consumer = self.model.captures[name].consumer
        moves = {table: (self.model.version((consumer, table)) + off, to) for table, (off, to) in wanted.items()}
        real = [Move(table, version, at(to)) for table, (version, to) in moves.items()]
        self.both(
            lambda: self.store.captures.open(name, real, {"capture_id": name}, supersede=supersede),
            lambda: self.model.open(name, moves, supersede=supersede),
        )

    @precondition(lambda self: self.model.captures)
    @rule(data=st.data(), way=st.sampled_from(["commit", "commit", "abandon", "collect"]))
    def close(self, data: st.DataObject, way: str) -> None:
        """Commit, abandon or collect a capture."""
        name = self.one(data)
        real: dict[str, Any] = {
            "commit": self.store.captures.commit,
            "abandon": self.store.captures.abandon,
            "collect": self.store.captures.mark_collected,
        }
        self.both(lambda: real[way](name, self.now()), lambda: getattr(self.model, way)(name))

    @rule(place=places, off=stale, to=snapshots)
    def set(self, place: Place, off: int, to: int) -> None:
        """Set a checkpoint by hand, now and then from a stale version."""
        expected = self.model.version(place) + off
        move = Move(place[1], expected, at(to))
        self.both(
            lambda: self.store.captures.set_checkpoint(place[0], move, reason="r", now=self.now()),
            lambda: self.model.set(place, expected, to),
        )

    @rule(place=places)
    def reset(self, place: Place) -> None:
        """Forget a checkpoint."""
        self.both(
            lambda: self.store.captures.reset_checkpoint(*place, reason="r", now=self.now()),
            lambda: self.model.reset(place),
        )

    def one(self, data: st.DataObject) -> str:
        """Choose a capture, a recent one more often."""
        newest_first = sorted(self.model.captures, key=lambda name: -self.model.captures[name].begun)
        return newest_first[data.draw(st.integers(0, len(newest_first) - 1))]

    @invariant()
    def the_checkpoints_are_the_same(self) -> None:
        """Version, place and history of every checkpoint are those of the model."""
        stored = {
            (found.consumer, found.table): (found.version, found.checkpoint.snapshot_id)
            for found in self.store.captures.checkpoints()
        }
        modelled = {
            place: (len(history), history[-1]) for place, history in self.model.moved.items() if history[-1] is not None
        }
        assert stored == modelled
        logged: dict[tuple[str, str], list[int | None]] = {}
        for entry in self.store.captures.checkpoint_log():
            after = entry["after"] and entry["after"]["snapshot_id"]
            logged.setdefault((entry["consumer"], entry["table"]), []).append(after)
        assert logged == {(who, str(table)): moved for (who, table), moved in self.model.moved.items()}

    @invariant()
    def the_captures_are_the_same(self) -> None:
        """Status, key and collection of every capture are those of the model; at most one is open."""
        stored = {name: self.store.captures.capture(name) for name in self.model.captures}
        assert {name: (found.status, found.key) for name, found in stored.items()} == {
            name: (capture.status, capture.key) for name, capture in self.model.captures.items()
        }
        listed = {found.capture_id for found in self.store.captures.captures()}
        assert listed == {name for name, found in stored.items() if found.status is not Status.WRITING}
        opened = [found.consumer for found in stored.values() if found.status is Status.OPEN]
        assert len(opened) == len(set(opened))
        garbage = {found.capture_id for found in self.store.captures.garbage(START + timedelta(days=1))}
        assert garbage == {
            name
            for name, capture in self.model.captures.items()
            if not capture.collected and capture.status is not Status.OPEN
        }


TestStoreAndModel = StoreAndModel.TestCase
TestStoreAndModel.settings = settings(max_examples=in_ci(25, otherwise=60), stateful_step_count=30, deadline=None)
