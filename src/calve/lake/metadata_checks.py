"""Checks of a ``metadata.json`` from an untrusted writer: the types, and what must not contradict itself. Pure.

Code that reads metadata relies on this, and checks neither types nor that no snapshot is its own ancestor. Fields that
calve does not use are not checked, and kept as they are.
"""

import re
import reprlib
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from calve.errors import LakeCorrupt
from calve.settings import LakeSettings

KNOWN_FORMAT_VERSIONS = (1, 2, 3)

_MOST = 2**63 - 1
_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that Python's calendar has."""
_DEEPEST = 100
_CONTAINERS = (
    *("snapshots", "schemas", "partition-specs", "refs", "properties", "snapshot-log", "metadata-log"),
    *("statistics", "partition-statistics"),
)
_COUNT = re.compile(r"-?\d{1,18}")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_COUNTED = frozenset(
    f"{what}-{of}"
    for what in ("added", "deleted", "removed", "total")
    for of in ("data-files", "delete-files", "files-size", "records", "position-deletes", "equality-deletes")
)


def checked(document: Any) -> dict[str, Any]:
    """Return metadata that passed all checks; one of an unknown format version is returned as it is.

    Raises:
        LakeCorrupt: a check failed.
    """
    if not isinstance(document, dict):
        raise LakeCorrupt(f"it contains {_kind(document)}, not an object")
    version = _number(document, "format-version", "", low=-_MOST) or 0
    # The caller reports the version. What the fields of a later one mean is unknown, so there is nothing to check.
    if version not in KNOWN_FORMAT_VERSIONS:
        return document
    metadata: dict[str, Any] = {
        key: value for key, value in document.items() if value is not None or key not in _CONTAINERS
    }
    for name in ("table-uuid", "location"):
        _text(metadata, name, "")
    _number(metadata, "last-updated-ms", "", high=_LATEST_MS)
    for name, since in (("last-sequence-number", 2), ("next-row-id", 3)):
        if version >= since or name in metadata:
            _number(metadata, name, "")
    _texts(metadata.get("properties", {}), "properties")
    for name in ("snapshot-log", "metadata-log", "statistics", "partition-statistics"):
        for _ in _objects(metadata.get(name, []), name):
            pass
    _check_schemas(metadata)
    _check_specs(metadata)
    _check_snapshots(metadata)
    # Some writers put null where the spec has an absent field, which ``get`` with a default would not catch.
    if any(snapshot.get("summary", metadata) is None for snapshot in metadata.get("snapshots", ())):
        told = [{key: part for key, part in each.items() if part is not None} for each in metadata["snapshots"]]
        metadata["snapshots"] = told
    return metadata


def _check_schemas(metadata: Mapping[str, Any]) -> None:
    known = set()
    if metadata.get("schemas"):
        for schema, where in _objects(metadata["schemas"], "schemas"):
            known.add(_number({"schema-id": 0, **schema}, "schema-id", where))
            _check_columns(schema, where)
    else:
        _check_columns(_object(metadata.get("schema"), "schema"), "schema")
        known.add(0)
    current = _number({"current-schema-id": 0, **metadata}, "current-schema-id", "")
    if current not in known:
        raise LakeCorrupt(f"current-schema-id is {current}, which does not exist")


def _check_columns(schema: Mapping[str, Any], where: str) -> None:
    """Check that the columns of a schema, nested ones included, have a name, a type, and an id of their own."""
    left = [(schema, where, 0)]
    ids: set[int] = set()
    while left:
        struct, place, depth = left.pop()
        if depth > _DEEPEST:
            raise LakeCorrupt(f"{where} has types nested {_DEEPEST} levels deep or more")
        for field, there in _objects(struct.get("fields"), f"{place}.fields"):
            fid = _number(field, "id", there, high=2**31 - 1) or 0
            if fid in ids:
                raise LakeCorrupt(f"{there}.id is {fid}, which another column also has")
            ids.add(fid)
            _text(field, "name", there)
            left += _structs(field.get("type"), f"{there}.type", depth)


def _structs(kind: Any, where: str, depth: int) -> list[tuple[Mapping[str, Any], str, int]]:
    """Return the structs in a type, or the types in lists and maps as if they were the one field of a struct."""
    if isinstance(kind, str):
        scale = _DECIMAL.fullmatch(kind)
        if len(kind) > 200 or (kind.startswith("decimal") and (not scale or int(scale[1]) > 38 or int(scale[2]) > 38)):
            raise LakeCorrupt(f"{where} is {shown(kind)}, which is not a type")
        return []
    kind = _object(kind, where)
    match kind.get("type"):
        case "struct":
            return [(kind, where, depth + 1)]
        case "list":
            parts = [("element-id", "element")]
        case "map":
            parts = [("key-id", "key"), ("value-id", "value")]
        case other:
            raise LakeCorrupt(f"{where}.type is {shown(other)}, not struct, list or map")
    fields = [{"id": kind.get(fid), "name": part, "type": kind.get(part)} for fid, part in parts]
    return [({"fields": fields}, where, depth + 1)]


def _check_specs(metadata: Mapping[str, Any]) -> None:
    if "partition-specs" not in metadata:
        _check_spec(metadata.get("partition-spec", []), "partition-spec")
        return
    known = set()
    for spec, where in _objects(metadata["partition-specs"], "partition-specs"):
        spec_id = _number(spec, "spec-id", where)
        if spec_id in known:
            raise LakeCorrupt(f"{where}.spec-id is {spec_id}, which another spec also has")
        known.add(spec_id)
        _check_spec(spec.get("fields"), f"{where}.fields")


def _check_spec(fields: Any, where: str) -> None:
    for field, there in _objects(fields, where):
        _number(field, "source-id", there)
        _text(field, "name", there)
        _text(field, "transform", there)


def _check_snapshots(metadata: Mapping[str, Any]) -> None:
    parents: dict[int, int | None] = {}
    for snapshot, where in _objects(metadata.get("snapshots", []), "snapshots"):
        snapshot_id = _number(snapshot, "snapshot-id", where) or 0
        if snapshot_id in parents:
            raise LakeCorrupt(f"{where}.snapshot-id is {snapshot_id}, which another snapshot also has")
        parents[snapshot_id] = _number(snapshot, "parent-snapshot-id", where, optional=True, low=-1)
        _check_snapshot(snapshot, where)
    _check_ancestors(parents)
    _check_refs(metadata, parents.keys())


def _check_snapshot(snapshot: Mapping[str, Any], where: str) -> None:
    _number(snapshot, "timestamp-ms", where, high=_LATEST_MS)
    for name in ("sequence-number", "first-row-id", "added-rows"):
        _number(snapshot, name, where, optional=True)
    _number({"schema-id": 0, **snapshot}, "schema-id", where)
    if snapshot.get("manifest-list") is not None:
        _text(snapshot, "manifest-list", where)
    summary = _texts(snapshot.get("summary") or {}, f"{where}.summary")
    for name in _COUNTED & summary.keys():
        if not _COUNT.fullmatch(summary[name]):
            raise LakeCorrupt(f"{where}.summary.{name} is {shown(summary[name])}, not a number")


def _check_refs(metadata: Mapping[str, Any], snapshots: Collection[int]) -> None:
    """Check that branches and tags point to snapshots, and that main is the current one."""
    current = _number(metadata, "current-snapshot-id", "", optional=True, low=-1)
    refs = _object(metadata.get("refs", {}), "refs")
    for name, ref in refs.items():
        where = f"refs.{shown(name)}"
        snapshot_id = _number(_object(ref, where), "snapshot-id", where) or 0
        if ref.get("type") not in ("branch", "tag"):
            raise LakeCorrupt(f"{where}.type is {shown(ref.get('type'))}, not branch or tag")
        if snapshot_id not in snapshots:
            raise LakeCorrupt(f"{where}.snapshot-id is {snapshot_id}, which does not exist")
    if current not in (None, -1) and current not in snapshots:
        raise LakeCorrupt(f"current-snapshot-id is {current}, which does not exist")
    if "main" in refs and refs["main"]["snapshot-id"] != current:
        raise LakeCorrupt(f"current-snapshot-id is {current}, but main is at {refs['main']['snapshot-id']}")


def _check_ancestors(parents: Mapping[int, int | None]) -> None:
    """Check that no snapshot is its own ancestor."""
    done: set[int] = set()
    for start in parents:
        line: dict[int, None] = {}
        here: int | None = start
        # Stops at snapshots of earlier walks: linear, also for a table with thousands of them.
        while here is not None and here in parents and here not in done:
            if here in line:
                raise LakeCorrupt(f"snapshot {here} is its own ancestor, by parent-snapshot-id")
            line[here] = None
            here = parents[here]
        done.update(line)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a property of a table that is a number.

    Raises:
        LakeCorrupt: it is not a number.
    """
    text = properties.get(name)
    if text is None:
        return default
    if not _COUNT.fullmatch(text):
        raise LakeCorrupt(f"the property {name} is {shown(text)}, not a number")
    return int(text)


# The types of single fields. Each function names the place where another type was found.


def _number(
    owner: Mapping[str, Any], name: str, where: str, *, optional: bool = False, low: int = 0, high: int = _MOST
) -> int | None:
    value = owner.get(name)
    if value is None and optional:
        return None
    if type(value) is not int or not low <= value <= high:
        place = f"{where}.{name}" if where else name
        raise LakeCorrupt(f"{place} is {_found(value)}, not a number from {low} to {high}")
    return value


def _text(owner: Mapping[str, Any], name: str, where: str) -> str:
    value = owner.get(name)
    if not isinstance(value, str) or not value:
        raise LakeCorrupt(f"{where}.{name} is {_found(value)}, not a string".lstrip("."))
    return value


def _texts(value: Any, where: str) -> Mapping[str, str]:
    for name, text in _object(value, where).items():
        if not isinstance(text, str):
            raise LakeCorrupt(f"{where}.{shown(name)} is {_found(text)}, not a string")
    texts: Mapping[str, str] = value
    return texts


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LakeCorrupt(f"{where} is {_found(value)}, not an object")
    return value


def _objects(values: Any, where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the objects of a list, each with its place."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise LakeCorrupt(f"{where} is {_found(values)}, not a list")
    for number, value in enumerate(values):
        yield _object(value, f"{where}[{number}]"), f"{where}[{number}]"


def _found(value: Any) -> str:
    return _kind(value) if isinstance(value, dict | list) else "missing" if value is None else shown(value)


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), "a number")


MAX_METADATA_BYTES = LakeSettings().max_metadata_bytes
"""How large a metadata file may be, compressed or not, if there are no settings."""
_RAW = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What decoding raises on bytes or values that the format does not have."""


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn errors of decoding into one that names the file.

    Raises:
        LakeCorrupt: the content is damaged.
    """
    try:
        yield
    except LakeCorrupt as error:
        raise error.in_file(path) from error
    except _RAW as error:
        raise LakeCorrupt(f"{type(error).__name__}: {shown(str(error))}", path=path) from error


def too_large(problem: str, offset: int | None = None) -> LakeCorrupt:
    """Return the error for a file above the limit of metadata."""
    return LakeCorrupt(
        problem,
        offset=offset,
        remedy="If the table is valid, raise lake.max_metadata_bytes in the settings.",
    )


def shown(value: Any) -> str:
    """Return a value for a message: short, on one line, without terminal control characters."""
    text = value if isinstance(value, str) and value.isprintable() else _SHORT.repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_LONGEST = 80
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = _LONGEST
