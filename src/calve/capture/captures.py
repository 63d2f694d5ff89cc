"""The use cases of capture: plan, capture, commit, abandon, and maintaining checkpoints."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from shlex import quote
from typing import Any

from calve.capture import artifacts, relations
from calve.capture.artifacts import LeaseTag, NewArtifacts, NewView, snapshots_to_hold
from calve.capture.changes import TableChange, Wanted, find_change
from calve.capture.checkpoints import adoption_of
from calve.capture.lag import Backlog, Lag, Uncommitted, uncommitted
from calve.capture.model import Checkpoint, DeliveredUpTo, Mode, Move, Status, StoredCapture, StoredCheckpoint
from calve.capture.ports import CaptureState, Clock, NewId
from calve.capture.report import CaptureReport, Names, report
from calve.capture.rights import CaptureCaller, ConsumerRight, Local, OfWorkflow, no_capture
from calve.capture.snapshots import CONSUMER, resolve
from calve.capture.source import Source, for_each_path
from calve.errors import (
    CalveError,
    CaptureMissing,
    CheckpointMissing,
    ConcurrentCapture,
    FilesLost,
    RequestInvalid,
    TableMissing,
)
from calve.failpoints import reach
from calve.lake import CurrentRights, Lake, LoadedTable, Right, TableName, TableRights, all_open, no_table


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How captures are made in this installation."""

    namespace: str = "icdc"
    lease_max_age: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Collected:
    """What ``gc`` removed of one capture, and what it could not."""

    capture_id: str
    tables: tuple[str, ...]
    files: int
    tags: int
    problems: tuple[str, ...] = ()


class Captures:
    """Captures what changed in Iceberg tables, for consumers that keep checkpoints.

    Consumers and tables that the caller may not use are reported as missing; see ``rights``.
    """

    def __init__(
        self,
        lake: Lake,
        state: CaptureState,
        *,
        clock: Clock,
        new_id: NewId,
        options: CaptureOptions | None = None,
        tables: CurrentRights = all_open,
        caller: CaptureCaller | None = None,
    ) -> None:
        self._lake = lake
        self._state = state
        self._clock = clock
        self._new_id = new_id
        self._options = options or CaptureOptions()
        self._tables = tables
        self._caller = caller or Local()

    def for_caller(self, caller: CaptureCaller) -> "Captures":
        """Return the same captures for a caller who may use only some consumers and tables."""
        return Captures(
            self._lake,
            self._state,
            clock=self._clock,
            new_id=self._new_id,
            options=self._options,
            tables=self._tables,
            caller=caller,
        )

    def for_workflow(self, workflow_id: str) -> "Captures":
        """Return the same captures for the steps and triggers of a workflow."""
        return self.for_caller(OfWorkflow(workflow_id, has_shared=not self._tables().is_closed))

    def plan(self, tables: Sequence[str], consumer: str, wanted: Wanted | None = None) -> CaptureReport:
        """Return what the next capture would contain, without writing anything."""
        wanted = wanted or Wanted()
        self._require(ConsumerRight.READ, consumer, Right.READ, tables)
        changes = [change for change, _ in self._find(tables, consumer, wanted)]
        if wanted.mode not in {Mode.RANGE, Mode.VIEW}:
            for change in changes:
                relations.check_comparable(change)
        return self._report(changes, [Names()] * len(changes), None, consumer, wanted)

    def uncommitted(self, table: str, consumer: str, wanted: Wanted | None = None) -> Uncommitted:
        """Return which snapshots of a table the consumer has not committed; cheaper than a plan, writes nothing.

        Raises:
            CaptureError, LakeError: a capture would be refused.
        """
        self._require(ConsumerRight.READ, consumer, Right.READ, [table])
        stored = self._state.checkpoint(consumer, self._lake.parse(table))
        with _naming(consumer):
            return self._since(table, stored.checkpoint if stored else None, wanted)

    def since(self, table: str, start: Checkpoint | None, wanted: Wanted | None = None) -> Uncommitted:
        """Return the same since a checkpoint that the caller stores itself, as triggers do."""
        self._require(ConsumerRight.READ, self._caller.own_consumer, Right.READ, [table])
        return self._since(table, start, wanted)

    def _since(self, table: str, start: Checkpoint | None, wanted: Wanted | None) -> Uncommitted:
        name = self._lake.parse(table)
        loaded = self._load(name)
        short = name.short(self._lake.default_catalog)
        return uncommitted(Source(loaded), loaded.metadata_location, short, start, wanted or Wanted())

    def capture(
        self,
        tables: Sequence[str],
        consumer: str,
        wanted: Wanted | None = None,
        *,
        key: str | None = None,
        lease: bool = False,
        supersede: bool | str = False,
    ) -> CaptureReport:
        """Capture what changed since the consumer's checkpoints, over all tables or none.

        Args:
            tables: ``namespace.table`` or ``catalog.namespace.table``.
            consumer: the name under which the checkpoints are kept.
            wanted: what to capture; appends into a table by default.
            key: names the request; another request with the same key returns the capture of the first.
            lease: tag the captured snapshots until the commit, so that expiry cannot remove their files.
            supersede: abandon the consumer's open capture instead of failing; with an id, only that capture.
        """
        wanted = wanted or Wanted()
        self._require(ConsumerRight.RUN, consumer, Right.CAPTURE, tables)
        # Before anything else: a retry of a request must get its capture back even if the table has changed since.
        if key is not None and (known := self._state.capture_by_key(consumer, key)) is not None:
            return _reported(self._seen(known))
        if not supersede:
            self._check_none_open(consumer)
        found = self._find(tables, consumer, wanted)
        changes = [change for change, _ in found]
        capture_id = self._new_id()
        work, names = self._work(changes, wanted.mode, capture_id, consumer, lease=lease)
        document = self._report(changes, names, capture_id, consumer, wanted)
        moves = [Move(change.source.name, stored.version if stored else 0, change.to) for change, stored in found]
        # Recorded before anything exists in the lake: a crash from here on leaves nothing that ``gc`` cannot find.
        begun = self._state.begin(capture_id, consumer, key, work.artifacts(), self._clock())
        try:
            age = int(self._options.lease_max_age.total_seconds() * 1000)
            artifacts.make(self._lake, work, tag_age_ms=age)
            self._state.open(capture_id, moves, document.as_json(), supersede=supersede)
        # BaseException: Ctrl-C and a worker's shutdown must not leave files behind either.
        except BaseException:
            with suppress(CalveError):  # what cannot be removed now is recorded for ``gc``
                self._collect(begun)
            raise
        return document

    def commit(self, capture_id: str) -> CaptureReport:
        """Move the checkpoints of a capture, all or none; repeating it changes nothing."""
        self._known(capture_id, ConsumerRight.RUN, Right.CAPTURE)
        stored = self._state.commit(capture_id, self._clock())
        # After the commit: with the leases gone first, a failed commit would leave an open capture whose files can
        # expire.
        artifacts.remove_tags(self._lake, stored.artifacts)
        return _reported(stored)

    def abandon(self, capture_id: str) -> CaptureReport:
        """Abandon a capture: the next one starts from the same checkpoint."""
        self._known(capture_id, ConsumerRight.RUN, Right.READ)
        stored = self._state.abandon(capture_id, self._clock())
        artifacts.remove_tags(self._lake, stored.artifacts)
        return _reported(stored)

    def named(self, tables: Iterable[str]) -> list[str]:
        """Return names of tables as reports contain them."""
        return [self._lake.parse(table).short(self._lake.default_catalog) for table in tables]

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures, or one consumer's, newest first."""
        return self._seen_of(self._state.captures(consumer))

    def part(
        self, after: str | None, consumer: str | None = None, *, limit: int
    ) -> tuple[list[StoredCapture], str | None]:
        """Return the next captures that the caller may see, and the id to continue after; None after the last one.

        Args:
            after: the id of the capture before; None: begin with the newest.
            consumer: only this consumer's.
            limit: how many captures are examined.
        """
        found = self._state.captures_after(after, consumer, limit)
        return self._seen_of(found), found[-1].capture_id if len(found) == limit else None

    def _seen_of(self, found: Iterable[StoredCapture]) -> list[StoredCapture]:
        rights = self._rights()
        return [
            stored for stored in found if stored.document and self._sees(rights, stored.consumer, _tables_of(stored))
        ]

    def stored(self, capture_id: str) -> tuple[StoredCapture, list[dict[str, Any]]]:
        """Return one capture as it is stored, and the moves of checkpoints that its commit made."""
        found = self._known(capture_id, ConsumerRight.READ, Right.READ)
        _reported(found)
        return found, [self._named_move(move) for move in self._state.moves_of(found)]

    def show(self, capture_id: str) -> CaptureReport:
        """Return the report of a capture."""
        return _reported(self._known(capture_id, ConsumerRight.READ, Right.READ))

    def of_request(self, consumer: str, key: str) -> StoredCapture | None:
        """Return the capture that was made for a request key, unless it was abandoned."""
        self._caller.require(ConsumerRight.READ, consumer)
        return self._state.capture_by_key(consumer, key)

    def open_capture(self, consumer: str) -> StoredCapture | None:
        """Return the open capture of a consumer."""
        self._caller.require(ConsumerRight.READ, consumer)
        return self._state.open_capture(consumer)

    def files(self, capture_id: str, *, check: bool = False) -> dict[str, list[dict[str, Any]]]:
        """Return the files that a capture's tables reference, by table; none once they are cleaned up.

        Args:
            capture_id: the capture.
            check: verify that each file still exists.

        Raises:
            FilesLost: with ``check``, if the source has expired files; the message names them.
        """
        stored = self._known(capture_id, ConsumerRight.READ, Right.READ)
        found = {}
        for name, source in self._made(stored).items():
            found[name] = _referenced(source)
            if check:
                _check_there(source, found[name])
        if check and not found:
            raise RequestInvalid(
                f"Capture {capture_id} references no file: it is {stored.document.get('mode', 'unfinished')}, "
                "or has been cleaned up.",
                capture_id=capture_id,
            )
        return found

    def _made(self, stored: StoredCapture) -> dict[str, Source]:
        """Return the tables of a capture that still exist, by name, or by path if they are not registered."""
        if stored.document.get("mode") == Mode.PATH and stored.collected_at is None:
            paths = [file for file in stored.artifacts.files if file[1].endswith(".metadata.json")]
            return {path: Source(self._lake.catalog(catalog).load_at(path)) for catalog, path in paths}
        return {
            name.short(self._lake.default_catalog): self._source(name)
            for name in stored.artifacts.tables
            if self._lake.catalog(name.catalog).exists(name)
        }

    def checkpoints(self, consumer: str | None = None) -> list[StoredCheckpoint]:
        """Return the checkpoints of all consumers, or of one."""
        rights = self._rights()
        found = self._state.checkpoints(consumer)
        return [stored for stored in found if self._sees(rights, stored.consumer, [stored.table])]

    def checkpoint_log(self, consumer: str | None = None) -> list[dict[str, Any]]:
        """Return every move of a checkpoint, and why, oldest first."""
        rights = self._rights()
        moves = self._state.checkpoint_log(consumer)
        seen = (one for one in moves if self._sees(rights, one["consumer"], [self._lake.parse(one["table"])]))
        return [self._named_move(move) for move in seen]

    def _named_move(self, move: dict[str, Any]) -> dict[str, Any]:
        return {**move, "table": self._lake.parse(move["table"]).short(self._lake.default_catalog)}

    def set_checkpoint(self, table: str, consumer: str, to: str, reason: str) -> StoredCheckpoint:
        """Move a checkpoint to a snapshot, tag, branch, time or ``latest``: what is before it counts as processed."""
        _check_reason(reason)
        self._require(ConsumerRight.EDIT, consumer, Right.CAPTURE, [table])
        source = self._source(self._lake.parse(table))
        known = self._state.checkpoint(consumer, source.name)
        move = Move(source.name, known.version if known else 0, source.checkpoint_as_of(resolve(source, to)))
        return self._state.set_checkpoint(consumer, move, reason=reason, now=self._clock())

    def adopt(self, consumer: str, delivered: DeliveredUpTo) -> list[str]:
        """Move checkpoints forward to what was delivered but not recorded; return the tables that were behind.

        This happens after an old backup of the state was restored, or if a capture was abandoned while a late worker
        delivered it. Where the way forward is ambiguous, nothing is moved, and the delivery will be refused.

        Raises:
            ConcurrentCommit: another process moved a checkpoint meanwhile.
        """
        self._require(ConsumerRight.RUN, consumer, Right.CAPTURE, delivered.versions)
        names = {table: self._lake.parse(table) for table in delivered.versions}
        behind = [
            table for table, name in names.items() if self._state.position(consumer, name) < delivered.versions[table]
        ]
        # All or none, here and below: a checkpoint vector with only some tables moved would be a range that nobody
        # captured.
        if not delivered.ends.keys() >= set(behind):
            return []
        found = [
            adoption_of(self._source(names[table]), self._state.checkpoint(consumer, names[table]), delivered)
            for table in behind
        ]
        adoptions = [each for each in found if each is not None]
        if not adoptions or len(adoptions) < len(found):
            return []
        reason = f"capture {delivered.capture_id} was delivered, but its commit was not recorded"
        self._state.adopt(consumer, adoptions, reason=reason, now=self._clock())
        return [names[table].short(self._lake.default_catalog) for table in behind]

    def reset_checkpoint(self, table: str, consumer: str, reason: str) -> None:
        """Delete a checkpoint: the next capture is a first one."""
        _check_reason(reason)
        self._caller.require(ConsumerRight.EDIT, consumer)
        name = self._lake.parse(table)
        is_known = self._state.checkpoint(consumer, name) is not None
        if not (is_known and self._sees(self._rights(), consumer, [name])):
            raise CheckpointMissing(
                f"{consumer} has no checkpoint for {name}.",
                remedy="`calve checkpoint show` lists all.",
                consumer=consumer,
                table=str(name),
            )
        self._state.reset_checkpoint(consumer, name, reason=reason, now=self._clock())

    def lag(self, consumer: str | None = None) -> list[Lag]:
        """Return how far every consumer is behind each of its tables, or one consumer."""
        stored = self.checkpoints(consumer)
        by_table: dict[TableName, list[StoredCheckpoint]] = {}
        for one in stored:
            by_table.setdefault(one.table, []).append(one)
        found = {
            (lag.consumer, name): lag
            for name, loaded in self._lake.load_all(by_table)
            for lag in self._lags(by_table[name], loaded)
        }
        return [found[one.consumer, one.table] for one in stored]

    def require_table(self, table: str, right: Right, consumer: str) -> None:
        """Check that the caller may use a table in a certain way for a consumer.

        Raises:
            TableMissing: they may not.
        """
        self._require(ConsumerRight.READ, consumer, right, [table])

    def collect_garbage(self, grace: timedelta = timedelta(hours=1)) -> list[Collected]:
        """Remove what closed captures, and those that crashed longer ago than ``grace``, left behind.

        Only recorded artifacts are removed: tables are dropped, never purged, and the files are the
        capture's own metadata.
        """
        return [self._collect(stored) for stored in self._state.garbage(self._clock() - grace)]

    def _require(self, permission: ConsumerRight, consumer: str, right: Right, tables: Iterable[str]) -> None:
        """Check the caller's permissions on a consumer and its tables, before anything is read."""
        self._caller.require(permission, consumer)
        namespace, rights = self._caller.namespace(permission, consumer), self._rights()
        for table in tables:
            rights.require(namespace, right, self._lake.parse(table))

    def _rights(self) -> TableRights:
        """Return the current rights on tables; a local caller has them all, without a query."""
        return all_open() if isinstance(self._caller, Local) else self._tables()

    def _known(self, capture_id: str, permission: ConsumerRight, right: Right) -> StoredCapture:
        """Return a capture on which the caller has both permissions.

        Raises:
            CaptureMissing: there is none, or the caller may not see it.
            AccessError: the caller may see it, but lacks the permission.
        """
        stored = self._seen(self._state.capture(capture_id))
        self._caller.require(permission, stored.consumer)
        namespace, rights = self._caller.namespace(permission, stored.consumer), self._rights()
        for table in _tables_of(stored):
            rights.require(namespace, right, table)
        return stored

    def _seen(self, stored: StoredCapture) -> StoredCapture:
        if not self._sees(self._rights(), stored.consumer, _tables_of(stored)):
            raise no_capture(stored.capture_id)
        return stored

    def _sees(self, rights: TableRights, consumer: str, tables: Iterable[TableName]) -> bool:
        """Tell whether the caller may see a consumer's state of some tables."""
        if not self._caller.may(ConsumerRight.READ, consumer):
            return False
        namespace = self._caller.namespace(ConsumerRight.READ, consumer)
        return all(rights.allow(namespace, Right.READ, table) for table in tables)

    def _check_none_open(self, consumer: str) -> None:
        """Fail before the work if ``open`` would fail after it."""
        stored = self._state.open_capture(consumer)
        if stored is not None:
            raise ConcurrentCapture(
                f"{consumer} has capture {stored.capture_id} open since {stored.created_at:%Y-%m-%d %H:%M:%SZ}.",
                remedy=f"`calve commit {stored.capture_id}`, `calve abandon {stored.capture_id}`, or --supersede it.",
                capture_id=stored.capture_id,
                consumer=consumer,
            )

    def _find(
        self, tables: Sequence[str], consumer: str, wanted: Wanted
    ) -> list[tuple[TableChange, StoredCheckpoint | None]]:
        names = [self._lake.parse(table) for table in tables]
        if not names or len(set(names)) != len(names):
            raise RequestInvalid("A capture needs at least one table, and each table once.", tables=list(tables))
        if not consumer.strip():
            raise RequestInvalid("A capture requires a consumer, which keeps the checkpoint.")
        sources = [Source(loaded) for loaded in self._load_all(names)]  # one moment for all, as near as can be
        found = []
        for source in sources:
            stored = self._state.checkpoint(consumer, source.name)
            with _naming(consumer):
                found.append((find_change(source, stored.checkpoint if stored else None, wanted), stored))
        return found

    def _source(self, name: TableName) -> Source:
        return Source(self._load(name))

    def _load(self, name: TableName) -> LoadedTable:
        return self._load_all([name])[0]

    def _load_all(self, names: Sequence[TableName]) -> list[LoadedTable]:
        found = dict(self._lake.load_all(names))
        return [self._loaded(name, found[name]) for name in names]

    def _loaded(self, name: TableName, found: LoadedTable | CalveError) -> LoadedTable:
        if isinstance(found, TableMissing) and self._rights().is_closed:
            raise no_table(name) from found  # the catalog's answer names other tables
        if isinstance(found, CalveError):
            raise found
        return found

    def _work(
        self, changes: Sequence[TableChange], mode: Mode, capture_id: str, consumer: str, *, lease: bool
    ) -> tuple[NewArtifacts, list[Names]]:
        """Return what the capture will create, and the names of the relations."""
        tags = _tags(changes, capture_id, mode) if lease else []
        if mode is Mode.RANGE:
            return NewArtifacts(tags), [Names()] * len(changes)
        number = 1 + self._state.last_number(consumer)
        suffix = f"{number}_{capture_id}"  # and a place, since tables of two namespaces may share a name
        bases = [self._base(change, f"{suffix}_{n}" if n else suffix) for n, change in enumerate(changes)]
        if mode is Mode.VIEW:
            views = [self._view(change, base) for change, base in zip(changes, bases, strict=True)]
            called = [view.name.short(self._lake.default_catalog) for view in views]
            return NewArtifacts(tags, views=views), [Names(icdc_table=name, relation=name) for name in called]
        made = [
            relations.make(change, self._maker(change, base, capture_id, consumer))
            for change, base in zip(changes, bases, strict=True)
        ]
        tables = [table for new_tables, _ in made for table in new_tables]
        names = [found for _, found in made]
        if mode is Mode.PATH:
            names = [relations.by_path(new_tables, found, self._lake.default_catalog) for new_tables, found in made]
        return NewArtifacts(tags, tables, is_registered=mode is Mode.TABLE), names

    def _base(self, change: TableChange, suffix: str) -> TableName:
        source = change.source.name
        plain = re.sub(r"\W", "_", source.name)  # so that no engine needs quotes around it
        return TableName(source.catalog, (self._options.namespace,), f"{plain}_{suffix}")

    def _view(self, change: TableChange, name: TableName) -> NewView:
        path = self._lake.catalog(name.catalog).view_file(name)
        return NewView(name, path, relations.view_sql(change), change.source.schema)

    def _maker(self, change: TableChange, base: TableName, capture_id: str, consumer: str) -> relations.Maker:
        start = change.start
        return relations.Maker(
            base=base,
            location=self._lake.catalog(base.catalog).location_for(base),
            properties={
                "calve.capture-id": capture_id,
                "calve.consumer": consumer,
                "calve.source-table": str(change.source.name),
                "calve.source-uuid": change.source.uuid,
                "calve.from-snapshot-id": str(start.snapshot_id if start else None),
                "calve.from-sequence-number": str(start.sequence_number if start else 0),
                "calve.to-snapshot-id": str(change.to.snapshot_id),
            },
            now_ms=int(self._clock().timestamp() * 1000),
            default_catalog=self._lake.default_catalog,
        )

    def _report(
        self,
        changes: Sequence[TableChange],
        names: Sequence[Names],
        capture_id: str | None,
        consumer: str,
        wanted: Wanted,
    ) -> CaptureReport:
        return report(
            changes,
            names,
            capture_id=capture_id,
            consumer=consumer,
            mode=wanted.mode,
            default_catalog=self._lake.default_catalog,
            asked=wanted.as_json(),
        )

    def _lags(self, readers: Iterable[StoredCheckpoint], loaded: LoadedTable | CalveError) -> Iterator[Lag]:
        """Yield how far the consumers of one table are behind it."""
        backlog: Backlog | None = None
        for stored in readers:
            table = stored.table.short(self._lake.default_catalog)
            try:
                if isinstance(loaded, CalveError):
                    raise loaded
                backlog = backlog or Backlog(Source(loaded))
                yield backlog.lag_of(stored, table, self._clock())
            except CalveError as error:
                yield Lag(stored.consumer, table, stored.checkpoint.snapshot_id, error=error.code)

    def _collect(self, stored: StoredCapture) -> Collected:
        if stored.status is Status.WRITING:  # its writer may be alive: it must not open what is removed here
            self._state.abandon(stored.capture_id, self._clock())
        removal = artifacts.remove(self._lake, stored.artifacts)
        if not removal.problems:
            self._state.mark_collected(stored.capture_id, self._clock())
            reach("gc.recorded")
        return Collected(stored.capture_id, tuple(removal.tables), removal.files, removal.tags, tuple(removal.problems))


@contextmanager
def _naming(consumer: str) -> Iterator[None]:
    """Put a consumer's name into the commands that errors offer."""
    try:
        yield
    except CalveError as error:
        error.remedy = error.remedy.replace(CONSUMER, quote(consumer))
        raise


def _reported(stored: StoredCapture) -> CaptureReport:
    if not stored.document:
        raise CaptureMissing(
            f"Capture {stored.capture_id} was never finished.",
            remedy="Take a new capture; `calve gc` removes what this one left behind.",
            capture_id=stored.capture_id,
        )
    return replace(CaptureReport.from_json(stored.document), status=stored.status.value)


def _tables_of(stored: StoredCapture) -> list[TableName]:
    return [move.table for move in stored.moves]


def _tags(changes: Iterable[TableChange], capture_id: str, mode: Mode) -> list[LeaseTag]:
    if mode is Mode.VIEW:
        raise RequestInvalid(
            "A lease cannot protect a view: expiry still removes the history of the source, which the view reads.",
            remedy="Use mode table with --lease.",
        )
    return [
        LeaseTag(change.source.name, f"calve_{capture_id}_{number}", snapshot_id)
        for change in changes
        for number, snapshot_id in enumerate(snapshots_to_hold(change))
    ]


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise RequestInvalid("Moving a checkpoint by hand needs a reason, which is recorded.")


def _referenced(source: Source) -> list[dict[str, Any]]:
    if source.head is None:
        return []
    return [
        {
            "path": entry.file_path,
            "content": ("data", "position deletes", "equality deletes")[entry.content],
            "records": entry.record_count,
            "bytes": entry.file_size_in_bytes,
            "sequence_number": entry.sequence_number,
        }
        for manifest in source.read(source.manifest_list(source.head))
        for entry in manifest.entries()
    ]


def _check_there(source: Source, files: Sequence[dict[str, Any]]) -> None:
    there = for_each_path(source.files.exists, [file["path"] for file in files])
    lost = [file["path"] for file, is_there in zip(files, there, strict=True) if not is_there]
    if lost:
        raise FilesLost(
            f"{len(lost)} of {len(files)} files of {source.name} are gone, first {lost[0]}: the source was compacted "
            "or changed, and then its snapshots were expired.",
            remedy="Abandon the capture; the next one needs `--on-gap`. Captures with --lease are safe from this.",
            table=str(source.name),
            paths=lost,
        )
