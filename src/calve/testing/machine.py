"""The history fuzzer: a hypothesis state machine over a real table in a real lake.

A history is a list of events of the table (appends, updates, compaction, expiry, rollback, re-creation, …) and of a
consumer of it (full and partial captures, commits, crashes, garbage collection). The consumer keeps a replica of the
table by applying every committed capture. After each capture the replica must equal the table at the captured snapshot,
read by time travel, row by row. Where the library raises an error, it must be the correct one, which follows from the
whole history, including expired snapshots.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from calve import failpoints
from calve.app import open_captures
from calve.capture import CaptureLimits, Captures, OnGap, Operation, Status, Wanted
from calve.errors import CalveError, ChangeUnsupported, ConcurrentCapture, ConcurrentCommit, HistoryExpired
from calve.failpoints import FailpointReached
from calve.lake import Lake, TableName, local_path
from calve.testing import crashes
from calve.testing.consumers import CheckedCapture, Consumer, checked_change, demand
from calve.testing.crashes import Crashes, Errand
from calve.testing.expectations import Expected, expected
from calve.testing.replicas import Rows, projected, rows_at
from calve.testing.timeline import Timeline
from calve.testing.writers import PROMOTIONS, TYPES, Ability, Record, Writer

COLUMNS = {"id": "long", "day": "int", "v": "string", "n": "int", "f": "float", "d": "decimal(9,2)"}
_FIXED = ("id", "day")
_EVERYTHING = frozenset(Operation) - {Operation.REPLACE}
_VALUES: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n % 7,
    "long": lambda n: n * 1_000_000_007,
    "float": lambda n: n / 2,
    "double": lambda n: n / 4,
    "string": lambda n: f"v{n % 5}",
    "decimal(9,2)": lambda n: Decimal(n).scaleb(-2),
    "decimal(18,2)": lambda n: Decimal(n * 1_000_003).scaleb(-2),
}

_DAYS = st.lists(st.integers(0, 3), min_size=1, max_size=4)
_PICKS = st.integers(0, 7)
_FLAGS = st.booleans()
_LIMITS = st.sampled_from(
    [
        CaptureLimits(),
        CaptureLimits(max_files=1),
        CaptureLimits(max_files=2),
        CaptureLimits(max_bytes=1),
        CaptureLimits(max_bytes=4000),
    ]
)
_OPERATIONS = st.sampled_from([_EVERYTHING, _EVERYTHING, frozenset({Operation.APPEND})])


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Something that happens to the table or its consumer: a method of ``HistoryMachine``, and its arguments."""

    name: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


def _event(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[HistoryEvent]:
    return st.builds(HistoryEvent, st.just(name), st.fixed_dictionaries(arguments))


_CHANGES = [Ability.UPSERT, Ability.UPDATE, Ability.DELETE, Ability.DELETE_PARTITION, Ability.OVERWRITE_PARTITION]
_EVOLUTIONS = [Ability.ADD_COLUMN, Ability.DROP_COLUMN, Ability.RENAME_COLUMN, Ability.PROMOTE_COLUMN, None]
_EVENTS: list[tuple[int, st.SearchStrategy[HistoryEvent]]] = [
    (4, _event("append", days=_DAYS, twice=_FLAGS)),
    (6, _event("change", how=st.sampled_from(_CHANGES), day=st.integers(0, 3), pick=_PICKS)),
    (2, _event("rewrite", how=st.sampled_from([Ability.COMPACT, Ability.COMPACT, Ability.REWRITE_MANIFESTS]))),
    (2, _event("age", how=st.sampled_from([Ability.EXPIRE, Ability.EXPIRE, Ability.TAG]), pick=_PICKS, one=_FLAGS)),
    (2, _event("evolve", how=st.sampled_from(_EVOLUTIONS), pick=_PICKS)),
    (
        1,
        _event(
            "relay", how=st.sampled_from([Ability.PARTITION_BY, Ability.PARTITION_BY, Ability.UPGRADE]), days=_FLAGS
        ),
    ),
    (1, _event("turn_back", how=st.sampled_from([Ability.SET_CURRENT, Ability.SET_CURRENT, None]), pick=_PICKS)),
    (4, _event("deliver", operations=_OPERATIONS, limits=st.just(CaptureLimits()))),
    (3, _event("deliver", operations=st.just(_EVERYTHING), limits=_LIMITS)),
    (
        3,
        _event(
            "capture",
            operations=_OPERATIONS,
            limits=_LIMITS,
            start=st.integers(0, 15),
            end=st.integers(0, 15),
            on_gap=st.sampled_from(OnGap),
            lease=_FLAGS,
            supersede=_FLAGS,
        ),
    ),
    (2, _event("commit")),
    (1, _event("abandon")),
    (1, _event("collect")),
    (
        3,
        _event(
            "crash",
            what=st.sampled_from(["capture", "capture", "commit", "abandon", "collect"]),
            nth=st.integers(1, 14),
            action=st.sampled_from(["kill", "kill", "error"]),
            lease=_FLAGS,
        ),
    ),
]
"""Possible events, and their weights; hypothesis prefers the first one."""


_WORK: dict[str, Callable[[Captures, Errand], Any]] = {
    "capture": crashes.capture,
    "commit": crashes.commit,
    "abandon": crashes.abandon,
    "collect": crashes.collect,
}


class HistoryMachine(RuleBasedStateMachine):
    """One history of one table, and of a consumer that captures it."""

    def __init__(self, writers: Sequence[Writer], crashes: Crashes) -> None:
        """Take the writers, of which each history uses one, and the processes in which captures crash."""
        super().__init__()
        self._writers, self._crashes = writers, crashes
        self._writer: Writer = writers[0]
        self._stack = ExitStack()
        self._timeline = Timeline()
        self._truths: dict[tuple[str, int], Rows] = {}
        self._consumer = Consumer(f"history-{uuid.uuid4().hex[:8]}")
        self._said: list[str] = []
        self._made = 0
        self._failed = True  # until there is a table

    # The table.

    @initialize(writer=_PICKS, days=_FLAGS, begin=st.sampled_from(["empty", "filled", "captured", "captured"]))
    def create(self, writer: int, days: bool, begin: str) -> None:  # noqa: FBT001
        """Begin a history with a table; usually it has rows, and the consumer has captured them."""
        self._writer = self._writers[writer % len(self._writers)]
        self._lake = self._stack.enter_context(_lake(self._writer))
        self._failed = False
        with self._doing(f"create a table with {self._writer}" + " by day" * days):
            self._writer.create(f"histories.t_{uuid.uuid4().hex[:12]}", COLUMNS, days)
            self._look()
        self._reopen()
        if begin != "empty":
            self.append([0, 1, 1], twice=False)
        if begin == "captured":
            self.deliver(_EVERYTHING, CaptureLimits())

    @rule(event=st.sampled_from([event for weight, event in _EVENTS for _ in range(weight)]).flatmap(lambda e: e))
    def happen(self, event: HistoryEvent) -> None:
        """Execute an event."""
        getattr(self, event.name)(**event.arguments)

    # What happens to the table.

    def append(self, days: list[int], twice: bool) -> None:  # noqa: FBT001
        """Append rows, to a new day or late ones to an old day; sometimes every row twice."""
        records = [self._record(day) for day in days] * (2 if twice else 1)
        self._write(Ability.APPEND, records, said=f"append rows of days {days}" + ", twice" * twice)

    def change(self, how: Ability, day: int, pick: int) -> None:
        """Change or delete some of the rows: every third one, or those of a day."""
        ids = [number for number in range(1, self._made + 1) if number % 3 == pick % 3] or [1]
        match how:
            case Ability.UPSERT:
                records = [{**self._record(day), "id": number} for number in ids[:3]]
                self._write(how, [*records, self._record(day)], said=f"upsert {ids[:3]} and a new row")
            case Ability.UPDATE:
                columns = [name for name in self._timeline.columns if name not in _FIXED]
                if columns:
                    column = columns[pick % len(columns)]
                    value = _VALUES[self._timeline.columns[column][1]](self._made + 100)
                    self._write(how, ids, column, value, said=f"update {column} of {ids}")
            case Ability.DELETE:
                self._write(how, ids, said=f"delete {ids}")
            case Ability.DELETE_PARTITION:
                self._write(how, day, said=f"delete day {day}")
            case Ability.OVERWRITE_PARTITION:
                self._write(how, day, [self._record(day)], said=f"overwrite day {day}")

    def rewrite(self, how: Ability) -> None:
        """Rewrite files or manifests without any change."""
        self._write(how, said=how.value.replace("_", " "))

    def age(self, how: Ability, pick: int, one: bool) -> None:  # noqa: FBT001
        """Expire all but the newest snapshots, or a single one; or tag one, which protects it."""
        self._look()  # a lease may have tagged something
        kept = [*self._timeline.links]
        if not kept:
            return
        if how is Ability.TAG:
            chosen = kept[pick % len(kept)]
            said = f"tag {self._timeline.called(chosen)}"
            self._write(how, f"tag_{len(self._said)}", chosen, said=said)
            return
        free = [snapshot for snapshot in kept if snapshot not in self._timeline.refs.values()]
        newest = list(self._timeline.ancestors(self._timeline.head))[: 1 + pick % 3]
        gone = [free[pick % len(free)]] if one and free else [s for s in free if s not in newest]
        if gone:
            self._write(how, gone, said="expire " + ", ".join(map(self._timeline.called, gone)))

    def evolve(self, how: Ability | None, pick: int) -> None:
        """Add, drop, rename or widen a column, or drop one and add another of the same name."""
        known = self._timeline.columns
        free = [name for name in known if name not in _FIXED]
        if how is Ability.ADD_COLUMN or not free:
            name, kind = f"c{len(self._said)}", TYPES[pick % len(TYPES)]
            self._write(Ability.ADD_COLUMN, name, kind, said=f"add column {name} {kind}")
            return
        name = free[pick % len(free)]
        if how is Ability.RENAME_COLUMN:
            to = f"r{len(self._said)}"
            self._write(how, name, to, said=f"rename column {name} to {to}")
        elif how is Ability.PROMOTE_COLUMN:
            widened = [column for column in free if known[column][1] in PROMOTIONS]
            if widened:
                name = widened[pick % len(widened)]
                kind = PROMOTIONS[known[name][1]]
                self._write(how, name, kind, said=f"promote column {name} to {kind}")
        else:
            self._write(Ability.DROP_COLUMN, name, said=f"drop column {name}")
            if how is None:
                kind = TYPES[pick % len(TYPES)]
                self._write(Ability.ADD_COLUMN, name, kind, said=f"add column {name} {kind} again")

    def relay(self, how: Ability, days: bool) -> None:  # noqa: FBT001
        """Change how the table is partitioned, or its format version."""
        if how is Ability.UPGRADE:
            self._write(how, said="upgrade the format")
        else:
            self._write(how, days, said="partition by day" if days else "remove the partitioning")

    def turn_back(self, how: Ability | None, pick: int) -> None:
        """Make some other snapshot the current one; or drop the table and create it again."""
        kept = [*self._timeline.links]
        if not kept:
            return
        if how is Ability.SET_CURRENT:
            chosen = kept[pick % len(kept)]
            self._write(how, chosen, said=f"set the current snapshot to {self._timeline.called(chosen)}")
            return
        with self._doing("drop the table and create it again"):
            if self._consumer.open is not None:  # its files are gone
                self._consumer.open = replace(self._consumer.open, leased=False)
            self._writer.drop()
            self._writer.create(self._writer.table, COLUMNS, pick % 2 == 0)
            self._look()

    # The consumer.

    def deliver(self, operations: frozenset[Operation], limits: CaptureLimits) -> None:
        """Capture everything, or a part, and commit it."""
        wanted = Wanted(operations=operations, limits=limits, ranges=("id",))
        with self._doing(f"deliver {self._told(wanted)}"):
            if self._take(wanted, supersede=True):
                self._commit()

    def capture(
        self,
        operations: frozenset[Operation],
        limits: CaptureLimits,
        start: int,
        end: int,
        on_gap: OnGap,
        lease: bool,  # noqa: FBT001
        supersede: bool,  # noqa: FBT001
    ) -> None:
        """Capture with any options, and leave it open."""
        wanted = Wanted(operations=operations, limits=limits, start=self._start(start), end=self._end(end))
        due = expected(self._timeline, self._consumer.checkpoint, wanted, self._truth)
        if HistoryExpired in due.must:  # if it is only possible, on_gap would hide whether the error was raised
            wanted = replace(wanted, on_gap=on_gap)
        with self._doing(f"capture {self._told(wanted)}" + " with a lease" * lease + ", superseding" * supersede):
            self._take(wanted, lease=lease, supersede=supersede)

    def commit(self) -> None:
        """Commit the open capture, if there is one."""
        if self._consumer.open is not None:
            with self._doing("commit"):
                self._commit()

    def abandon(self) -> None:
        """Abandon the open capture, if there is one."""
        if self._consumer.open is not None:
            with self._doing("abandon"):
                self._abandon()

    def collect(self) -> None:
        """Collect garbage; an open capture stays."""
        with self._doing("collect garbage"):
            self._collect()

    def crash(self, what: str, nth: int, action: str, lease: bool) -> None:  # noqa: FBT001
        """Crash or fail at the N-th failpoint of an action, and continue as a new process would."""
        if what in {"commit", "abandon"} and (self._consumer.open is None or self._consumer.is_open_stale):
            what = "capture"
        wanted = Wanted(operations=_EVERYTHING)
        due = expected(self._timeline, self._consumer.checkpoint, wanted, self._truth)
        if what == "capture" and due.errors:
            return
        with self._doing(f"{action} at failpoint {nth} of {what}" + " with a lease" * (lease and what == "capture")):
            errand = Errand((self._writer.table,), self._consumer.name, wanted, lease)
            self._die(_WORK[what], errand, f"*:{nth}:{action}")
            self._look()
            self._recover(due)

    def teardown(self) -> None:
        """Let the consumer catch up, and check that it has everything and that nothing is left behind."""
        try:
            if not self._failed:
                with self._doing("catch up and clean up"):
                    self._catch_up()
                    self._check_clean()
        finally:
            self._stack.close()
            if self._writer.table:
                self._writer.drop()
            self._writer.table = ""

    # Running events, and recording the history.

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Add an event to the history; attach the whole history to an error as a note."""
        self._said.append(what)
        try:
            yield
        except Exception as error:
            self._failed = True
            steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(self._said))
            error.add_note(f"The history:\n{steps}")
            raise

    def _write(self, how: Ability, *arguments: Any, said: str) -> None:
        if how not in self._writer.abilities:
            return
        with self._doing(said):
            getattr(self._writer, how.value)(*arguments)
            self._look()

    def _look(self) -> None:
        """Read the table's new metadata."""
        name = self._name
        new = self._timeline.see(self._lake.catalog(name.catalog).load(name).metadata)
        made = [f"{self._timeline.called(snapshot)} {self._timeline.operations[snapshot]}" for snapshot in new]
        if made:
            self._said[-1] += f" -> {', '.join(made)}"

    @property
    def _name(self) -> TableName:
        return self._lake.parse(self._writer.table)

    def _record(self, day: int) -> Record:
        """Return a new row: a new id, and any values, some of them null."""
        self._made += 1
        others = {
            name: None if (self._made + column_id) % 5 == 0 else _VALUES[kind](self._made)
            for name, (column_id, kind) in self._timeline.columns.items()
            if name not in _FIXED
        }
        return {"id": self._made, "day": day, **others}

    def _truth(self, snapshot_id: int) -> Rows:
        """Return the rows at a snapshot, by time travel."""
        key = (self._timeline.uuid, snapshot_id)
        if key not in self._truths:
            self._truths[key] = rows_at(self._lake, self._writer.table, snapshot_id)
        return self._truths[key]

    def _now(self, rows: Rows) -> Rows:
        """Return rows with the current columns of the table."""
        return projected(rows, [column_id for column_id, _ in self._timeline.columns.values()])

    # Requests to the library, and their expected results.

    def _reopen(self) -> None:
        """Drop everything in memory, as a new process would."""
        self._library = ExitStack()
        self._stack.callback(self._library.close)
        self._captures: Captures = self._library.enter_context(open_captures(self._writer.settings))

    def _start(self, pick: int) -> str | None:
        """Choose where to begin without a checkpoint: usually at the beginning."""
        kept = [*self._timeline.links]
        if self._consumer.checkpoint is not None or pick >= len(kept):
            return None
        return str(kept[pick])

    def _end(self, pick: int) -> str | None:
        """Choose where to end: usually at the newest snapshot, or at one before it."""
        checkpoint = self._consumer.checkpoint
        if checkpoint is None:
            return None
        steps = self._timeline.way(checkpoint.table_uuid, checkpoint.snapshot_id, self._timeline.head).steps
        return str(steps[pick]) if pick < len(steps) else None

    def _told(self, wanted: Wanted) -> str:
        parts = [_named(wanted.operations)]
        parts += [str(wanted.limits)] if wanted.limits else []
        parts += [f"from {self._timeline.called(int(wanted.start))}"] if wanted.start else []
        parts += [f"to {self._timeline.called(int(wanted.end))}"] if wanted.end else []
        return ", ".join(parts + ([f"on a gap: {wanted.on_gap}"] if wanted.on_gap is not OnGap.FAIL else []))

    def _take(self, wanted: Wanted, *, lease: bool = False, supersede: bool = False) -> bool:
        """Capture and check the result; return whether a capture is open afterwards."""
        consumer = self._consumer
        due = expected(self._timeline, consumer.checkpoint, wanted, self._truth)
        if consumer.open is not None and not supersede:
            due = Expected(must=(ConcurrentCapture,))
        try:
            report = self._captures.capture(
                [self._writer.table], consumer.name, wanted, lease=lease, supersede=supersede
            )
        except CalveError as error:
            if not isinstance(error, due.errors):
                raise
            self._said[-1] += f" -> {type(error).__name__}"
            self._mend(error)
            return False
        demand(not due.must, f"no error, where one of {[error.__name__ for error in due.must]} is due")
        self._adopt(str(report.capture_id), due, lease=lease)
        return True

    def _adopt(self, capture_id: str, due: Expected, *, lease: bool) -> None:
        """Check an open capture, row by row, and record it."""
        stored = next(c for c in self._captures.captures(self._consumer.name) if c.capture_id == capture_id)
        (move,) = stored.moves
        report = self._captures.show(capture_id)
        there = Rows() if move.to.snapshot_id is None else self._truth(move.to.snapshot_id)
        change = checked_change(
            report,
            move.to,
            self._writer.read(report.tables[0]),
            base=self._now(self._consumer.replica if due.base is None else due.base),
            truth=self._now(there),
            leased=lease,
            has_deletes=due.has_deletes,
        )
        self._consumer.opened(change)
        self._said[-1] += f" -> capture to {self._timeline.called(move.to.snapshot_id)}"
        self._said[-1] += f", pending {move.to.pending}" if move.to.pending else ""

    def _mend(self, error: CalveError) -> None:
        """Follow the remedy of an error: start over, or move the checkpoint past what cannot be captured."""
        consumer, table = self._consumer, self._writer.table
        if isinstance(error, ConcurrentCapture) or consumer.checkpoint is None:
            return
        if isinstance(error, ChangeUnsupported):
            stored = self._captures.set_checkpoint(table, consumer.name, "latest", "skipped")
            there = Rows() if self._timeline.head is None else self._truth(self._timeline.head)
            consumer.moved(stored.checkpoint, there)
        else:
            self._captures.reset_checkpoint(table, consumer.name, f"{error.code}: start over")
            consumer.moved(None, Rows())

    def _commit(self) -> None:
        change = self._opened()
        if self._consumer.is_open_stale:
            try:
                self._captures.commit(change.capture_id)
            except ConcurrentCommit:
                self._said[-1] += " -> ConcurrentCommit"
                self._abandon()
                return
            raise AssertionError("a capture was committed although its checkpoint had been moved")
        if change.leased:
            read = self._writer.read(change.report.tables[0])
            demand(read == (change.came, change.gone), "a capture with a lease reads otherwise than at first")
        self._captures.commit(change.capture_id)
        self._captures.commit(change.capture_id)  # changes nothing
        self._consumer.committed(change)
        self._check_checkpoint()

    def _abandon(self) -> None:
        self._captures.abandon(self._opened().capture_id)
        self._consumer.open = None
        self._check_checkpoint()

    def _opened(self) -> CheckedCapture:
        if self._consumer.open is None:
            raise AssertionError("no capture is open")
        return self._consumer.open

    def _collect(self) -> None:
        collected = self._captures.collect_garbage(timedelta(0))
        demand(not any(one.problems for one in collected), f"garbage is left: {collected}")
        if self._consumer.open is not None:
            for table in self._consumer.open.report.tables:
                name = self._lake.parse(str(table.icdc_table))
                demand(self._lake.catalog(name.catalog).exists(name), f"{name} was collected, but is open")

    def _check_checkpoint(self) -> None:
        """Check that the store has the consumer's checkpoint."""
        stored = [found.checkpoint for found in self._captures.checkpoints(self._consumer.name)]
        known = [self._consumer.checkpoint] if self._consumer.checkpoint else []
        demand(stored == known, f"the checkpoint is {stored}, not {known}")

    # Crashes.

    def _die(self, work: Callable[[Captures, Errand], Any], errand: Errand, plan: str) -> None:
        """Run work that is killed in a process of its own, or that fails in this one."""
        self._library.close()
        if plan.endswith(":kill"):
            ended = self._crashes.run(self._writer.settings, work, errand, plan=plan)
            self._said[-1] += "" if ended.killed else " -> it succeeded"
        else:
            failpoints.arm(plan)
            try:
                with open_captures(self._writer.settings) as captures:
                    work(captures, errand)
                    self._said[-1] += " -> it succeeded"
            except FailpointReached as error:
                self._said[-1] += f" -> {error.context['point']}"
            finally:
                failpoints.arm(None)
        self._reopen()

    def _recover(self, due: Expected) -> None:
        """Update the model of the consumer from the store after a crash."""
        consumer = self._consumer
        listed = {stored.capture_id: stored for stored in self._captures.captures(consumer.name)}
        open_ids = [name for name, stored in listed.items() if stored.status is Status.OPEN]
        known = consumer.open
        if known is not None and known.capture_id not in open_ids:
            if listed[known.capture_id].status is Status.COMMITTED:
                consumer.committed(known)
            consumer.open = None
        for new in open_ids:
            if known is None or new != known.capture_id:
                tags = listed[new].artifacts.tags
                self._adopt(new, due, lease=bool(tags))
        self._check_checkpoint()

    # The end.

    def _catch_up(self) -> None:
        """Deliver until the replica equals the table; each round may have to start over first."""
        for _ in range(3):
            if self._take(Wanted(operations=_EVERYTHING), supersede=True):
                self._commit()
            head = self._timeline.head
            there = Rows() if head is None else self._truth(head)
            checkpoint = self._consumer.checkpoint
            if checkpoint is not None and checkpoint.snapshot_id == head and checkpoint.pending is None:
                demand(self._now(self._consumer.replica) == self._now(there), "the copy is not the table")
                return
        raise AssertionError("the consumer does not catch up")

    def _check_clean(self) -> None:
        """Collect garbage, and check that no capture left a table, a tag or a file."""
        self._collect()
        self._look()
        catalog = self._lake.catalog(self._name.catalog)
        namespace = self._writer.settings.capture.namespace
        start = f"{namespace}.{self._name.name}_"
        tables = [name for name in catalog.tables((namespace,)) if name.startswith(start)]
        demand(not tables, f"tables are left: {tables}")
        tags = [name for name in self._timeline.refs if name.startswith("calve_")]
        demand(not tags, f"tags are left: {tags}")
        folder = local_path(catalog.location_for(TableName(catalog.name, (namespace,), "any")))
        if folder is not None:
            files = list(folder.parent.glob(f"{self._name.name}_*"))
            demand(not files, f"files are left: {files}")


def _named(operations: frozenset[Operation]) -> str:
    return "everything" if operations == _EVERYTHING else "+".join(sorted(operations))


@contextmanager
def _lake(writer: Writer) -> Iterator[Lake]:
    lake = Lake(writer.settings)
    try:
        yield lake
    finally:
        lake.close()
