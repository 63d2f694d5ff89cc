"""Edits of raw Iceberg metadata. Every field that we do not know is kept. Pure."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from calve.errors import LakeError, SnapshotUnknown

KNOWN_FORMAT_VERSIONS = (1, 2, 3)

Metadata = dict[str, Any]


def decode(content: bytes) -> Metadata:
    """Read a ``metadata.json``, gzipped or not."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    metadata: Metadata = json.loads(content)
    return metadata


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
    """Return the metadata with a tag; the very same object where the tag is there already.

    Raises:
        SnapshotUnknown: the table has no such snapshot.
        LakeError: the name is taken.
    """
    wanted = {"snapshot-id": snapshot_id, "type": "tag", "max-ref-age-ms": max_age_ms}
    known = refs(metadata)
    if known.get(tag) == wanted:
        return metadata
    if tag in known and (known[tag]["snapshot-id"] != snapshot_id or known[tag]["type"] != "tag"):
        raise LakeError(f"{tag} exists already, at snapshot {known[tag]['snapshot-id']}.", tag=tag)
    if all(snapshot["snapshot-id"] != snapshot_id for snapshot in metadata.get("snapshots", ())):
        raise SnapshotUnknown(f"The table has no snapshot {snapshot_id} to tag.", snapshot_id=snapshot_id)
    return metadata | {"refs": known | {tag: wanted}}


def without_tag(metadata: Metadata, tag: str) -> Metadata:
    """Return the metadata without a tag; the very same object where there is none."""
    known = refs(metadata)
    if known.get(tag, {}).get("type") != "tag":
        return metadata
    return metadata | {"refs": {name: ref for name, ref in known.items() if name != tag}}


def successor(metadata: Metadata, *, of: Metadata, at: str, now_ms: int) -> Metadata:
    """Return edited metadata as the version that follows ``of``, which is stored ``at``."""
    keep = int(_properties(of).get("write.metadata.previous-versions-max", 100))
    log = [*of.get("metadata-log", ()), {"metadata-file": at, "timestamp-ms": of["last-updated-ms"]}]
    return metadata | {
        "last-updated-ms": max(now_ms, of["last-updated-ms"]),
        "metadata-log": log[-max(keep, 1) :],
    }


def successor_location(metadata: Metadata, at: str, unique: str) -> str:
    """Return where the version that follows the one stored ``at`` goes."""
    folder = _properties(metadata).get("write.metadata.path", metadata["location"].rstrip("/") + "/metadata")
    version = re.match(r"(\d+)-", at.rpartition("/")[2])
    return f"{folder.rstrip('/')}/{int(version[1]) + 1 if version else 0:05d}-{unique}.metadata.json"


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
