"""Just enough Avro for Iceberg's manifests: fast, and safe with files that anybody may have written.

A schema is compiled once into plain functions that read, skip or write one value. Fields that nobody asked for are
skipped, and the raw bytes of a value can be cut out and written again unchanged, so a column that this code does not
know survives a copy. Nothing that a file says about itself is believed: every length is held against the bytes that are
left, and every count and decompressed size against a limit.
"""

from calve.capture.avro.containers import (
    MAGIC,
    Container,
    check_blocks,
    parse_schema,
    read_container,
    read_header,
    write_container,
)
from calve.capture.avro.schemas import (
    Compiler,
    Schema,
    compiler,
    fields,
    int_map,
    int_map_reader,
    optional_reader,
    reader,
    record_reader,
    skip_reader,
    skipper,
)
from calve.capture.avro.values import Block, Read, Skip, read_long
from calve.capture.avro.writers import Write, encode_bytes, encode_long, writer

__all__ = [
    "MAGIC",
    "Block",
    "Compiler",
    "Container",
    "Read",
    "Schema",
    "Skip",
    "Write",
    "check_blocks",
    "compiler",
    "encode_bytes",
    "encode_long",
    "fields",
    "int_map",
    "int_map_reader",
    "optional_reader",
    "parse_schema",
    "read_container",
    "read_header",
    "read_long",
    "reader",
    "record_reader",
    "skip_reader",
    "skipper",
    "write_container",
    "writer",
]
