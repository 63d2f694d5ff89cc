"""The use cases about tables: which exist, who reads and writes them, and what their metadata shows."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from calve.capture.inspection.change_map import ChangeMap, Reader, change_map
from calve.capture.inspection.facts import SECONDS, Cells, FactsCache, FactsReader
from calve.capture.inspection.history import ATTEMPT, Intervals, MetadataCache, TableHistory
from calve.capture.inspection.lag_history import (
    EVERY,
    Behind,
    LagSample,
    LagSamples,
    by_consumer,
    sample_of,
    usual_interval,
)
from calve.capture.inspection.lateness import Lateness, lateness
from calve.capture.inspection.periods import DAY, PartitionOf, partitions_by_spec, time_column
from calve.capture.lag import Lag
from calve.capture.model import Operation, StoredCapture, StoredCheckpoint
from calve.capture.ports import Clock
from calve.capture.rights import CaptureCaller, ConsumerRight, Local
from calve.capture.snapshots import RangeSnapshot
from calve.errors import CalveError, RequestInvalid, TableMissing
from calve.lake import CurrentRights, Lake, Right, TableName, TableRights, all_open, no_table
from calve.namespaces import workflow_of

_READING = 0.12
"""How many seconds a list of tables may spend on reading metadata that is not cached."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a stream delivers to."""

    stream: str
    """The workflow and the step: ``workflow/step``."""
    table: TableName
    delivered_at: datetime


@dataclass(frozen=True, slots=True)
class CaptureDelivery:
    """What one attempt wrote to one table for a capture."""

    stream: str
    """The workflow and the step: ``workflow/step``."""
    attempt: str
    """Its key, which is in the summaries of the snapshots that it wrote."""
    table: TableName
    status: str
    """The status of its branch: staged, held, published or discarded."""
    changed_at: datetime


class ReaderState(Protocol):
    """Stores checkpoints and captures."""

    def checkpoints(self, consumer: str | None = None) -> list[StoredCheckpoint]:
        """Return every checkpoint, or one consumer's, ordered by consumer and table."""
        ...

    def checkpoints_of(self, table: TableName) -> list[StoredCheckpoint]:
        """Return the checkpoints of all consumers of a table."""
        ...

    def open_captures(self) -> list[StoredCapture]:
        """Return the captures that are open."""
        ...

    def latest_capture(self, consumer: str) -> StoredCapture | None:
        """Return the newest capture of a consumer that was not abandoned."""
        ...


class TargetState(Protocol):
    """Stores which tables were delivered to."""

    def targets(self) -> list[Target]:
        """Return the tables that streams deliver to."""
        ...

    def of_capture(self, capture_id: str) -> list[CaptureDelivery]:
        """Return what was written for a capture, oldest first."""
        ...


class Watches(Protocol):
    """Returns which tables triggers watch."""

    def __call__(self) -> Iterable[tuple[str, TableName]]:
        """Return workflows, each with a table that a trigger of it watches."""
        ...


@dataclass(frozen=True, slots=True)
class TableUse:
    """Who reads and writes a table, as far as the caller may see."""

    table: TableName
    consumers: tuple[str, ...] = ()
    written_by: tuple[str, ...] = ()
    """Streams: ``workflow/step``."""
    watched_by: tuple[str, ...] = ()
    """Workflows."""
    steps: tuple[str, ...] = ()
    """Steps that have read it, whether or not they captured it: ``workflow/step``."""

    @property
    def read_by(self) -> tuple[str, ...]:
        """The workflows of the consumers, those that watch it, and those whose steps have read it."""
        return tuple(sorted({*map(workflow_of, (*self.consumers, *self.steps)), *self.watched_by}))

    def with_steps(self, read: Iterable[str], written: Iterable[str]) -> "TableUse":
        """Return this with the steps that have read or written the table."""
        return replace(self, steps=tuple(sorted(read)), written_by=tuple(sorted({*self.written_by, *written})))


@dataclass(frozen=True, slots=True)
class TableServices:
    """What reports about tables need: the lake, the state of captures and deliveries, and what triggers watch."""

    lake: Lake
    readers: ReaderState
    targets: TargetState
    watches: Watches
    samples: LagSamples
    clock: Clock
    rights: CurrentRights = all_open
    metadata: MetadataCache = field(default_factory=MetadataCache)
    facts: FactsCache = field(default_factory=FactsCache)
    intervals: Intervals = field(default_factory=Intervals)


@dataclass(frozen=True, slots=True)
class Tables:
    """Reports on the tables that its caller may see; for them, no other table exists."""

    services: TableServices
    caller: CaptureCaller = field(default_factory=Local)

    def for_caller(self, caller: CaptureCaller) -> "Tables":
        """Return the same for a caller who may see only some tables."""
        return Tables(self.services, caller)

    def short(self, table: TableName) -> str:
        """Return the name of a table as a user of the default catalog writes it."""
        return table.short(self.services.lake.default_catalog)

    def known(self) -> list[TableUse]:
        """Return the names of the tables with consumers, captures, deliveries or triggers, in order."""
        rights = self._rights()
        uses = self._uses()
        return [uses[table] for table in sorted(uses) if self._sees(rights, table)]

    def all(self, namespace: str | None = None) -> list[TableUse]:
        """Return all tables of the catalogs, or of one namespace, by name; without those that captures created.

        Raises:
            LakeError: a catalog cannot be reached.
        """
        lake, rights, uses = self.services.lake, self._rights(), self._uses()
        made = (lake.settings.capture.namespace,)
        found = {
            TableName(name, tuple(levels), last)
            for name in lake.catalog_names
            for levels, last in _listed(lake, name, namespace)
        }
        return [
            uses.get(table, TableUse(table))
            for table in sorted(found)
            if table.namespace != made and self._sees(rights, table)
        ]

    def may_see(self) -> Callable[[TableName], bool]:
        """Return a function that tells whether the caller may see a table."""
        return partial(self._sees, self._rights())

    def newest_samples(self) -> list[LagSample]:
        """Return how far consumers were behind in the newest samples, as far as the caller may see."""
        return [one for one in self.services.samples.newest(self.now() - _RECENT) if self._reads(one.consumer)]

    def use_of(self, name: TableName) -> TableUse:
        """Return who reads and writes a table."""
        return self._uses().get(name, TableUse(name))

    def load(self, table: str) -> TableHistory:
        """Return a table that the caller may see.

        Raises:
            TableMissing: it does not exist, or the caller may not see it.
        """
        name = self.services.lake.parse(table)
        rights = self._rights()
        if not self._sees(rights, name):
            raise no_table(name)
        try:
            return self.services.metadata.load(self.services.lake, name)
        except TableMissing as error:
            if rights.is_closed:
                raise no_table(name) from error  # the catalog's answer names other tables
            raise

    def histories(self, names: Iterable[TableName], seconds: float = _READING) -> dict[TableName, TableHistory]:
        """Return the tables with these names, as many as can be read in some time; without unreadable ones.

        Tables that were never requested from the catalog are read first, then those requested longest ago; for the
        others, the cached state is returned.
        """
        metadata, until = self.services.metadata, time.monotonic() + seconds
        found: dict[TableName, TableHistory | None] = {name: metadata.known(name) for name in names}
        for name in sorted(found, key=metadata.looked_at):
            found[name] = None
            with suppress(CalveError):
                found[name] = metadata.load(self.services.lake, name)
            if time.monotonic() > until:
                break
        return {name: table for name, table in found.items() if table is not None}

    def deliveries(self, capture_id: str) -> list[tuple[CaptureDelivery, int | None]]:
        """Return what was written for a capture, each with its snapshot of ``main``, if it is known and not expired."""
        sees = self.may_see()
        found = self.services.targets.of_capture(capture_id)
        seen = [one for one in found if self._reads(one.stream) and sees(one.table)]
        tables = self.histories({one.table for one in seen if one.status == _PUBLISHED})
        return [(one, _snapshot_of(one, tables.get(one.table))) for one in seen]

    def lag(self, table: TableHistory) -> list[Lag]:
        """Return how far the consumers of a table are behind."""
        found = self.services.readers.checkpoints_of(table.name)
        return [self._lag(table, stored) for stored in found if self._reads(stored.consumer)]

    def lag_history(self, table: TableHistory, consumer: str | None, days: int) -> dict[str, list[LagSample]]:
        """Return how far the consumers of a table were behind in the last days, oldest first; about 400 samples each.

        Raises:
            AccessError: the caller may not read the consumer.
        """
        if consumer is not None:
            self.caller.require(ConsumerRight.READ, consumer)
        now = self.now()
        step = max(1, days * DAY // _POINTS // EVERY) * EVERY
        found = by_consumer(self.services.samples.samples(table.name, now - days * DAY, step))
        return {
            name: some for name, some in found.items() if (consumer is None or name == consumer) and self._reads(name)
        }

    def behind(self) -> list[Behind]:
        """Return the consumers that were behind in the newest samples, ordered by when their history expires."""
        rights, now = self._rights(), self.now()
        newest = [one for one in self.services.samples.newest(now - _RECENT) if one.is_behind]
        seen = [one for one in newest if self._reads(one.consumer) and self._sees(rights, one.table)]
        until, known = time.monotonic() + _READING, self.services.intervals
        found = [
            Behind(one, known.of(one.table, one.current_at, self._interval if time.monotonic() < until else None), now)
            for one in seen
        ]
        return sorted(found, key=_urgency)

    def take_samples(self) -> int:
        """Store how far all consumers are behind now; return how many there are."""
        by_table: dict[TableName, list[StoredCheckpoint]] = {}
        for one in self.services.readers.checkpoints():
            by_table.setdefault(one.table, []).append(one)
        found = [sample for name, readers in by_table.items() for sample in self._samples(name, readers)]
        self.services.samples.add(found)
        return len(found)

    def _samples(self, name: TableName, readers: Sequence[StoredCheckpoint]) -> list[LagSample]:
        """Return how far the consumers of a table are behind now; the table is loaded once."""
        now = self.now()
        try:
            table = self.services.metadata.load(self.services.lake, name)
        except CalveError as error:
            lost = [Lag(one.consumer, str(name), one.checkpoint.snapshot_id, error=error.code) for one in readers]
            return [sample_of(one, lag, None, now) for one, lag in zip(readers, lost, strict=True)]
        return [sample_of(one, self._lag(table, one), table, now) for one in readers]

    def _interval(self, name: TableName) -> int | None:
        try:
            return usual_interval(self.services.metadata.load(self.services.lake, name))
        except CalveError:
            return None

    def now(self) -> int:
        """Return the time."""
        return int(self.services.clock().timestamp() * 1000)

    def changes(
        self, table: TableHistory, consumer: str | None, commits: slice, partitions: slice, seconds: float = SECONDS
    ) -> ChangeMap:
        """Return which commits touched which partitions, and how far a consumer has processed them.

        Args:
            table: the table.
            consumer: the consumer; None: everything counts as processed.
            commits: which commits, counted from the newest.
            partitions: which, counted from the newest that these commits touched.
            seconds: how long to read what is not cached.

        Raises:
            AccessError: the caller may not read the consumer.
        """
        if consumer is not None:
            self.caller.require(ConsumerRight.READ, consumer)
        steps = table.commits[commits]
        facts = self._facts(table, steps, None, partitions_by_spec(table.source), seconds)
        reader = None if consumer is None else self.reader(table, consumer)
        return change_map(steps, facts, reader, partitions)

    def reader(self, table: TableHistory, consumer: str) -> Reader:
        """Return the progress of a consumer in a table."""
        readers = self.services.readers
        stored = [one for one in readers.checkpoints_of(table.name) if one.consumer == consumer]
        committed = stored[0].checkpoint if stored else None
        if committed is not None and committed.table_uuid != table.source.uuid:
            committed = None  # of a dropped table: this one has not been processed
        latest = readers.latest_capture(consumer)
        asked = latest.document.get("asked", {}).get("operations", []) if latest else []
        operations = frozenset(Operation(one) for one in asked) or frozenset({Operation.APPEND})
        moves = latest.moves if latest is not None and latest.status == "open" else ()
        opened = next((move.to for move in moves if move.table == table.name), None)
        return Reader(committed, opened, operations)

    def lateness(
        self, table: TableHistory, column: str | None, window_days: int, lookback: int
    ) -> tuple[Lateness, int]:
        """Return how late the rows of the last days arrived, and how many commits have not been read yet.

        Raises:
            RequestInvalid: neither the partitions nor the column show when events happened.
        """
        field_id, partition_of = None, partitions_by_spec(table.source)
        if column is not None:
            field_id, partition_of = time_column(table.source, column)
        since = self.now() - window_days * DAY
        steps = [step for step in table.commits if step.timestamp_ms >= since]
        facts = self._facts(table, steps, field_id, partition_of)
        found = lateness(steps, facts, lookback)
        if column is None and found.unknown_rows and not found.rows:
            raise RequestInvalid(
                f"The partitions of {table.name} do not show when events happened.",
                remedy="Name a column of dates or timestamps: ?column=…",
                table=str(table.name),
            )
        return found, sum(step.snapshot_id not in facts for step in steps)

    def _facts(
        self,
        table: TableHistory,
        steps: Sequence[RangeSnapshot],
        field_id: int | None,
        partition_of: PartitionOf,
        seconds: float = SECONDS,
    ) -> dict[int, Cells]:
        cache, key = self.services.facts, (table.source.uuid, field_id)
        known = cache.known(key)
        if all(step.snapshot_id in known for step in steps):
            return known
        metrics = frozenset() if field_id is None else frozenset({field_id})
        found = FactsReader(table.loaded, partition_of, metrics, seconds).read(steps, known)
        cache.put(key, found)
        return known | found

    def _uses(self) -> dict[TableName, TableUse]:
        services = self.services
        consumers = [(one.consumer, one.table) for one in services.readers.checkpoints()]
        consumers += [(one.consumer, move.table) for one in services.readers.open_captures() for move in one.moves]
        read = _by_table(pair for pair in consumers if self._reads(pair[0]))
        written = _by_table((one.stream, one.table) for one in services.targets.targets() if self._reads(one.stream))
        watched = _by_table(pair for pair in services.watches() if self._reads(pair[0]))
        return {
            table: TableUse(table, *(tuple(sorted(found.get(table, ()))) for found in (read, written, watched)))
            for table in {*read, *written, *watched}
        }

    def _lag(self, table: TableHistory, stored: StoredCheckpoint) -> Lag:
        name = self.short(table.name)
        try:
            return table.backlog.lag_of(stored, name, self.services.clock())
        except CalveError as error:
            return Lag(stored.consumer, name, stored.checkpoint.snapshot_id, error=error.code)

    def _reads(self, consumer: str) -> bool:
        return self.caller.may(ConsumerRight.READ, consumer)

    def _rights(self) -> TableRights:
        return all_open() if isinstance(self.caller, Local) else self.services.rights()

    def _sees(self, rights: TableRights, table: TableName) -> bool:
        return rights.allow_within(self.caller.namespaces(ConsumerRight.READ), Right.READ, table)


_POINTS = 400
"""The maximum number of samples shown for each consumer."""
_RECENT = 3 * EVERY
"""The maximum age of a sample that counts as current."""
_NEVER = 2**63
_PUBLISHED = "published"
"""The status of a branch that reached ``main``."""


def _urgency(behind: Behind) -> tuple[int, int]:
    expires_in = _NEVER if behind.expires_in is None else behind.expires_in
    return expires_in, -(behind.sample.commits or 0)


def _snapshot_of(delivery: CaptureDelivery, table: TableHistory | None) -> int | None:
    """Return the newest snapshot that an attempt wrote to a table."""
    commits = () if table is None or delivery.status != _PUBLISHED else table.commits
    return next((one.snapshot_id for one in commits if one.summary.get(ATTEMPT) == delivery.attempt), None)


def _listed(lake: Lake, catalog: str, namespace: str | None) -> list[tuple[list[str], str]]:
    opened = lake.catalog(catalog)
    wanted = opened.namespaces() if namespace is None else [tuple(namespace.split("."))]
    names = {name for one in wanted for name in opened.tables(one)}
    split = [(name.split(".")[:-1], name.rpartition(".")[2]) for name in names]
    return [one for one in split if tuple(one[0]) in set(wanted)]


def _by_table(pairs: Iterable[tuple[str, TableName]]) -> dict[TableName, set[str]]:
    found: dict[TableName, set[str]] = {}
    for name, table in pairs:
        found.setdefault(table, set()).add(name)
    return found
