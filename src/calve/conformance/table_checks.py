"""Checks of the catalog itself: tables, their metadata, Spark, and two writers at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING

from calve.app import now_ms
from calve.capture import Source
from calve.conformance.model import Skipped
from calve.conformance.workspace import Workspace, demand
from calve.delivery import append_snapshot
from calve.errors import JarsUnavailable, JavaMissing
from calve.lake import (
    MAIN_BRANCH,
    Catalog,
    Files,
    LoadedTable,
    Metadata,
    TableCommit,
    TableName,
    ancestors,
    branch_head,
    decode,
    session,
)
from calve.texts import quoted

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog

MARK = "calve.proof"
"""The property of a scratch namespace by which a later proof knows that it may use it."""
_COUNTER = "calve.proof.commits"
_ROUNDS = 4
_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of the session: tables of a few rows repay neither compiled code nor many tasks."""
_TOGETHER_SECONDS = 20.0


def reach(workspace: Workspace) -> str:
    """List the namespaces."""
    found = workspace.catalog.namespaces()
    return f"{len(found)} namespaces" if len(found) != 1 else "1 namespace"


def make_namespace(workspace: Workspace) -> str:
    """Create the scratch namespace, or take over an empty one that an earlier proof left."""
    from pyiceberg.exceptions import NamespaceAlreadyExistsError

    catalog, namespace = workspace.catalog.pyiceberg(), (workspace.namespace,)
    # A random name is nobody else's, so what an interrupted call made is removed too.
    workspace.owns_namespace = workspace.has_random_name
    try:
        catalog.create_namespace(namespace, {MARK: workspace.mark})
    except NamespaceAlreadyExistsError:
        is_ours = MARK in catalog.load_namespace_properties(namespace)
        demand(
            is_ours and _is_empty(workspace, catalog),
            f"The namespace {workspace.namespace} exists already, and is not an empty one that a proof left.",
            "Name another one with --namespace, or leave it out.",
        )
    workspace.owns_namespace = True
    return workspace.namespace


def _is_empty(workspace: Workspace, catalog: "PyIcebergCatalog") -> bool:
    return not catalog.list_tables((workspace.namespace,)) and not list_tables(workspace)


def list_tables(workspace: Workspace) -> list[str]:
    """Return the names of the tables in the scratch namespace, as the catalog lists them."""
    start = f"{workspace.namespace}."
    return [name for name in workspace.catalog.tables((workspace.namespace,)) if name.startswith(start)]


def start_spark(workspace: Workspace) -> str | Skipped:
    """Start Spark, or connect to it, and let it list the scratch namespace."""
    if not workspace.uses_spark:
        return Skipped("--no-spark")
    try:
        spark = session(workspace.lake.settings, "calve doctor", workspace.say)
    except (JavaMissing, JarsUnavailable) as error:
        return Skipped(f"Spark cannot run here. {error.message}")
    for key, value in _FEW_ROWS.items():
        spark.conf.set(key, value)
    listed = spark.sql(f"SHOW TABLES IN {quoted(workspace.catalog_name, workspace.namespace)}").collect()
    demand(not listed, f"Spark finds {len(listed)} tables in the new namespace {workspace.namespace}.")
    workspace.spark = spark
    return f"Spark {spark.version}"


def create(workspace: Workspace) -> str:
    """Create a table, and find it."""
    events = workspace.events
    events.create()
    name = events.name
    demand(workspace.catalog.exists(name), f"{name} was created, but the catalog says that it does not exist.")
    listed = list_tables(workspace)
    demand(".".join(name.identifier) in listed, f"{name} was created, but is not listed.")
    demand(name in workspace.catalog.locations([name]), f"{name} was created, but has no metadata.")
    demand(branch_head(events.metadata()) is None, f"{name} was just created, but has a snapshot.")
    return "by PyIceberg" if events.spark is None else "by Spark"


def append(workspace: Workspace) -> str:
    """Append rows in two commits."""
    events = workspace.events
    before = workspace.catalog.locations([events.name])
    events.append(range(1, 13), "first")
    events.append(range(13, 19), "second")
    demand(workspace.catalog.locations([events.name]) != before, "After an append, the metadata is that of before.")
    operations = [snapshot["summary"]["operation"] for snapshot in events.metadata().get("snapshots", ())]
    demand(
        operations == ["append", "append"], f"Two appends became these snapshots: {', '.join(operations) or 'none'}."
    )
    return "18 rows, 2 commits"


def load(workspace: Workspace) -> str:
    """Load the metadata, and compare it with the file that the catalog names."""
    loaded = workspace.catalog.load(workspace.events.name)
    # With the credentials of the table, which a catalog may hand out with it.
    stored = decode(loaded.files.read(loaded.metadata_location))
    for key in ("table-uuid", "current-snapshot-id", "location"):
        sent, there = loaded.metadata.get(key), stored.get(key)
        demand(sent == there, f"The catalog sends {key} {sent}, but {loaded.metadata_location} has {there}.")
    found = workspace.events.rows()
    demand(found == workspace.events.truth, f"The table has {found.total()} rows that differ from those written.")
    return f"format v{loaded.metadata['format-version']}"


def write_at_once(workspace: Workspace) -> str:
    """Commit from two threads that start from the same metadata, and count what is left."""
    table = workspace.table("counter")
    table.create()
    barrier = Barrier(2)
    files = workspace.catalog.load(table.name).files
    writers = [_Writer(workspace.catalog, table.name, files, barrier) for _ in range(2)]
    with ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(writer.run) for writer in writers]:
            done.result()
    metadata, wanted = table.metadata(), _ROUNDS * len(writers)
    counted = int(metadata.get("properties", {}).get(_COUNTER, 0))
    kept = len(list(ancestors(metadata, branch_head(metadata))))
    demand(
        counted == kept == wanted,
        f"{wanted - min(counted, kept)} of {wanted} commits were lost: the catalog accepted commits that replace those "
        "of another writer.",
        "Do not use this catalog with several writers: its commits are not compare-and-set.",
    )
    return f"{wanted} commits, {sum(writer.tries for writer in writers) - wanted} conflicts"


@dataclass(slots=True)
class _Writer:
    """Commits empty snapshots that count up a property."""

    catalog: Catalog
    table: TableName
    files: Files
    barrier: Barrier
    tries: int = 0
    _is_first: bool = field(default=True)

    def run(self) -> None:
        """Commit in every round."""
        try:
            for _ in range(_ROUNDS):
                self._is_first = True
                self.catalog.change(self.table, self._decide)
        except BaseException:
            self.barrier.abort()  # the other one need not wait
            raise

    def _decide(self, metadata: Metadata) -> TableCommit:
        self.tries += 1
        if self._is_first:
            self._is_first = False
            with suppress(BrokenBarrierError):  # the other writer has failed, or is slow
                self.barrier.wait(_TOGETHER_SECONDS)
        source = Source(LoadedTable(self.table, metadata, "", self.files))
        new = append_snapshot(source, branch_head(metadata), (), now_ms(), {})
        for path, content in new.files.items():
            self.files.write(path, content)
        counted = int(metadata.get("properties", {}).get(_COUNTER, 0)) + 1
        return TableCommit(
            snapshot=new.snapshot,
            branches={MAIN_BRANCH: int(new.snapshot["snapshot-id"])},
            properties={_COUNTER: str(counted)},
        )
