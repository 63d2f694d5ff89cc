"""Checks of captures: what they register, the rows that they select, leases, expiry, and dropping them."""

from datetime import timedelta

from calve.capture import CHANGES, CaptureReport, Mode, TableReport, Wanted
from calve.conformance.model import Skipped
from calve.conformance.scratch_table import Rows, ScratchTable, changed_rows, rows_by_pyiceberg, rows_by_spark
from calve.conformance.workspace import CONSUMER, Workspace, demand
from calve.errors import HistoryExpired, ProofFailed, TableIsView, TableMissing
from calve.lake import Metadata, TableName

_LATE = "calve.proof/late"
"""A consumer that falls behind."""
_LINEAGE = "calve.proof/lineage"
"""A consumer of the table of format v3."""
_DROPPED = "calve.proof/dropped"
"""A consumer of the whole table."""
_EVERYTHING = Wanted(operations=frozenset(CHANGES))


def capture(workspace: Workspace) -> str:
    """Plan and take a first capture, and look for what it wrote."""
    planned = _only(workspace.captures.plan([workspace.events.identifier], CONSUMER))
    taken = take(workspace)
    table = _only(taken)
    same = (planned.files, planned.records) == (table.files, table.records)
    demand(same, f"{planned.records} rows were planned, but {table.records} captured.")
    name = icdc_table(workspace, table)
    demand(workspace.catalog.exists(name), f"{name} was registered, but the catalog says that it does not exist.")
    listed = workspace.captures.files(str(taken.capture_id), check=True)
    return f"{table.records} rows in {sum(map(len, listed.values()))} files"


def read_by_pyiceberg(workspace: Workspace) -> str:
    """Read the registered table."""
    name = icdc_table(workspace, _only(opened(workspace)))
    return _expect(rows_by_pyiceberg(workspace.catalog, name), workspace.events.truth, str(name))


def read_by_spark(workspace: Workspace) -> str | Skipped:
    """Read the relation."""
    if workspace.spark is None:
        return Skipped("there is no Spark")
    relation = _only(opened(workspace)).relation
    return _expect(rows_by_spark(workspace.spark, relation), workspace.events.truth, str(relation))


def commit(workspace: Workspace) -> str:
    """Commit the capture twice, and look for more."""
    capture_id = str(opened(workspace).capture_id)
    workspace.captures.commit(capture_id)
    workspace.captures.commit(capture_id)
    planned = _only(workspace.captures.plan([workspace.events.identifier], CONSUMER))
    demand(not planned.changed, f"After the commit, {planned.records} rows are planned again.")
    return "nothing is captured twice"


def capture_changes(workspace: Workspace) -> str:
    """Update and delete rows, and capture both."""
    events = workspace.events
    catch_up(workspace)
    before = events.truth
    events.update({2, 14}, "changed")
    events.delete({5, 17})
    table = _only(take(workspace, _EVERYTHING))
    came, gone = changed_rows(events, table, workspace.lake.parse)
    _expect(came, events.truth - before, "the new rows of the capture")
    _expect(gone, before - events.truth, "the removed rows of the capture")
    workspace.captures.commit(str(opened(workspace).capture_id))
    return f"{table.exactness}: {came.total()} new and {gone.total()} removed rows"


def capture_by_lineage(workspace: Workspace) -> str | Skipped:
    """Update and delete rows of a table of format v3, and capture both."""
    if workspace.spark is None:
        return Skipped("PyIceberg does not write format v3, and there is no Spark")
    table = workspace.table("lineage")
    table.create(3)
    table.append(range(1, 10), "first")
    catch_up(workspace, _LINEAGE, table)
    before = table.truth
    table.update({2}, "changed")
    table.delete({5})
    taken = take(workspace, _EVERYTHING, lease=True, consumer=_LINEAGE, table=table)
    came, gone = changed_rows(table, _only(taken), workspace.lake.parse)
    _expect(came, table.truth - before, "the new rows of the capture")
    _expect(gone, before - table.truth, "the removed rows of the capture")
    workspace.captures.commit(str(taken.capture_id))
    demand(not _tags(table.metadata()), "The capture was committed, but its lease is still there.")
    return f"{_only(taken).exactness}: {came.total()} new and {gone.total()} removed rows"


def lease(workspace: Workspace) -> str:
    """Take a capture with a lease, and abandon it."""
    events = workspace.events
    catch_up(workspace)
    events.append(range(19, 22), "leased")
    taken = take(workspace, lease=True)
    held = _tags(events.metadata())
    demand(_only(taken).to_snapshot_id in held.values(), "The capture has a lease, but the table has no tag for it.")
    workspace.captures.abandon(str(taken.capture_id))
    left = _tags(events.metadata())
    demand(not left, f"The capture was abandoned, but these tags are left: {', '.join(left)}.")
    return ", ".join(held)


def expire(workspace: Workspace) -> str:
    """Expire all snapshots that nothing holds, and read what the lease holds."""
    events = workspace.events
    catch_up(workspace)
    catch_up(workspace, _LATE)
    added = events.append(range(30, 36), "expired")
    lost = events.metadata()["current-snapshot-id"]
    added += events.append(range(36, 42), "held")
    taken = take(workspace, lease=True)
    events.delete(range(30, 42))
    how = events.expire()
    kept = {snapshot["snapshot-id"] for snapshot in events.metadata()["snapshots"]}
    demand(lost not in kept, "Expiry removed no snapshot.")
    demand(_only(taken).to_snapshot_id in kept, "Expiry removed the snapshot that a lease holds.")
    name = icdc_table(workspace, _only(taken))
    _expect(rows_by_pyiceberg(workspace.catalog, name), added, "the capture with the lease, after expiry,")
    workspace.captures.commit(str(taken.capture_id))
    demand(not _tags(events.metadata()), "The capture was committed, but its lease is still there.")
    return f"by {how}"


def find_gap(workspace: Workspace) -> str:
    """Plan a capture from a checkpoint whose history has expired."""
    try:
        found = _only(workspace.captures.plan([workspace.events.identifier], _LATE, _EVERYTHING))
    except HistoryExpired as error:
        return error.code
    raise ProofFailed(f"The history since a checkpoint has expired, but {found.records} rows are planned from there.")


def view(workspace: Workspace) -> str:
    """Capture into a view, read it, and drop it."""
    events = workspace.events
    catch_up(workspace)
    added = events.append(range(50, 54), "seen")
    taken = take(workspace, Wanted(mode=Mode.VIEW))
    name = icdc_table(workspace, _only(taken))
    if workspace.spark is None:
        _demand_view(workspace, name)
        found = "registered; only Spark can read it"
    else:
        found = _expect(rows_by_spark(workspace.spark, _only(taken).relation), added, f"the view {name}")
    workspace.captures.abandon(str(taken.capture_id))
    workspace.captures.collect_garbage(timedelta())
    demand(not workspace.catalog.drop_view(name), f"The view {name} was dropped, but is still there.")
    return found


def drop(workspace: Workspace) -> str:
    """Drop the tables of all captures, and read their source."""
    events = workspace.events
    taken = take(workspace, consumer=_DROPPED)
    name = icdc_table(workspace, _only(taken))
    files, before = events.data_files(), events.rows()
    workspace.captures.abandon(str(taken.capture_id))
    collected = workspace.captures.collect_garbage(timedelta())
    problems = [problem for one in collected for problem in one.problems]
    demand(not problems, f"Tables of captures could not be removed: {'; '.join(problems)}")
    demand(not workspace.catalog.exists(name), f"{name} was dropped, but the catalog says that it still exists.")
    source = workspace.catalog.load(events.name).files
    gone = [path for path in files if not source.exists(path)]
    demand(
        not gone,
        f"Dropping {name} deleted {len(gone)} of {len(files)} files of its source: this catalog purges tables that are "
        "only dropped, although they have gc.enabled=false.",
        "Do not capture tables of this catalog, or configure it to keep the files of dropped tables.",
    )
    _expect(events.rows(), before, f"{events.name}, after its captures were dropped,")
    return f"{len(collected)} captures removed, {len(files)} files of the source untouched"


def catch_up(workspace: Workspace, consumer: str = CONSUMER, table: ScratchTable | None = None) -> None:
    """Move a checkpoint to the newest snapshot: a check must not depend on what an earlier one left."""
    source = table or workspace.events
    workspace.captures.set_checkpoint(source.identifier, consumer, "latest", "a check begins here")


def take(
    workspace: Workspace,
    wanted: Wanted | None = None,
    *,
    lease: bool = False,
    consumer: str = CONSUMER,
    table: ScratchTable | None = None,
) -> CaptureReport:
    """Capture a table, by default the events."""
    source = table or workspace.events
    return workspace.captures.capture([source.identifier], consumer, wanted, lease=lease, supersede=True)


def opened(workspace: Workspace) -> CaptureReport:
    """Return the capture that an earlier check left open."""
    stored = workspace.captures.open_capture(CONSUMER)
    if stored is None:
        raise ProofFailed("The capture of the check before is not open.")
    return workspace.captures.show(stored.capture_id)


def icdc_table(workspace: Workspace, table: TableReport) -> TableName:
    """Return the name of the table, or the view, of a capture."""
    return workspace.lake.parse(str(table.icdc_table))


def _only(taken: CaptureReport) -> TableReport:
    (table,) = taken.tables
    return table


def _expect(found: Rows, truth: Rows, what: str) -> str:
    """Compare rows, and return how many there are."""
    more, fewer = found - truth, truth - found
    examples = ", ".join(str(row) for row in [*more, *fewer][:3])
    demand(
        not more and not fewer,
        f"{what} has {more.total()} rows too many and misses {fewer.total()} of {truth.total()}: {examples}",
    )
    return f"{truth.total()} rows"


def _demand_view(workspace: Workspace, name: TableName) -> None:
    """Check that a catalog tells a view from a table."""
    found = "a table"
    try:
        workspace.catalog.load(name)
    except TableIsView:
        return
    except TableMissing:
        found = "not there"
    raise ProofFailed(f"The view {name} was registered, but is {found}.")


def _tags(metadata: Metadata) -> dict[str, int]:
    """Return the tags of leases, and their snapshots."""
    refs = metadata.get("refs", {})
    return {name: ref["snapshot-id"] for name, ref in refs.items() if ref["type"] == "tag"}
