"""Edits of raw Iceberg metadata. Unknown fields are kept. Pure."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calve.errors import LakeCorrupt, LakeError, SnapshotUnknown
from calve.lake.metadata_checks import MAX_METADATA_BYTES, checked, shown, too_large, whole_number

Metadata = dict[str, Any]
MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A commit to a table: snapshots, branches and properties change together, or not at all."""

    snapshot: Mapping[str, Any] | None = None
    """A new snapshot, as metadata has it."""
    branches: Mapping[str, int] = field(default_factory=dict)
    """The snapshot that each branch will point to."""
    branch_age_ms: int | None = None
    """How long new branches are kept; None: for ever. ``main`` has no age."""
    dropped: Sequence[str] = ()
    """Branches to remove; absent ones are fine."""
    properties: Mapping[str, str] = field(default_factory=dict)


def decode(content: bytes, limit: int = MAX_METADATA_BYTES) -> Metadata:
    """Read a ``metadata.json``, gzipped or not, of at most ``limit`` bytes.

    Raises:
        LakeCorrupt: it is damaged, too large, or contradicts itself.
    """
    return checked(parse(content, limit))


def parse(content: bytes, limit: int = MAX_METADATA_BYTES) -> Any:
    """Read the JSON of a metadata file of any kind.

    Raises:
        LakeCorrupt: it is not JSON, or larger than the limit.
    """
    if content.startswith(b"\x1f\x8b"):
        content = _unzipped(content, limit)
    if len(content) > limit:
        raise too_large(f"it has more than {limit} bytes")
    # A Python object takes some 60 bytes even for "[]": counting separators bounds the memory before it is taken
    # (decision 0018).
    if sum(map(content.count, (b",", b"[", b"{"))) > limit // _BYTES_PER_VALUE:
        raise too_large(f"it has more than {limit // _BYTES_PER_VALUE} values")
    if len(content) > limit // _WIDEST and not content.isascii():
        raise too_large(f"it has more than {limit // _WIDEST} bytes, and not only ASCII")
    try:
        document = json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_no_number)
        if b"\\ud" in content or b"\\uD" in content:
            json.dumps(document, ensure_ascii=False).encode()  # half a character cannot be written anywhere
    except UnicodeError as error:
        raise LakeCorrupt(f"it is not UTF-8: {error.reason}", offset=error.start) from error  # type: ignore[attr-defined]
    except json.JSONDecodeError as error:
        raise LakeCorrupt(f"it is not JSON: {error.msg}", offset=error.pos) from error
    except (ValueError, RecursionError) as error:
        raise LakeCorrupt(f"it is not JSON that can be read: {shown(str(error))}") from error
    return document


_BYTES_PER_VALUE = 64
_MOST_KEYS = 100_000
_WIDEST = 4
"""Bytes that Python keeps for each character of a string with rare ones."""


def _unzipped(content: bytes, limit: int) -> bytes:
    # 31: 15 bits of window, plus 16 for gzip's header and checksum.
    stream = zlib.decompressobj(31)
    try:
        found = stream.decompress(content, limit + 1)
    except zlib.error as error:
        raise LakeCorrupt(f"it cannot be decompressed: {error}") from error
    if len(found) <= limit and not stream.eof:
        raise LakeCorrupt("its compressed data is truncated", offset=len(content))
    return found


def _object(pairs: list[tuple[str, Any]]) -> Metadata:
    if len(pairs) > _MOST_KEYS:
        raise ValueError(f"an object has {len(pairs)} keys")
    found = dict(pairs)
    # Parsers differ in which of two equal keys wins: Spark might read another table than we checked.
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{shown(twice)} is a duplicate key")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def encode(metadata: Metadata) -> bytes:
    """Write a ``metadata.json``."""
    return json.dumps(metadata, separators=(",", ":")).encode()


def refs(metadata: Metadata) -> dict[str, Any]:
    """Return branches and tags; old metadata has only a current snapshot, which is ``main``."""
    current = metadata.get("current-snapshot-id")
    main = {} if current in (None, -1) else {"main": {"snapshot-id": current, "type": "branch"}}
    found: dict[str, Any] = main | metadata.get("refs", {})
    return found


def with_tag(metadata: Metadata, tag: str, snapshot_id: int, max_age_ms: int) -> Metadata:
    """Return the metadata with a tag; the same object if the tag exists already.

    Raises:
        SnapshotUnknown: the table has no such snapshot.
        LakeError: the name is taken.
    """
    wanted = {"snapshot-id": snapshot_id, "type": "tag", "max-ref-age-ms": max_age_ms}
    known = refs(metadata)
    if known.get(tag) == wanted:
        return metadata
    if tag in known and (known[tag]["snapshot-id"] != snapshot_id or known[tag]["type"] != "tag"):
        raise LakeError(f"{tag} already exists, at snapshot {known[tag]['snapshot-id']}.", tag=tag)
    if all(snapshot["snapshot-id"] != snapshot_id for snapshot in metadata.get("snapshots", ())):
        raise SnapshotUnknown(f"The table has no snapshot {snapshot_id} to tag.", snapshot_id=snapshot_id)
    return metadata | {"refs": known | {tag: wanted}}


def without_tag(metadata: Metadata, tag: str) -> Metadata:
    """Return the metadata without a tag; the same object if there is none."""
    known = refs(metadata)
    if known.get(tag, {}).get("type") != "tag":
        return metadata
    return metadata | {"refs": {name: ref for name, ref in known.items() if name != tag}}


def snapshots_by_id(metadata: Metadata) -> dict[int, Mapping[str, Any]]:
    """Return every snapshot that is not expired, by id."""
    return {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", ())}


def branch_head(metadata: Metadata, branch: str = MAIN_BRANCH) -> int | None:
    """Return the snapshot that a branch points to; None if the branch does not exist."""
    found: int | None = refs(metadata).get(branch, {}).get("snapshot-id")
    return found


def ancestors(metadata: Metadata, snapshot_id: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield a snapshot and its ancestors, newest first, as far back as they are known."""
    known = snapshots_by_id(metadata)
    while snapshot_id in known:
        yield known[snapshot_id]
        snapshot_id = known[snapshot_id].get("parent-snapshot-id")


def changed(metadata: Metadata, change: TableCommit, now_ms: int) -> Metadata:
    """Return the metadata after a change."""
    # Clocks of two machines differ, and Java refuses metadata that is older than its predecessor.
    now_ms = max(now_ms, metadata["last-updated-ms"])
    edited = metadata | {"properties": {**_properties(metadata), **change.properties}, "last-updated-ms": now_ms}
    if change.snapshot is not None:
        edited |= _with_snapshot(metadata, change.snapshot)
    known = refs(metadata)
    for name, snapshot_id in change.branches.items():
        new = {"type": "branch"} | ({} if change.branch_age_ms is None else {"max-ref-age-ms": change.branch_age_ms})
        # A branch that exists keeps its retention.
        known[name] = {**known.get(name, new), "snapshot-id": snapshot_id}
        # current-snapshot-id repeats refs.main, and readers of format v1 know only that one.
        if name == MAIN_BRANCH:
            log = [*metadata.get("snapshot-log", ()), {"timestamp-ms": now_ms, "snapshot-id": snapshot_id}]
            edited |= {"current-snapshot-id": snapshot_id, "snapshot-log": log}
    return edited | {"refs": {name: ref for name, ref in known.items() if name not in change.dropped}}


def _with_snapshot(metadata: Metadata, snapshot: Mapping[str, Any]) -> Metadata:
    added: Metadata = {"snapshots": [*metadata.get("snapshots", ()), dict(snapshot)]}
    if "sequence-number" in snapshot:
        added["last-sequence-number"] = snapshot["sequence-number"]
    if "added-rows" in snapshot:
        added["next-row-id"] = metadata["next-row-id"] + snapshot["added-rows"]
    return added


def successor(metadata: Metadata, *, of: Metadata, at: str, now_ms: int) -> Metadata:
    """Return edited metadata as the version that follows ``of``, which is stored ``at``."""
    keep = whole_number(_properties(of), "write.metadata.previous-versions-max", 100)
    log = [*of.get("metadata-log", ()), {"metadata-file": at, "timestamp-ms": of["last-updated-ms"]}]
    return metadata | {
        "last-updated-ms": max(now_ms, metadata["last-updated-ms"], of["last-updated-ms"]),
        "metadata-log": log[-max(keep, 1) :],
    }


def successor_location(metadata: Metadata, at: str, unique: str) -> str:
    """Return the location of the version that follows the one stored ``at``."""
    version = re.match(r"(\d+)-", at.rpartition("/")[2])
    return f"{metadata_folder(metadata)}/{int(version[1]) + 1 if version else 0:05d}-{unique}.metadata.json"


def metadata_folder(metadata: Metadata) -> str:
    """Return the folder of a table's metadata files."""
    return str(_properties(metadata).get("write.metadata.path", metadata["location"].rstrip("/") + "/metadata")).rstrip(
        "/"
    )


def view(
    *,
    sql: str,
    schema: Mapping[str, Any],
    properties: Mapping[str, str],
    location: str,
    catalog: str,
    namespace: Sequence[str],
    unique: str,
    now_ms: int,
) -> Metadata:
    """Return the metadata of a view in Spark's dialect."""
    schema_id = schema.get("schema-id", 0)
    version = {
        "version-id": 1,
        "timestamp-ms": now_ms,
        "schema-id": schema_id,
        "summary": {"engine-name": "calve", "operation": "create"},
        "default-catalog": catalog,
        "default-namespace": list(namespace),
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }
    return {
        "view-uuid": unique,
        "format-version": 1,
        "location": location,
        "current-version-id": 1,
        "versions": [version],
        "version-log": [{"timestamp-ms": now_ms, "version-id": 1}],
        "schemas": [{"type": "struct", **schema, "schema-id": schema_id}],
        "properties": dict(properties),
    }


def _properties(metadata: Metadata) -> Mapping[str, str]:
    properties: Mapping[str, str] = metadata.get("properties", {})
    return properties
