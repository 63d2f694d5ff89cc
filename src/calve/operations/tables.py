"""Tables: their history, who reads and writes them, how late their rows arrive (``calve.capture.inspection``)."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from calve.capture.inspection import (
    LEGEND,
    SECONDS,
    Behind,
    LagSample,
    TableHistory,
    TableUse,
    forecast,
    max_age,
    written_by,
)
from calve.lake import whole_number
from calve.lineage import MOST_EDGES, Direction, Edge
from calve.namespaces import workflow_of
from calve.operations import shapes
from calve.operations.declaration import Argument, Document, Topic, jsonable, operation
from calve.operations.pages import FIRST, Page, page_of_list
from calve.operations.policy import READ_SOMEWHERE

if TYPE_CHECKING:
    from calve.capture.inspection import Tables as TablesOfLake

TableName = Annotated[
    str,
    Argument(
        "The table: namespace.table, or catalog.namespace.table.",
        min_length=1,
        max_length=512,
        pattern=r"^[^/\x00-\x1f\x7f]+$",
        examples=["db.events"],
    ),
]
OfConsumer = Annotated[str | None, Argument("Show the state of this consumer.", max_length=512)]
LOOKBACK = 3
"""The default lookback for lateness, in days."""
_PACE_DAYS = 7
"""How many days of samples the pace of a consumer is computed from."""
_COUNTS = {
    "added_rows": "added-records",
    "deleted_rows": "deleted-records",
    "added_files": "added-data-files",
    "deleted_files": "deleted-data-files",
    "added_delete_files": "added-delete-files",
    "added_bytes": "added-files-size",
    "removed_bytes": "removed-files-size",
    "changed_partitions": "changed-partition-count",
}
_TOTALS = {
    "rows": "total-records",
    "files": "total-data-files",
    "bytes": "total-files-size",
    "delete_files": "total-delete-files",
}


class Tables(Topic):
    """Reads the history of tables from their metadata."""

    __slots__ = ()
    tag = "tables"

    @operation("GET /tables", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_tables(
        self,
        page: Page = FIRST,
        *,
        is_all: Annotated[bool, Argument("All tables of the catalogs, not only those in use.", alias="all")] = False,
        namespace: Annotated[str | None, Argument("Only tables of this namespace.", max_length=512)] = None,
        search: Annotated[str | None, Argument("Only tables whose name contains this text.", max_length=512)] = None,
        include: Annotated[
            str,
            Argument(
                "What to add to each: numbers (rows, bytes, the last commit and lag; null if not read yet: try again).",
                pattern="^(numbers)?$",
                examples=["numbers"],
            ),
        ] = "",
        workflow_id: Annotated[
            str | None, Argument("Only tables that this workflow reads, writes or watches.", max_length=128)
        ] = None,
    ) -> Document:
        """List the tables that consumers, deliveries and triggers use, or all tables of the catalogs, by name."""
        tables = self.call.tables
        uses = tables.all(namespace) if is_all else tables.known()
        if workflow_id is not None:
            uses = self._with_lineage_of(workflow_id, uses)
        found = [
            (name, use)
            for use in uses
            if (search or "").lower() in (name := tables.short(use.table)).lower()
            and namespace in {None, ".".join(use.table.namespace)}
            and workflow_id in {None, *use.read_by, *map(workflow_of, use.written_by)}
        ]
        answer = page_of_list(found, page, lambda one: {"table": one[0], **_use_json(one[1])}, lambda one: one[0])
        return _with_numbers(tables, answer, dict(found)) if include else answer

    @operation("GET /tables/{table}", READ_SOMEWHERE, id="get_table", is_slow=True)
    def table(self, table: TableName) -> Document:
        """Return a table: its schema and partitions, its size, its consumers, and who reads and writes it."""
        tables = self.call.tables
        found = tables.load(table)
        lag = [jsonable(asdict(one)) for one in tables.lag(found)]
        return {**_table_json(tables, found), "lag": lag, **_use_json(self._with_lineage(tables.use_of(found.name)))}

    def _with_lineage(self, use: TableUse) -> TableUse:
        """Return who uses a table, including the steps whose attempts read or wrote it."""
        kept = self.call.services.lineage
        edges = kept.edges([], [use.table], MOST_EDGES) if kept else []
        seen = [one for one in edges if self.call.may_read(one.workflow_id)]
        read, written = ({_step_of(one) for one in seen if one.direction is each} for each in Direction)
        return use.with_steps(read, written)

    def _with_lineage_of(self, workflow_id: str, uses: list[TableUse]) -> list[TableUse]:
        """Return who uses tables, including what the steps of a workflow have read and written, by name."""
        kept = self.call.services.lineage
        edges = kept.edges([workflow_id], [], MOST_EDGES) if kept and self.call.may_read(workflow_id) else []
        may_see, known = self.call.tables.may_see(), {one.table: one for one in uses}
        for table in {edge.table for edge in edges if may_see(edge.table)}:
            own = [edge for edge in edges if edge.table == table]
            read, written = ({_step_of(one) for one in own if one.direction is each} for each in Direction)
            known[table] = known.get(table, TableUse(table)).with_steps(read, written)
        return [known[table] for table in sorted(known)]

    @operation(
        "GET /tables/{table}/snapshots", READ_SOMEWHERE, id="list_table_snapshots", answer=shapes.Page, is_slow=True
    )
    def table_snapshots(self, table: TableName, page: Page = FIRST) -> Document:
        """List the snapshots of a table, newest first: what each changed, and which step wrote it."""
        found = self.call.tables.load(table)
        newest = sorted(found.source.snapshots.values(), key=lambda one: -one["timestamp-ms"])
        return page_of_list(newest, page, lambda one: _snapshot_json(found, one), lambda one: str(one["snapshot-id"]))

    @operation("GET /tables/{table}/changes", READ_SOMEWHERE, is_slow=True)
    def table_changes(
        self,
        table: TableName,
        consumer: OfConsumer = None,
        commits: Annotated[int, Argument("Maximum number of commits, the newest ones.", ge=1, le=10_000)] = 2_000,
        partitions: Annotated[int, Argument("Maximum number of partitions, the newest ones.", ge=1, le=5_000)] = 500,
        skip_commits: Annotated[int, Argument("Skip this many of the newest commits.", ge=0)] = 0,
        skip_partitions: Annotated[int, Argument("Skip this many of the newest partitions.", ge=0)] = 0,
    ) -> Document:
        """Return which commits changed which partitions, and how far a consumer has processed them, as letters.

        With more than 400 commits, a column is a day. ``legend`` explains the letters. ``unread`` counts commits that
        were not read yet: try again. ``partition_count`` counts the partitions of these commits.
        """
        some_commits = slice(skip_commits, skip_commits + commits)
        some_partitions = slice(skip_partitions, skip_partitions + partitions)
        return self.changes_within(table, consumer, some_commits, some_partitions)

    def changes_within(
        self, table: str, consumer: str | None, commits: slice, partitions: slice, seconds: float = SECONDS
    ) -> Document:
        """Return the same as ``table_changes``, from memory and from what can be read within some seconds."""
        tables = self.call.tables
        found = tables.load(table)
        drawn = tables.changes(found, consumer, commits, partitions, seconds)
        return {
            "table": tables.short(found.name),
            "consumer": consumer,
            "is_partitioned": found.source.is_partitioned(),
            "is_by_day": drawn.is_by_day,
            "columns": [_fields(one) for one in drawn.columns],
            "partitions": [_fields(one) for one in drawn.rows],
            "partition_count": drawn.partitions,
            "commit_count": len(found.commits),
            "checkpoint_column": drawn.checkpoint_column,
            "unread": drawn.unread,
            "legend": LEGEND,
        }

    @operation("GET /tables/{table}/lateness", READ_SOMEWHERE, is_slow=True)
    def table_lateness(
        self,
        table: TableName,
        column: Annotated[
            str | None, Argument("Use the bounds of this column as the time of events.", max_length=512)
        ] = None,
        window: Annotated[int, Argument("How many days of commits.", ge=1, le=3_650)] = 30,
        lookback: Annotated[int, Argument("Also report a lookback of this many days.", ge=0, le=3_650)] = LOOKBACK,
    ) -> Document:
        """Return how late the rows of a table arrive, and what lookbacks of several days would miss and read again.

        Without a column, the partitions are used as the time of events.
        """
        tables = self.call.tables
        found = tables.load(table)
        late, unread = tables.lateness(found, column, window, lookback)
        return {
            "table": tables.short(found.name),
            "column": column,
            "window_days": window,
            **jsonable(asdict(replace(late, curve=(), lookbacks=()))),
            "curve": [asdict(one) for one in late.curve],
            "lookbacks": [asdict(one) for one in late.lookbacks],
            "unread": unread,
        }

    @operation("GET /tables/{table}/lag-history", READ_SOMEWHERE, is_slow=True)
    def table_lag_history(
        self,
        table: TableName,
        consumer: Annotated[str | None, Argument("Only this consumer.", max_length=512)] = None,
        days: Annotated[int, Argument("How many days.", ge=1, le=90)] = 7,
    ) -> Document:
        """Return the lag of a table's consumers over time, and when their history will have expired.

        The scheduler takes a sample every five minutes. ``unrecoverable_in`` is a forecast from the pace of seven days;
        null: at that pace, the history never expires before it is processed.
        """
        tables = self.call.tables
        found = tables.load(table)
        age = max_age(found)
        history = tables.lag_history(found, consumer, days)
        pace = history if days >= _PACE_DAYS else tables.lag_history(found, consumer, _PACE_DAYS)
        return {
            "table": tables.short(found.name),
            "max_snapshot_age_ms": age,
            "consumers": [
                {
                    "consumer": name,
                    "unrecoverable_in": forecast(pace.get(name, ()), age, tables.now()),
                    "samples": [_sample_json(one) for one in samples],
                }
                for name, samples in history.items()
            ],
        }

    @operation("GET /lag/behind", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_behind(self, page: Page = FIRST) -> Document:
        """List the consumers that are behind, by the newest samples; those whose history expires first come first.

        ``is_critical``: at the usual interval of commits, the history may expire before the next two commits.
        """
        tables = self.call.tables
        found = tables.behind()
        return page_of_list(
            found,
            page,
            lambda one: _behind_json(tables, one),
            lambda one: f"{one.sample.consumer} {one.sample.table}",
        )


def _fields(value: Any) -> Document:
    """Return the fields of a flat value; ``asdict`` copies each, which is slow for thousands of rows."""
    return {name: getattr(value, name) for name in value.__slots__}


def _step_of(edge: Edge) -> str:
    return f"{edge.workflow_id}/{edge.step_id}"


def _sample_json(sample: LagSample) -> Document:
    return {name: value for name, value in asdict(sample).items() if name not in {"consumer", "table"}}


def _behind_json(tables: "TablesOfLake", behind: Behind) -> Document:
    sample = behind.sample
    return {
        "consumer": sample.consumer,
        "workflow_id": workflow_of(sample.consumer),
        "table": tables.short(sample.table),
        **_sample_json(sample),
        "expires_in": behind.expires_in,
        "usual_interval": behind.usual_interval,
        "is_critical": behind.is_critical,
    }


def _use_json(use: TableUse) -> Document:
    return {
        "consumers": list(use.consumers),
        "read_by": list(use.read_by),
        "written_by": list(use.written_by),
        "watched_by": list(use.watched_by),
    }


def _table_json(tables: "TablesOfLake", found: TableHistory) -> Document:
    source, metadata = found.source, found.loaded.metadata
    head = source.snapshots.get(source.head or -1)
    summary = (head or {}).get("summary") or {}
    oldest = min((one["timestamp-ms"] for one in source.snapshots.values()), default=None)
    return {
        "table": tables.short(found.name),
        "table_uuid": source.uuid,
        "location": metadata["location"],
        "format_version": source.format_version,
        "last_updated": metadata["last-updated-ms"],
        "partition_spec": _spec_json(found),
        "columns": _columns_json(source.schema),
        "current_snapshot": None if head is None else _snapshot_json(found, head),
        **_counts(summary, _TOTALS),
        "commits": len(found.commits),
        "snapshots": len(source.snapshots),
        "oldest_snapshot_at": oldest,
        "expiry": {
            "max_snapshot_age_ms": max_age(found),
            "min_snapshots_to_keep": whole_number(source.properties, "history.expire.min-snapshots-to-keep", 1),
            "is_default": "history.expire.max-snapshot-age-ms" not in source.properties,
        },
    }


def _with_numbers(tables: "TablesOfLake", answer: Document, uses: Mapping[str, TableUse]) -> Document:
    """Return a page of tables with the numbers of those that can be read in a short time."""
    names = {one["table"]: uses[one["table"]].table for one in answer["elements"]}
    found = tables.histories(names.values())
    elements = [{**one, "numbers": _numbers_json(tables, found.get(names[one["table"]]))} for one in answer["elements"]]
    return {**answer, "elements": elements}


def _numbers_json(tables: "TablesOfLake", found: TableHistory | None) -> Document | None:
    if found is None:
        return None
    head = found.source.snapshots.get(found.source.head or -1, {})
    return {
        **_counts(head.get("summary") or {}, _TOTALS),
        "commits": len(found.commits),
        "last_commit_at": head.get("timestamp-ms"),
        "max_snapshot_age_ms": max_age(found),
        "lag": [jsonable(asdict(one)) for one in tables.lag(found)],
    }


def _spec_json(found: TableHistory) -> list[Document]:
    source = found.source
    names = {one["id"]: one["name"] for one in source.schema["fields"]}
    fields = source.specs.get(found.loaded.metadata.get("default-spec-id", 0), ())
    return [
        {"name": one["name"], "transform": one["transform"], "column": names.get(one["source-id"])} for one in fields
    ]


def _columns_json(schema: Mapping[str, Any]) -> list[Document]:
    return [
        {
            "id": one["id"],
            "name": one["name"],
            "type": one["type"],
            "is_required": bool(one.get("required")),
            "doc": one.get("doc"),
        }
        for one in schema["fields"]
    ]


def _snapshot_json(found: TableHistory, snapshot: Mapping[str, Any]) -> Document:
    summary = snapshot.get("summary") or {}
    return {
        "snapshot_id": snapshot["snapshot-id"],
        "parent_id": snapshot.get("parent-snapshot-id"),
        "at": snapshot["timestamp-ms"],
        "operation": summary.get("operation", "unknown"),
        "refs": found.refs.get(snapshot["snapshot-id"], []),
        **_counts(summary, _COUNTS),
        "written_by": written_by(summary),
        "engine": summary.get("engine-name") or summary.get("spark.app.id"),
    }


def _counts(summary: Mapping[str, str], names: Mapping[str, str]) -> dict[str, int | None]:
    """Return numbers of a summary, by calve's names; None where the writer did not record one."""
    return {name: whole_number(summary, key, 0) if key in summary else None for name, key in names.items()}
