"""Schemas of Avro, compiled into plain functions that read or skip one value."""

from collections.abc import Mapping
from typing import Any

from calve.capture.avro.values import (
    KEPT,
    READ,
    SKIP,
    Block,
    Read,
    Skip,
    count_of,
    extent,
    fixed,
    read_long,
    read_string,
    skip_bytes,
    skip_fixed,
    skip_long,
)
from calve.errors import LakeCorrupt
from calve.lake import shown

Schema = Any
"""An Avro schema as parsed JSON."""
Names = Mapping[str, Schema]

# Named types can be used again and again: a schema of a few hundred bytes can expand without end. Those of real
# manifests have about a hundred types.
_MOST_NODES = 5_000
"""How many types a schema may have, named ones counted each time that they are used."""
_DEEPEST = 32


def fields(schema: Schema) -> list[tuple[int | None, Schema]]:
    """Return the fields of a record as (Iceberg's field id, field).

    Raises:
        LakeCorrupt: the schema is not that of a record, or has a field id twice.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise LakeCorrupt(f"its Avro schema has {shown(schema)} where a record should be", offset=4)
    found: list[tuple[int | None, Schema]] = []
    known: set[int | None] = set()
    if len(schema["fields"]) > _MOST_NODES:
        raise LakeCorrupt(f"its Avro schema has a record of {len(schema['fields'])} fields", offset=4)
    for field in schema["fields"]:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise LakeCorrupt(f"its Avro schema has a field {shown(field)}", offset=4)
        fid = field.get("field-id")
        if fid is not None and (type(fid) is not int or fid in known):
            raise LakeCorrupt(
                f"its Avro schema has the field id {shown(fid)}, which is not a number or not unique", offset=4
            )
        known.add(fid)
        found.append((fid, field))
    return found


def named_types(schema: Schema) -> dict[str, Schema]:
    """Return the records and fixed types that a schema defines, by name."""
    found: dict[str, Schema] = {}
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, list):
            left += here
        elif isinstance(here, dict):
            if isinstance(here.get("name"), str) and here.get("type") in ("record", "fixed", "enum"):
                found[here["name"]] = here
            parts = here.get("fields")
            left += [field.get("type") for field in parts if isinstance(field, dict)] if isinstance(parts, list) else []
            left += [here[part] for part in ("items", "values", "type") if isinstance(here.get(part), list | dict)]
    return found


class Compiler:
    """Makes readers and skippers of the types of one schema."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._nodes = 0

    def reader(self, schema: Schema, depth: int = 0) -> Read:
        """Return a function that reads one value."""
        kind, schema = self._met(schema, depth)
        match kind:
            case "union":
                return _union_reader([self.reader(branch, depth + 1) for branch in schema])
            case "record":
                return record_reader(
                    [(field["name"], self.reader(field["type"], depth + 1)) for _, field in fields(schema)]
                )
            case "array":
                return _array_reader(self.reader(schema["items"], depth + 1))
            case "map":
                return map_reader(self.reader(schema["values"], depth + 1))
            case "fixed":
                return fixed(schema["size"])
            case "enum":
                return _enum_reader(schema["symbols"])
            case _:
                return READ[kind]

    def skipper(self, schema: Schema, depth: int = 0) -> Skip:
        """Return a function that skips one value."""
        kind, schema = self._met(schema, depth)
        match kind:
            case "union":
                return _union_skipper([self.skipper(branch, depth + 1) for branch in schema])
            case "record":
                return _record_skipper([self.skipper(field["type"], depth + 1) for _, field in fields(schema)])
            case "array" if (pair := int_map(schema["items"])) is not None:
                return _int_map_skipper(pair)
            case "array":
                return _array_skipper(self.skipper(schema["items"], depth + 1))
            case "map":
                value = self.skipper(schema["values"], depth + 1)
                return _array_skipper(lambda raw, at: value(raw, skip_bytes(raw, at)))
            case "fixed":
                return skip_fixed(schema["size"])
            case "enum":
                return skip_long
            case _:
                return SKIP[kind]

    def _met(self, schema: Schema, depth: int) -> tuple[str, Schema]:
        """Return the kind of a type, and the type itself in place of its name.

        Raises:
            LakeCorrupt: there is no such type, or too many of them.
        """
        kind, schema = self.resolved(schema)
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise LakeCorrupt(f"its Avro schema has more than {_MOST_NODES} types", offset=4)
        if depth > _DEEPEST:
            raise LakeCorrupt("its Avro schema has a type that contains itself without end", offset=4)
        return kind, schema

    def resolved(self, schema: Schema) -> tuple[str, Schema]:
        """Return the kind of a type, and the type itself in place of its name or of a wrapper around it."""
        # A name, its definition and a logical type's wrapper need three rounds; a type that names itself would never
        # end.
        for _ in range(8):
            if isinstance(schema, str) and schema in READ:
                return schema, schema
            if isinstance(schema, str) and schema in self._names:
                schema = self._names[schema]
            if isinstance(schema, list) and schema:
                return "union", schema
            if not isinstance(schema, dict) or not isinstance(schema.get("type"), str | dict | list):
                break
            if (kind := schema["type"]) in ("record", "array", "map", "fixed", "enum"):
                if _has_parts(kind, schema):
                    return kind, schema
                break
            schema = kind
        raise LakeCorrupt(f"its Avro schema has the type {shown(schema)}", offset=4)


def _has_parts(kind: str, schema: Mapping[str, Any]) -> bool:
    """Tell whether a type has the attributes that its kind requires."""
    match kind:
        case "array":
            return "items" in schema
        case "map":
            return "values" in schema
        case "fixed":
            return type(schema.get("size")) is int and schema["size"] >= 0
        case "enum":
            return isinstance(schema.get("symbols"), list)
        case _:
            return True


def compiler(schema: Schema) -> Compiler:
    """Return a compiler for the types of a schema."""
    return Compiler(named_types(schema))


def reader(schema: Schema) -> Read:
    """Return a function that reads one value of the schema."""
    return compiler(schema).reader(schema)


def skipper(schema: Schema) -> Skip:
    """Return a function that skips one value of the schema."""
    return compiler(schema).skipper(schema)


def _branch(raw: Block, at: int, branches: int) -> tuple[int, int]:
    """Read which branch of a union follows."""
    index, behind = read_long(raw, at)
    if 0 <= index < branches:
        return index, behind
    raise LakeCorrupt(f"branch {index} of a union of {branches}", offset=at)


def _union_reader(branches: list[Read]) -> Read:
    size, null, second = len(branches), READ["null"], branches[-1]
    is_optional = size == 2 and branches[0] is null

    def read(raw: Block, at: int) -> tuple[Any, int]:
        if is_optional:  # nearly all unions are; spelled out, because every entry has a dozen of them
            index = raw[at]
            if index == 0:
                return None, at + 1
            if index == 2:
                return second(raw, at + 1)
        index, at = _branch(raw, at, size)
        return branches[index](raw, at)

    return read


def _union_skipper(branches: list[Skip]) -> Skip:
    size = len(branches)

    def skip(raw: Block, at: int) -> int:
        index = raw[at]
        # Zigzag: the bytes 0 and 2 are the branches 0 and 1.
        if index < 4 and not index & 1 and size == 2:
            return branches[index >> 1](raw, at + 1)
        index, at = _branch(raw, at, size)
        return branches[index](raw, at)

    return skip


def optional_reader(schema: Schema, value: Read) -> Read:
    """Return a reader of a type, or of its union with null, given a reader of the value itself."""
    if not isinstance(schema, list):
        return value
    return _union_reader([READ["null"] if branch == "null" else value for branch in schema])


def skip_reader(compiler: Compiler, field: Schema) -> Read:
    """Return a reader that skips a field's value."""
    skip = compiler.skipper(field["type"])
    return lambda raw, at: (None, skip(raw, at))


def record_reader(parts: list[tuple[str, Read]]) -> Read:
    """Return a function that reads one value after the other, into a dictionary."""

    def read(raw: Block, at: int) -> tuple[dict[str, Any], int]:
        found = {}
        for name, part in parts:
            found[name], at = part(raw, at)
        return found, at

    return read


def _record_skipper(parts: list[Skip]) -> Skip:
    def skip(raw: Block, at: int) -> int:
        for part in parts:
            at = part(raw, at)
        return at

    return skip


def _array_reader(item: Read) -> Read:
    def read(raw: Block, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while True:
            count, at = count_of(raw, at, KEPT)
            if not count:
                return found, at
            for _ in range(count):
                value, at = item(raw, at)
                found.append(value)

    return read


def _array_skipper(item: Skip) -> Skip:
    def skip(raw: Block, at: int) -> int:
        while True:
            count, at = count_of(raw, at, 1)
            if not count:
                return at
            for _ in range(count):
                at = item(raw, at)

    return skip


def map_reader(value: Read) -> Read:
    """Return a function that reads a map from texts."""

    def read(raw: Block, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while True:
            count, at = count_of(raw, at, KEPT)
            if not count:
                return found, at
            for _ in range(count):
                key, at = read_string(raw, at)
                found[key], at = value(raw, at)

    return read


def _enum_reader(symbols: list[Any]) -> Read:
    size = len(symbols)

    def read(raw: Block, at: int) -> tuple[Any, int]:
        index, at = _branch(raw, at, size)
        return symbols[index], at

    return read


# Maps with integer keys, as Iceberg writes the metrics of columns: most of what a manifest holds, so it is spelled out.


def int_map(items: Schema) -> str | None:
    """Return the type of the values where an array's items are pairs with an integer key."""
    if not isinstance(items, dict) or items.get("type") != "record" or not isinstance(items.get("fields"), list):
        return None
    parts = [(field.get("name"), field.get("type")) for field in items["fields"] if isinstance(field, dict)]
    found = {"long": [("key", "int"), ("value", "long")], "bytes": [("key", "int"), ("value", "bytes")]}
    return next((kind for kind, wanted in found.items() if parts == wanted and len(items["fields"]) == 2), None)


def int_map_reader(kind: str, wanted: frozenset[int]) -> Read:
    """Return a function that reads some keys of a map from integers to longs or bytes."""
    by_byte = {(key << 1) ^ (key >> 63): key for key in wanted}  # the keys as they are written, if in one byte
    return _long_map_reader(wanted, by_byte) if kind == "long" else _bytes_map_reader(wanted, by_byte)


def _long_map_reader(wanted: frozenset[int], by_byte: Mapping[int, int]) -> Read:
    def read(raw: Block, at: int) -> tuple[dict[int, int], int]:
        found = {}
        while raw[at]:
            count, at = count_of(raw, at, 1)
            for _ in range(count):
                # Fast path: key and value of one byte each, as most counts of small tables have.
                key, value = raw[at], raw[at + 1]
                if key < 128 and value < 128:
                    at += 2
                    if key in by_byte:
                        found[by_byte[key]] = (value >> 1) ^ -(value & 1)
                    continue
                key, at = read_long(raw, at)
                value, at = read_long(raw, at)
                if key in wanted:
                    found[key] = value
        return found, at + 1

    return read


def _bytes_map_reader(wanted: frozenset[int], by_byte: Mapping[int, int]) -> Read:
    def read(raw: Block, at: int) -> tuple[dict[int, bytes], int]:
        found = {}
        size = len(raw)
        while raw[at]:
            count, at = count_of(raw, at, 1)
            for _ in range(count):
                key, end = raw[at], raw[at + 1]
                if key < 128 and end < 128 and not end & 1:
                    at += 2
                    end = at + (end >> 1)
                    if end > size:
                        raise IndexError
                    if key in by_byte:
                        found[by_byte[key]] = raw[at:end]
                else:
                    key, at = read_long(raw, at)
                    at, end = extent(raw, at)
                    if key in wanted:
                        found[key] = raw[at:end]
                at = end
        return found, at + 1

    return read


def _int_map_skipper(kind: str) -> Skip:
    read = int_map_reader(kind, frozenset())
    return lambda raw, at: read(raw, at)[1]
