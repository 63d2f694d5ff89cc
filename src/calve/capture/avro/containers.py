"""Object container files of Avro: a header, and blocks of records."""

import bz2
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calve.capture.avro.schemas import Schema, map_reader
from calve.capture.avro.values import Block, Read, read_bytes, read_long
from calve.capture.avro.writers import encode_bytes, encode_long
from calve.errors import LakeCorrupt
from calve.lake import MAX_METADATA_BYTES, shown, too_large

MAGIC = b"Obj\x01"
_SYNC = 16
# A count costs the writer of a hostile file nothing, but costs us an object for each record: the limit in bytes
# bounds records and items as well. 64 MiB allow 131,072 entries (decision 0018).
_BYTES_PER_RECORD = 512
_BYTES_PER_ITEM = 8
_LONGEST_SCHEMA = 4 << 20
_HEADER: Read = map_reader(read_bytes)


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro object container file, its blocks decompressed."""

    header: dict[str, bytes]
    schema: Schema
    blocks: tuple[tuple[int, Block], ...]
    """How many records each one has, and their bytes."""
    limit: int

    def of_blocks(self, numbers: Iterable[int]) -> "Container":
        """Return the file with some of its blocks only."""
        return replace(self, blocks=tuple(self.blocks[number] for number in numbers))

    def records(self, read: Read) -> Iterator[Any]:
        """Yield every record.

        Raises:
            LakeCorrupt: there are fewer than the file says, or more.
        """
        items = self.limit // _BYTES_PER_ITEM
        for count, block in self.blocks:
            block.items_left = items
            at = 0
            for number in range(count):
                try:
                    value, at = read(block, at)
                except IndexError:
                    raise _short(block, number, count) from None
                except LakeCorrupt as error:
                    raise error.in_block(block.offset) from error
                yield value
            if at != len(block):
                raise LakeCorrupt(f"{len(block) - at} bytes follow the {count} records of a block", offset=block.offset)
            items = block.items_left


def _short(block: Block, number: int, count: int) -> LakeCorrupt:
    return LakeCorrupt(f"a block of {len(block)} bytes ends within record {number + 1} of {count}", offset=block.offset)


def read_header(raw: bytes) -> tuple[dict[str, bytes], int]:
    """Read the header of a container file; return it, and where the sync marker is.

    Raises:
        LakeCorrupt: the file is not Avro, or it ends within the header.
    """
    if raw[:4] != MAGIC:
        raise LakeCorrupt(f"not an Avro file: it begins with {shown(raw[:4])}", offset=0)
    block = Block(raw)
    # Iceberg writes fewer than ten keys. The map is read before any limit of the file is known.
    block.items_left = 1000
    try:
        header, at = _HEADER(block, 4)
    except IndexError:
        raise LakeCorrupt("the file ends within its header", offset=len(raw)) from None
    if at + _SYNC > len(raw):
        raise LakeCorrupt("the file ends within its header", offset=len(raw))
    return header, at


def check_blocks(raw: bytes) -> None:
    """Check that a container file is complete, without decompressing it.

    Raises:
        LakeCorrupt: it is not.
    """
    _, at = read_header(raw)
    for _ in _packed_blocks(raw, at):
        pass


def _packed_blocks(raw: bytes, sync_at: int) -> Iterator[tuple[int, int, int]]:
    """Yield for each block how many records it has, and where its bytes begin and end."""
    sync, at = raw[sync_at : sync_at + _SYNC], sync_at + _SYNC
    while at < len(raw):
        start = at
        try:
            count, at = read_long(raw, at)
            size, at = read_long(raw, at)
        except IndexError:
            raise LakeCorrupt("the file ends where a block begins", offset=start) from None
        left = len(raw) - at - _SYNC
        if count < 0 or not 0 <= size <= left:
            raise LakeCorrupt(
                f"a block says that it has {count} records in {size} bytes, but {max(left, 0)} are left",
                offset=start,
            )
        if raw[at + size : at + size + _SYNC] != sync:
            raise LakeCorrupt("a block does not end with the file's sync marker", offset=at + size)
        yield count, at, at + size
        at += size + _SYNC


def read_container(raw: bytes, limit: int = MAX_METADATA_BYTES) -> Container:
    """Read the header and the blocks of a container file, at most ``limit`` bytes when decompressed.

    Raises:
        LakeCorrupt: the file is damaged, or larger than that.
    """
    header, at = read_header(raw)
    name = header.get("avro.codec", b"null").decode(errors="replace")
    if name not in _DECOMPRESS:
        raise LakeCorrupt(f"it is compressed with {name[:40]!r}, which calve does not know", offset=4)
    if "avro.schema" not in header:
        raise LakeCorrupt("the header has no schema", offset=4)
    left, records = limit, limit // _BYTES_PER_RECORD
    blocks = []
    for count, offset, end in _packed_blocks(raw, at):
        try:
            block = Block(_DECOMPRESS[name](raw[offset:end], left))
        except (zlib.error, OSError, EOFError, ValueError) as error:
            raise LakeCorrupt(f"a block cannot be decompressed ({name}): {error}", offset=offset) from error
        block.offset = offset
        left, records = left - len(block), records - count
        if left < 0 or records < 0:
            what = "bytes" if left < 0 else "records"
            raise too_large(
                f"its blocks have more than {limit if left < 0 else limit // _BYTES_PER_RECORD} {what}", offset
            )
        # No record of a manifest is empty: more records than bytes means a forged count, refused before the loop over
        # it.
        if count > len(block):
            raise LakeCorrupt(f"a block says that it has {count} records in {len(block)} bytes", offset=offset)
        blocks.append((count, block))
    return Container(header, parse_schema(header["avro.schema"]), tuple(blocks), limit)


def parse_schema(text: bytes) -> Schema:
    """Parse the schema of a container file.

    Raises:
        LakeCorrupt: it is not valid JSON.
    """
    if len(text) > _LONGEST_SCHEMA:
        raise LakeCorrupt(f"its schema has {len(text)} bytes", offset=4)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LakeCorrupt(f"its Avro schema is not valid JSON: {error}", offset=4) from error


def write_container(header: Mapping[str, bytes], payload: bytes, count: int) -> bytes:
    """Write one block of values that are encoded already; the schema in the header is kept unchanged."""
    entries = {**header, "avro.codec": b"deflate"}
    sync = os.urandom(_SYNC)
    # Negative wbits: Avro's deflate codec has neither zlib's header nor its checksum.
    squeeze = zlib.compressobj(wbits=-15)
    data = squeeze.compress(payload) + squeeze.flush()
    head = [MAGIC, encode_long(len(entries))]
    head += [encode_bytes(key.encode()) + encode_bytes(value) for key, value in entries.items()]
    return b"".join([*head, b"\0", sync, encode_long(count), encode_bytes(data), sync])


# Decompressing. Each function takes how many bytes may come out, and returns at most one more.


def _inflated(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(-15)
    found = stream.decompress(data, limit + 1)
    if not stream.eof and len(found) <= limit:
        raise EOFError("it ends too early")
    return found


def _unzipped(data: bytes, limit: int) -> bytes:
    stream = bz2.BZ2Decompressor()
    found = stream.decompress(data, limit + 1)
    if not stream.eof and len(found) <= limit:
        raise EOFError("it ends too early")
    return found


def _from_zstd(data: bytes, limit: int) -> bytes:
    from zstandard import ZstdDecompressor, ZstdError

    # A frame names its own window: without a limit it could make the library allocate gigabytes.
    try:
        found: bytes = ZstdDecompressor(max_window_size=1 << 26).stream_reader(data).read(limit + 1)
    except ZstdError as error:
        raise ValueError(str(error)) from error
    return found


def _from_snappy(data: bytes, limit: int) -> bytes:
    """Decompress a block that starts with its size and ends with its checksum."""
    import pyarrow as pa

    size, shift = 0, 0
    for byte in data[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    # Arrow allocates ``decompressed_size`` before it looks at the data, so the claim has to be checked first.
    if size > limit:
        return bytes(limit + 1)
    found: bytes = pa.Codec("snappy").decompress(data[:-4], decompressed_size=size, asbytes=True)
    if struct.pack(">I", zlib.crc32(found)) != data[-4:]:
        raise ValueError("its checksum does not match")
    return found


_DECOMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _: data,
    "deflate": _inflated,
    "bzip2": _unzipped,
    "zstandard": _from_zstd,
    "snappy": _from_snappy,
}
