"""A lake, a state database and captures to deliver, for tests of delivery without a JVM."""

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # noqa: TID253 - only tests without a JVM use this
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.table import Table

from calve import settings
from calve.capture import Artifacts, Checkpoint, Move
from calve.delivery import Deliveries, Delivery, Staging
from calve.lake import Lake, SqlCatalog, TableName, metadata as raw
from calve.store import Store, open_store

STREAM = "daily/merge"
SOURCE = TableName("lake", ("db",), "source")
TARGET = "db.target"
ROWS = pa.schema([("id", pa.int64())])


@dataclass
class Ground:
    """Targets that PyIceberg writes to, and one consumer whose captures are delivered."""

    folder: Path
    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.lake = Lake(settings.load(self.folder, {}))
        self.store: Store = open_store(f"sqlite:///{self.folder}/calve.db")
        self.deliveries = Deliveries(
            self.lake, self.store.deliveries, self.store.captures, clock=lambda: self.now, new_id=self.new_id
        )

    def close(self) -> None:
        """Let go of everything."""
        self.lake.close()
        self.store.close()

    def new_id(self) -> str:
        """Return a fresh name."""
        return f"id{next(self.ids)}"

    # Tables.

    @property
    def catalog(self) -> SqlCatalog:
        """The one catalog."""
        catalog = self.lake.catalog("lake")
        assert isinstance(catalog, SqlCatalog)
        return catalog

    def create(self, *ids: int, target: str = TARGET, version: int = 2) -> None:
        """Make a target with some rows."""
        name = self.lake.parse(target)
        with suppress(NamespaceAlreadyExistsError):
            self.catalog.pyiceberg().create_namespace(name.namespace)
        self.catalog.pyiceberg().create_table(name.identifier, ROWS, properties={"format-version": str(version)})
        if ids:
            self.append(*ids, target=target)

    def table(self, target: str = TARGET) -> Table:
        """Return a target as PyIceberg sees it."""
        return self.catalog.pyiceberg().load_table(self.lake.parse(target).identifier)

    def append(self, *ids: int, branch: str | None = None, target: str = TARGET) -> None:
        """Append rows, to main or to a branch."""
        rows = pa.table({"id": list(ids)}, schema=ROWS)
        self.table(target).append(rows, branch=branch or "main")

    def overwrite(self, *ids: int, branch: str | None = None, target: str = TARGET) -> None:
        """Replace all rows, on main or on a branch."""
        self.table(target).overwrite(pa.table({"id": list(ids)}, schema=ROWS), branch=branch or "main")

    def rows(self, target: str = TARGET, branch: str | None = None) -> Counter[int]:
        """Return the rows of main, or of a branch."""
        table = self.table(target)
        scan = table.scan() if branch is None else table.scan().use_ref(branch)
        return Counter(scan.to_arrow()["id"].to_pylist())

    def metadata(self, target: str = TARGET) -> raw.Metadata:
        """Return a target's metadata as it is."""
        return self.catalog.load(self.lake.parse(target)).metadata

    def branches(self, target: str = TARGET) -> set[str]:
        """Return the names of all branches but main."""
        return set(raw.refs(self.metadata(target))) - {"main"}

    # Captures and deliveries.

    def capture(self, *, supersede: bool = False, consumer: str = "daily") -> str:
        """Take a capture of the source; return its id."""
        state, capture_id = self.store.captures, self.new_id()
        stored = state.checkpoint(consumer, SOURCE)
        to = Checkpoint("9c12d441-03fe-4693-9a96-a0705ddf69c1", next(self.ids), 1, None, 0, 0)
        state.begin(capture_id, consumer, None, Artifacts(), self.now)
        move = Move(SOURCE, stored.version if stored else 0, to)
        state.open(capture_id, [move], {"capture_id": capture_id}, supersede=supersede)
        return capture_id

    def commit(self, capture_id: str) -> None:
        """Move the checkpoint."""
        self.store.captures.commit(capture_id, self.now)

    def stage(self, capture_id: str | None, *targets: str, part: str = "", run: str = "daily/1/1/merge") -> Staging:
        """Stage an attempt."""
        delivery = Delivery(STREAM, capture_id, run, part)
        return self.deliveries.stage(targets or (TARGET,), delivery, f"0190a-attempt-{next(self.ids)}")

    def deliver(self, capture_id: str | None, *ids: int, part: str = "", run: str = "daily/1/1/merge") -> Staging:
        """Stage, append and publish."""
        staging = self.stage(capture_id, part=part, run=run)
        if not staging.is_delivered:
            self.append(*ids, branch=staging.branch)
        self.deliveries.publish(staging)
        return staging

    def sleep(self, pause: timedelta) -> None:
        """Let time pass."""
        self.now += pause

    def set_properties(self, target: str = TARGET, **properties: Any) -> None:
        """Set properties as a user does."""
        with self.table(target).transaction() as transaction:
            transaction.set_properties(properties)
