"""Writers of Avro values."""

from collections.abc import Callable
from typing import Any

from calve.capture.avro.schemas import Names, Schema, named_types
from calve.capture.avro.values import DOUBLE, FLOAT

Write = Callable[[Any], bytes]


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
    """Write bytes, after their length."""
    return encode_long(len(value)) + value


_WRITE_PRIMITIVE: dict[str, Write] = {
    "null": lambda _: b"",
    "boolean": lambda value: b"\1" if value else b"\0",
    "int": encode_long,
    "long": encode_long,
    "float": FLOAT.pack,
    "double": DOUBLE.pack,
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
