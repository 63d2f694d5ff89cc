"""What a ``metadata.json`` has to hold so that it can be believed: the types, and what must not contradict. Pure.

Whoever reads metadata further on relies on this, and looks neither for wrong types nor for snapshots that are their
own ancestors. Fields that calve does not use are not looked at, and kept as they are.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from calve.errors import LakeCorrupt
from calve.lake.damage import shown

KNOWN_FORMAT_VERSIONS = (1, 2, 3)

_MOST = 2**63 - 1
_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, as far as calendars go."""
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
    """Return metadata that holds what it should, of a known format version; of another, it is not looked at.

    Raises:
        LakeCorrupt: it does not.
    """
    if not isinstance(document, dict):
        raise LakeCorrupt(f"it holds {_kind(document)} and not an object")
    version = _number(document, "format-version", "", low=-_MOST) or 0
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
        raise LakeCorrupt(f"current-schema-id is {current}, and there is no such schema")


def _check_columns(schema: Mapping[str, Any], where: str) -> None:
    """See that the columns of a schema, nested ones too, have a name, a type, and an id of their own."""
    left = [(schema, where, 0)]
    ids: set[int] = set()
    while left:
        struct, place, depth = left.pop()
        if depth > _DEEPEST:
            raise LakeCorrupt(f"{where} has types within types, {_DEEPEST} deep and deeper")
        for field, there in _objects(struct.get("fields"), f"{place}.fields"):
            fid = _number(field, "id", there, high=2**31 - 1) or 0
            if fid in ids:
                raise LakeCorrupt(f"{there}.id is {fid}, which another column has too")
            ids.add(fid)
            _text(field, "name", there)
            left += _structs(field.get("type"), f"{there}.type", depth)


def _structs(kind: Any, where: str, depth: int) -> list[tuple[Mapping[str, Any], str, int]]:
    """Return the structs in a type, or the types in lists and maps as if they were the one field of a struct."""
    if isinstance(kind, str):
        scale = _DECIMAL.fullmatch(kind)
        if len(kind) > 200 or (kind.startswith("decimal") and (not scale or int(scale[1]) > 38 or int(scale[2]) > 38)):
            raise LakeCorrupt(f"{where} is {shown(kind)}, which is no type")
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
            raise LakeCorrupt(f"{where}.type is {shown(other)}, and not struct, list or map")
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
            raise LakeCorrupt(f"{where}.spec-id is {spec_id}, which another spec has too")
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
            raise LakeCorrupt(f"{where}.snapshot-id is {snapshot_id}, which another snapshot has too")
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
            raise LakeCorrupt(f"{where}.summary.{name} is {shown(summary[name])}, and not a number")


def _check_refs(metadata: Mapping[str, Any], snapshots: Collection[int]) -> None:
    """See that branches and tags point to snapshots, and that main is the current one."""
    current = _number(metadata, "current-snapshot-id", "", optional=True, low=-1)
    refs = _object(metadata.get("refs", {}), "refs")
    for name, ref in refs.items():
        where = f"refs.{shown(name)}"
        snapshot_id = _number(_object(ref, where), "snapshot-id", where) or 0
        if ref.get("type") not in ("branch", "tag"):
            raise LakeCorrupt(f"{where}.type is {shown(ref.get('type'))}, and not branch or tag")
        if snapshot_id not in snapshots:
            raise LakeCorrupt(f"{where}.snapshot-id is {snapshot_id}, and there is no such snapshot")
    if current not in (None, -1) and current not in snapshots:
        raise LakeCorrupt(f"current-snapshot-id is {current}, and there is no such snapshot")
    if "main" in refs and refs["main"]["snapshot-id"] != current:
        raise LakeCorrupt(f"current-snapshot-id is {current}, but main is at {refs['main']['snapshot-id']}")


def _check_ancestors(parents: Mapping[int, int | None]) -> None:
    """See that no snapshot is its own ancestor."""
    done: set[int] = set()
    for start in parents:
        line: dict[int, None] = {}
        here: int | None = start
        while here is not None and here in parents and here not in done:
            if here in line:
                raise LakeCorrupt(f"snapshot {here} is its own ancestor, by parent-snapshot-id")
            line[here] = None
            here = parents[here]
        done.update(line)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a property of a table that is a number.

    Raises:
        LakeCorrupt: it is something else.
    """
    text = properties.get(name)
    if text is None:
        return default
    if not _COUNT.fullmatch(text):
        raise LakeCorrupt(f"the property {name} is {shown(text)}, and not a number")
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
        raise LakeCorrupt(f"{place} is {_found(value)}, and not a number from {low} to {high}")
    return value


def _text(owner: Mapping[str, Any], name: str, where: str) -> str:
    value = owner.get(name)
    if not isinstance(value, str) or not value:
        raise LakeCorrupt(f"{where}.{name} is {_found(value)}, and not a text".lstrip("."))
    return value


def _texts(value: Any, where: str) -> Mapping[str, str]:
    for name, text in _object(value, where).items():
        if not isinstance(text, str):
            raise LakeCorrupt(f"{where}.{shown(name)} is {_found(text)}, and not a text")
    texts: Mapping[str, str] = value
    return texts


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LakeCorrupt(f"{where} is {_found(value)}, and not an object")
    return value


def _objects(values: Any, where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the objects of a list, each with its place."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise LakeCorrupt(f"{where} is {_found(values)}, and not a list")
    for number, value in enumerate(values):
        yield _object(value, f"{where}[{number}]"), f"{where}[{number}]"


def _found(value: Any) -> str:
    return _kind(value) if isinstance(value, dict | list) else "missing" if value is None else shown(value)


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), "a number")
