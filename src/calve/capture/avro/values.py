"""Readers of single Avro values: numbers, texts and bytes, and the number of items in an array.

A read past the end of a block raises IndexError, which the reader of its records turns into LakeCorrupt.
"""

import struct
from collections.abc import Callable
from typing import Any

from calve.errors import LakeCorrupt
from calve.lake import shown, too_large

# Roughly the memory of a kept Python object beside the byte that a skipped item takes.
KEPT = 8
"""How many times as much an item that is kept costs as one that is skipped."""
_LONGEST_STRING = 1 << 20


class Block(bytes):
    """The values of one block, and how many items of arrays and maps may still be read from its file."""

    items_left = 1 << 20
    offset = 0
    """Where the block begins in its file."""


Read = Callable[[Block, int], tuple[Any, int]]
"""Takes a block and a position; returns the value there, and the position after it."""
Skip = Callable[[Block, int], int]
"""Takes a block and a position; returns the position after the value there."""


def read_long(raw: bytes, at: int) -> tuple[int, int]:
    """Read an int or a long.

    Raises:
        LakeCorrupt: it has more than 64 bits.
    """
    value = raw[at]
    at += 1
    if value > 127:
        value &= 127
        shift = 7
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise LakeCorrupt("a number has more than 64 bits", offset=at)
        if value >> 64:
            raise LakeCorrupt("a number has more than 64 bits", offset=at)
    return (value >> 1) ^ -(value & 1), at


def _read_int(raw: Block, at: int) -> tuple[int, int]:
    value = raw[at]
    if value < 128:
        return (value >> 1) ^ -(value & 1), at + 1
    value, behind = read_long(raw, at)
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return value, behind
    raise LakeCorrupt(f"{value} is not a 32-bit number", offset=at)


def _read_boolean(raw: Block, at: int) -> tuple[bool, int]:
    value = raw[at]
    if value > 1:
        raise LakeCorrupt(f"{value} is neither true nor false", offset=at)
    return value == 1, at + 1


def extent(raw: Block, at: int) -> tuple[int, int]:
    """Read a length; return where the bytes that it counts begin and end."""
    size = raw[at]
    if size < 128 and not size & 1:
        size >>= 1
        at += 1
    else:
        size, at = read_long(raw, at)
    if 0 <= size <= len(raw) - at:
        return at, at + size
    raise LakeCorrupt(f"a length is {size}, but {len(raw) - at} bytes are left", offset=at)


def read_bytes(raw: Block, at: int) -> tuple[bytes, int]:
    """Read length-prefixed bytes."""
    start, end = extent(raw, at)
    return raw[start:end], end


def read_string(raw: Block, at: int) -> tuple[str, int]:
    """Read a string of at most 1 MiB."""
    start, end = extent(raw, at)
    if end - start > _LONGEST_STRING:
        raise LakeCorrupt(f"a string has {end - start} bytes", offset=start)
    try:
        return raw[start:end].decode(), end
    except UnicodeDecodeError as error:
        raise LakeCorrupt(f"a string is not UTF-8: {shown(raw[start : start + 40])}", offset=start) from error


def skip_long(raw: Block, at: int) -> int:
    """Skip a number."""
    return read_long(raw, at)[1]


def skip_bytes(raw: Block, at: int) -> int:
    """Skip bytes, or a text."""
    return extent(raw, at)[1]


def fixed(size: int) -> Read:
    """Return a function that reads this many bytes."""

    def read(raw: Block, at: int) -> tuple[bytes, int]:
        if size > len(raw) - at:
            raise IndexError
        return raw[at : at + size], at + size

    return read


def skip_fixed(size: int) -> Skip:
    """Return a function that skips this many bytes."""

    def skip(raw: Block, at: int) -> int:
        if size > len(raw) - at:
            raise IndexError
        return at + size

    return skip


def _number(kind: struct.Struct) -> Read:
    def read(raw: Block, at: int) -> tuple[float, int]:
        if kind.size > len(raw) - at:
            raise IndexError
        return kind.unpack_from(raw, at)[0], at + kind.size

    return read


FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
READ: dict[str, Read] = {
    "null": lambda _, at: (None, at),
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _number(FLOAT),
    "double": _number(DOUBLE),
    "bytes": read_bytes,
    "string": read_string,
}
SKIP: dict[str, Skip] = {
    "null": lambda _, at: at,
    "boolean": lambda raw, at: _read_boolean(raw, at)[1],
    "int": skip_long,
    "long": skip_long,
    "float": skip_fixed(4),
    "double": skip_fixed(8),
    "bytes": skip_bytes,
    "string": skip_bytes,
}


def count_of(raw: Block, at: int, cost: int) -> tuple[int, int]:
    """Read how many items follow in a block of an array or a map; 0 at its end."""
    count, behind = raw[at], at + 1
    if count < 128 and not count & 1:
        count >>= 1
    else:
        count, behind = read_long(raw, at)
    if count < 0:  # then the block's size in bytes follows
        count = -count
        size, behind = read_long(raw, behind)
        if not 0 <= size <= len(raw) - behind:
            raise LakeCorrupt(f"a length is {size}, but {len(raw) - behind} bytes are left", offset=behind)
    if count:
        raw.items_left -= count * cost
        # Items of no bytes (null) would allow any count in a short block. Iceberg has no such arrays.
        if count > len(raw) - behind:
            raise LakeCorrupt(f"{count} items follow, but {len(raw) - behind} bytes are left", offset=at)
        if raw.items_left < 0:
            raise too_large(f"its arrays and maps have too many items: {count} more follow", at)
    return count, behind
