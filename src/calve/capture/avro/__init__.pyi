from .containers import (
    MAGIC as MAGIC,
    Container as Container,
    check_blocks as check_blocks,
    parse_schema as parse_schema,
    read_container as read_container,
    read_header as read_header,
    write_container as write_container,
)
from .schemas import (
    Compiler as Compiler,
    Schema as Schema,
    compiler as compiler,
    fields as fields,
    int_map as int_map,
    int_map_reader as int_map_reader,
    optional_reader as optional_reader,
    reader as reader,
    record_reader as record_reader,
    skip_reader as skip_reader,
    skipper as skipper,
)
from .values import Block as Block, Read as Read, Skip as Skip, read_long as read_long
from .writers import Write as Write, encode_bytes as encode_bytes, encode_long as encode_long, writer as writer
