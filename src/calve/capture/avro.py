"""Just enough Avro for Iceberg's manifests, and fast.

A schema is compiled once into plain functions that read, skip or write one value. Fields that nobody asked for are
skipped, and the raw bytes of a value can be cut out and written again unchanged, so a column that this code does not
know survives a copy.
"""

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.decoder import new_decoder

from calve.errors import LakeError

Schema = Any
"""An Avro schema as parsed JSON."""
Names = Mapping[str, Schema]
Read = Callable[[Any], Any]
Write = Callable[[Any], bytes]

MAGIC = b"Obj\x01"
_SYNC = 16


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro object container file, its blocks decompressed."""

    header: dict[str, bytes]
    schema: Schema
    blocks: tuple[tuple[int, bytes], ...]


def read_header(raw: bytes) -> tuple[dict[str, bytes], int]:
    """Read the header of a container file; return it, and where the blocks start."""
    if raw[:4] != MAGIC:
        raise LakeError("a manifest is not an Avro file.", remedy="The table's metadata is damaged.")
    decoder = new_decoder(raw)
    decoder.skip(4)
    header: dict[str, bytes] = {}
    for _ in _items(decoder):
        key = decoder.read_utf8()
        header[key] = decoder.read_bytes()
    return header, decoder.tell() + _SYNC


def read_container(raw: bytes) -> Container:
    """Read the header and the blocks of a container file."""
    header, start = read_header(raw)
    name = header.get("avro.codec", b"null").decode()
    if name not in KNOWN_CODECS:
        raise LakeError(f"a manifest is compressed with {name}, which calve does not know.", codec=name)
    codec = KNOWN_CODECS[name]
    decoder = new_decoder(raw)
    decoder.skip(start)
    blocks = []
    while decoder.tell() < len(raw):
        count = decoder.read_int()
        data = decoder.read_bytes()
        decoder.skip(_SYNC)
        blocks.append((count, codec.decompress(data) if codec else data))
    return Container(header, json.loads(header["avro.schema"]), tuple(blocks))


def write_container(header: Mapping[str, bytes], payload: bytes, count: int) -> bytes:
    """Write one block of values that are encoded already; the header's schema is kept to the letter."""
    entries = {**header, "avro.codec": b"deflate"}
    sync = os.urandom(_SYNC)
    squeeze = zlib.compressobj(wbits=-15)
    data = squeeze.compress(payload) + squeeze.flush()
    head = [MAGIC, encode_long(len(entries))]
    head += [encode_bytes(key.encode()) + encode_bytes(value) for key, value in entries.items()]
    return b"".join([*head, b"\0", sync, encode_long(count), encode_bytes(data), sync])


def read_records(container: Container) -> list[dict[str, Any]]:
    """Read every record of a small file whole."""
    read = reader(container.schema)
    records = []
    for count, data in container.blocks:
        decoder = new_decoder(data)
        records += [read(decoder) for _ in range(count)]
    return records


def encode_long(value: int) -> bytes:
    """Write an int or a long: zigzag, then seven bits a byte."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_bytes(value: bytes) -> bytes:
    """Write bytes behind their length."""
    return encode_long(len(value)) + value


def fields(schema: Schema) -> list[tuple[int | None, Schema]]:
    """Return the fields of a record as (Iceberg's field id, field)."""
    return [(field.get("field-id"), field) for field in schema["fields"]]


def named_types(schema: Schema) -> dict[str, Schema]:
    """Return the records and fixed types that a schema defines, by name."""
    found: dict[str, Schema] = {}
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, list):
            left += here
        elif isinstance(here, dict):
            if "name" in here and here["type"] in {"record", "fixed", "enum"}:
                found[here["name"]] = here
            left += [field["type"] for field in here.get("fields", ())]
            left += [here[part] for part in ("items", "values", "type") if isinstance(here.get(part), list | dict)]
    return found


# Reading and skipping. Each function returns a function of the decoder.

_DOUBLE = struct.Struct("<d")
_READ_PRIMITIVE: dict[str, Read] = {
    "null": lambda _: None,
    "boolean": lambda d: d.read_boolean(),
    "int": lambda d: d.read_int(),
    "long": lambda d: d.read_int(),
    "float": lambda d: d.read_float(),
    "double": lambda d: _DOUBLE.unpack(d.read(8))[0],  # PyIceberg's own cuts it to a float
    "bytes": lambda d: d.read_bytes(),
    "string": lambda d: d.read_utf8(),
}
_SKIP_PRIMITIVE: dict[str, Read] = {
    "null": lambda _: None,
    "boolean": lambda d: d.skip_boolean(),
    "int": lambda d: d.skip_int(),
    "long": lambda d: d.skip_int(),
    "float": lambda d: d.skip_float(),
    "double": lambda d: d.skip_double(),
    "bytes": lambda d: d.skip_bytes(),
    "string": lambda d: d.skip_utf8(),
}


def reader(schema: Schema, names: Names | None = None) -> Read:
    """Return a function that reads one value of the schema."""
    names = named_types(schema) if names is None else names
    if isinstance(schema, str):
        return _READ_PRIMITIVE[schema] if schema in _READ_PRIMITIVE else reader(names[schema], names)
    if isinstance(schema, list):
        return _union(schema, [reader(branch, names) for branch in schema])
    match schema["type"]:
        case "record":
            parts = [(field["name"], reader(field["type"], names)) for field in schema["fields"]]
            return lambda d: {name: read(d) for name, read in parts}
        case "array":
            return _array_reader(schema["items"], names)
        case "map":
            value = reader(schema["values"], names)
            return lambda d: {d.read_utf8(): value(d) for _ in _items(d)}
        case "fixed":
            size = schema["size"]
            return lambda d: d.read(size)
        case "enum":
            symbols = schema["symbols"]
            return lambda d: symbols[d.read_int()]
        case inner:
            return reader(inner, names)


def skipper(schema: Schema, names: Names) -> Read:
    """Return a function that steps over one value of the schema."""
    if isinstance(schema, str):
        return _SKIP_PRIMITIVE[schema] if schema in _SKIP_PRIMITIVE else skipper(names[schema], names)
    if isinstance(schema, list):
        return _union(schema, [skipper(branch, names) for branch in schema])
    match schema["type"]:
        case "record":
            steps = [skipper(field["type"], names) for field in schema["fields"]]
            return lambda d: [step(d) for step in steps]
        case "array" if _is_int_map(schema["items"]) or schema["items"] in ("int", "long"):
            return reader(schema, names)  # the decoder reads these in one go
        case "array":
            item = skipper(schema["items"], names)
            return lambda d: [item(d) for _ in _items(d)]
        case "map":
            value = skipper(schema["values"], names)
            return lambda d: [(d.skip_utf8(), value(d)) for _ in _items(d)]
        case "fixed":
            size = schema["size"]
            return lambda d: d.skip(size)
        case "enum":
            return _SKIP_PRIMITIVE["int"]
        case inner:
            return skipper(inner, names)


def _union(schema: list[Schema], branches: list[Read]) -> Read:
    if schema[0] == "null" and len(branches) == 2:
        value = branches[1]
        return lambda d: value(d) if d.read_int() else None
    return lambda d: branches[d.read_int()](d)


def _items(decoder: Any) -> Iterator[int]:
    """Yield once for each item of an array or a map."""
    while count := decoder.read_int():
        if count < 0:  # then the block's size in bytes follows
            decoder.skip_int()
        yield from range(abs(count))


def _is_int_map(items: Schema) -> bool:
    """Tell whether an array's items are the key and value that Iceberg writes for a map with integer keys."""
    if not isinstance(items, dict) or items.get("type") != "record":
        return False
    parts = [(field["name"], field["type"]) for field in items["fields"]]
    return parts in ([("key", "int"), ("value", "long")], [("key", "int"), ("value", "bytes")])


def _array_reader(items: Schema, names: Names) -> Read:
    if _is_int_map(items):
        return _int_bytes_map if items["fields"][1]["type"] == "bytes" else _int_long_map
    if items in ("int", "long"):
        return _longs
    item = reader(items, names)
    return lambda d: [item(d) for _ in _items(d)]


# These three are most of the work, so they are spelled out.


def _int_bytes_map(decoder: Any) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while count := decoder.read_int():
        if count < 0:
            decoder.skip_int()
        decoder.read_int_bytes_dict(abs(count), found)
    return found


def _int_long_map(decoder: Any) -> dict[int, int]:
    found: dict[int, int] = {}
    while count := decoder.read_int():
        if count < 0:
            decoder.skip_int()
        flat = decoder.read_ints(2 * abs(count))
        found.update(zip(flat[::2], flat[1::2], strict=False))
    return found


def _longs(decoder: Any) -> list[int]:
    found: list[int] = []
    while count := decoder.read_int():
        if count < 0:
            decoder.skip_int()
        found += decoder.read_ints(abs(count))
    return found


# Writing. Each function returns a function of the value.

_WRITE_PRIMITIVE: dict[str, Write] = {
    "null": lambda _: b"",
    "boolean": lambda value: b"\1" if value else b"\0",
    "int": encode_long,
    "long": encode_long,
    "float": struct.Struct("<f").pack,
    "double": _DOUBLE.pack,
    "bytes": encode_bytes,
    "string": lambda value: encode_bytes(value.encode()),
}


def writer(schema: Schema, names: Names | None = None) -> Write:
    """Return a function that writes one value of the schema; a field that a record lacks is written as null."""
    names = named_types(schema) if names is None else names
    if isinstance(schema, str):
        return _WRITE_PRIMITIVE[schema] if schema in _WRITE_PRIMITIVE else writer(names[schema], names)
    if isinstance(schema, list):
        return _optional_writer(schema, names)
    match schema["type"]:
        case "record":
            parts = [(field["name"], writer(field["type"], names)) for field in schema["fields"]]
            return lambda value: b"".join([write(value.get(name)) for name, write in parts])
        case "array":
            item = writer(schema["items"], names)
            return lambda value: (encode_long(len(value)) + b"".join(map(item, value)) if value else b"") + b"\0"
        case "fixed":
            return bytes
        case inner:
            return writer(inner, names)


def _optional_writer(schema: list[Schema], names: Names) -> Write:
    """Return a writer for ``["null", type]``, the only union that Iceberg's metadata has."""
    null = encode_long(schema.index("null"))
    there, some = next((encode_long(i), branch) for i, branch in enumerate(schema) if branch != "null")
    write = writer(some, names)
    return lambda value: null if value is None else there + write(value)
