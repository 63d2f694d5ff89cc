"""The source table: its metadata as Iceberg wrote it, and its manifests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from calve.capture.avro import check_blocks
from calve.capture.manifests import Allowance, Manifest, ManifestFile, read_manifest_list
from calve.capture.model import Checkpoint, Pending
from calve.errors import FormatVersionUnknown, LakeCorrupt, LakeError, TableEncrypted
from calve.lake import Files, LoadedTable, TableName, decoding, local_path, shown

KNOWN_VERSIONS = (1, 2, 3)
_READERS = 16

SnapshotJson = Mapping[str, Any]
R = TypeVar("R")


class Source:
    """One table at one moment: the metadata is read once, so every answer is about the same state."""

    def __init__(self, table: LoadedTable) -> None:
        self.name: TableName = table.name
        self.metadata: Mapping[str, Any] = table.metadata
        self.files: Files = table.files
        self.format_version: int = table.metadata["format-version"]
        if self.format_version not in KNOWN_VERSIONS:
            raise FormatVersionUnknown(
                f"{table.name} has format version {self.format_version}, which is not supported: only 1, 2 and 3 are.",
                remedy="Upgrade calve.",
                table=str(table.name),
                format_version=self.format_version,
            )
        # An object exists for one request, so the cache needs no limit other than the allowance of its manifests.
        self._lists: dict[str, list[ManifestFile]] = {}
        self._allowance = Allowance(self.files.max_bytes)

    @property
    def uuid(self) -> str:
        """The table's identity, which a re-created table does not share."""
        return str(self.metadata["table-uuid"])

    @cached_property
    def snapshots(self) -> dict[int, SnapshotJson]:
        """Every snapshot that is not expired, by id."""
        return {snapshot["snapshot-id"]: snapshot for snapshot in self.metadata.get("snapshots", ())}

    @property
    def head(self) -> int | None:
        """The current snapshot's id."""
        head = self.metadata.get("current-snapshot-id")
        # Java writes -1 for a table without a snapshot (Iceberg spec, appendix F).
        return None if head in {None, -1} else int(head)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        properties: Mapping[str, str] = self.metadata.get("properties", {})
        return properties

    @cached_property
    def schemas(self) -> dict[int, Mapping[str, Any]]:
        """Every schema that the table ever had, by id."""
        schemas = self.metadata.get("schemas") or [{**self.metadata["schema"], "schema-id": 0}]
        return {schema.get("schema-id", 0): schema for schema in schemas}

    @property
    def schema_id(self) -> int:
        """The current schema's id."""
        return int(self.metadata.get("current-schema-id", 0))

    @property
    def schema(self) -> Mapping[str, Any]:
        """The current schema."""
        return self.schemas[self.schema_id]

    @cached_property
    def specs(self) -> dict[int, Sequence[Mapping[str, Any]]]:
        """The fields of every partition spec, by spec id."""
        if "partition-specs" not in self.metadata:
            return {0: self.metadata.get("partition-spec", ())}
        return {spec["spec-id"]: spec["fields"] for spec in self.metadata["partition-specs"]}

    def is_partitioned(self) -> bool:
        """Tell whether any spec of the table has fields."""
        return any(self.specs.values())

    def sequence_number(self, snapshot_id: int) -> int:
        """Return a snapshot's sequence number; 0 if the format has none."""
        return int(self.snapshots[snapshot_id].get("sequence-number") or 0)

    def checkpoint_as_of(self, snapshot_id: int | None) -> Checkpoint:
        """Return the checkpoint at a snapshot that a user names, with the schema of that snapshot."""
        written_with = {} if snapshot_id is None else self.snapshots[snapshot_id]
        return replace(self.checkpoint(snapshot_id), schema_id=written_with.get("schema-id", self.schema_id))

    def checkpoint(self, snapshot_id: int | None, pending: Pending | None = None) -> Checkpoint:
        """Return the checkpoint at a snapshot."""
        snapshot = {} if snapshot_id is None else self.snapshots[snapshot_id]
        first, added = snapshot.get("first-row-id"), snapshot.get("added-rows")
        # An empty v3 table: the first row will get id 0, so everything counts as new.
        if snapshot_id is None and self.format_version > 2:
            first, added = 0, 0
        return Checkpoint(
            table_uuid=self.uuid,
            snapshot_id=snapshot_id,
            sequence_number=int(snapshot.get("sequence-number") or 0),
            next_row_id=None if first is None else first + (added or 0),
            schema_id=self.schema_id,
            timestamp_ms=int(snapshot.get("timestamp-ms") or self.metadata["last-updated-ms"]),
            pending=pending,
        )

    def manifest_list(self, snapshot_id: int) -> list[ManifestFile]:
        """Return the manifests of a snapshot."""
        snapshot = self.snapshots[snapshot_id]
        if snapshot.get("key-id") is not None:
            raise _encrypted(self.name, snapshot_id)
        path = snapshot.get("manifest-list")
        if path is None:
            raise LakeError(
                f"snapshot {snapshot_id} of {self.name} lists its manifests inline, as very old writers did.",
                remedy="Rewrite the table's manifests with a current Iceberg.",
                table=str(self.name),
                snapshot_id=snapshot_id,
            )
        if path not in self._lists:
            self._lists[path] = self._listed(path, snapshot_id)
        return self._lists[path]

    def prepare_lists(self, snapshot_ids: Sequence[int]) -> None:
        """Read the manifest lists of some snapshots concurrently, if they are remote."""
        places = {str(self.snapshots[number].get("manifest-list")): number for number in snapshot_ids}
        paths = [path for path in places if path not in self._lists and path != "None"]
        if len(paths) > 1 and self.reads_at_once > 1:
            lists = for_each_path(lambda path: self._listed(path, places[path]), paths)
            self._lists |= dict(zip(paths, lists, strict=True))

    def _listed(self, path: str, snapshot_id: int) -> list[ManifestFile]:
        content = self.files.read(path)
        with decoding(path):
            manifests = read_manifest_list(content, self.files.max_bytes)
            self._check(manifests)
        if any(manifest.key_metadata for manifest in manifests):
            raise _encrypted(self.name, snapshot_id)
        return manifests

    def _check(self, manifests: Iterable[ManifestFile]) -> None:
        """Check that the rows of a manifest list fit the table's partition specs."""
        for row in manifests:
            fields = self.specs.get(row.partition_spec_id)
            if fields is None:
                raise LakeCorrupt(
                    f"a manifest has the partition spec {row.partition_spec_id}, which the table does not have"
                )
            if row.partitions is not None and len(row.partitions) != len(fields):
                raise LakeCorrupt(
                    f"a manifest has {len(row.partitions)} partition fields, and its spec {len(fields)}: "
                    f"{shown(row.manifest_path)}"
                )

    @property
    def reads_at_once(self) -> int:
        """How many files are read at once: where one comes as quickly as many, none is read in vain."""
        return 1 if local_path(str(self.metadata.get("location", ""))) is not None else _READERS

    def read(self, manifests: Iterable[ManifestFile]) -> list[Manifest]:
        """Read manifests, several at a time, and check that they are complete."""
        rows = list(manifests)
        blobs = for_each_path(self._whole, [row.manifest_path for row in rows])
        return [Manifest(row, blob, allowance=self._allowance) for row, blob in zip(rows, blobs, strict=True)]

    def _whole(self, path: str) -> bytes:
        content = self.files.read(path)
        with decoding(path):
            check_blocks(content)
        return content


def for_each_path(function: Callable[[str], R], paths: Sequence[str]) -> list[R]:
    """Call a function on every path, concurrently if the files are remote."""
    if len(paths) < 2 or local_path(paths[0]) is not None:
        return [function(path) for path in paths]
    with ThreadPoolExecutor(min(_READERS, len(paths))) as pool:
        return list(pool.map(function, paths))


def _encrypted(table: TableName, snapshot_id: int) -> TableEncrypted:
    return TableEncrypted(
        f"{table} is encrypted: the manifests of snapshot {snapshot_id} cannot be read or referenced.",
        remedy="Capture from a table that is not encrypted.",
        table=str(table),
        snapshot_id=snapshot_id,
    )
