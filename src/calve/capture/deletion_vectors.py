"""Deletion vectors: which rows of a file are hidden, as Iceberg v3 stores them in Puffin files."""

import json
import struct
import zlib
from collections.abc import Sequence
from operator import lt
from typing import NamedTuple

from pyroaring import BitMap64

from calve.errors import LakeCorrupt

# Iceberg spec, "Puffin": magic of a deletion-vector-v1 blob, of the file, and the reserved id of column _pos.
_MAGIC = b"\xd1\xd3\x39\x64"
_PUFFIN = b"PFA1"
_ROW_POSITION_FIELD = 2147483545


class Blob(NamedTuple):
    """One deletion vector, for one data file."""

    data_file: str
    positions: BitMap64


MOST_ROWS = 1 << 36
"""The maximum number of rows of a file whose deletion vector is inverted: every 65,536 rows take memory."""


def complement(positions: BitMap64, rows: int) -> BitMap64:
    """Return the other positions of a file with ``rows`` rows: hide these, and only ``positions`` remain."""
    hidden: BitMap64 = positions.flip(0, rows)
    return hidden


def encode(positions: BitMap64) -> bytes:
    """Return the bytes of a deletion vector, framed by length, magic and checksum."""
    # run_optimize works in place. An inverted vector is one long run with a few holes: without runs it takes 8 KiB
    # for each 65,536 rows.
    positions = positions.copy()
    positions.run_optimize()
    data = _MAGIC + positions.serialize()
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def decode(raw: bytes) -> BitMap64:
    """Read the bytes of a deletion vector.

    Raises:
        LakeCorrupt: they are not a deletion vector.
    """
    length = int.from_bytes(raw[:4], "big")
    data = raw[4:-4]
    # Length and checksum are big-endian, the bitmap in between is little-endian: Iceberg spec, "deletion-vector-v1
    # blob type".
    if len(raw) < 20 or length != len(data):
        raise LakeCorrupt(f"a deletion vector says that it has {length} bytes, and has {max(len(raw) - 8, 0)}")
    if data[:4] != _MAGIC or int.from_bytes(raw[-4:], "big") != zlib.crc32(data):
        raise LakeCorrupt("the checksum of a deletion vector does not match")
    try:
        _check_bitmaps(memoryview(data)[4:])
    except (IndexError, struct.error):
        raise LakeCorrupt("a deletion vector ends too early") from None
    positions: BitMap64 = BitMap64.deserialize(data[4:])
    return positions


# What follows is Roaring's portable format. It is looked through before the library gets it, which believes what it
# reads: containers that are not sorted, or not as long as they say, lead it to memory that is not there.

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_OFFSETS_FROM = 4
"""The number of containers from which a bitmap with runs lists their offsets."""
_LONGEST_ARRAY = 4096
_BITS = 8192
"""The number of bytes of a container that is a set of bits."""


def _check_bitmaps(raw: memoryview) -> None:
    """Check that the 32-bit bitmaps are as many as declared, ordered by key, with nothing after them."""
    (count,) = struct.unpack_from("<Q", raw)
    at, before = 8, -1
    if count > len(raw) // 8:
        raise LakeCorrupt(f"a deletion vector says that it has {count} bitmaps, in {len(raw)} bytes")
    for _ in range(count):
        (key,) = struct.unpack_from("<I", raw, at)
        if not before < key < 1 << 31:
            raise LakeCorrupt(f"bitmap {key} of a deletion vector follows {before}")
        before, at = key, _check_bitmap(raw, at + 4)
    if at != len(raw):
        raise LakeCorrupt(f"a deletion vector has {len(raw) - at} bytes too many")


def _check_bitmap(raw: memoryview, at: int) -> int:
    """Check a 32-bit bitmap; return where it ends."""
    (cookie,) = struct.unpack_from("<I", raw, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = bytes(raw[at : at + (count + 7) // 8]).ljust((count + 7) // 8, b"\0")
        at += (count + 7) // 8
        offsets = 4 * count if count >= _OFFSETS_FROM else 0
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", raw, at)
        at += 4
        offsets = 4 * count
    else:
        raise LakeCorrupt(f"a bitmap of a deletion vector begins with {cookie}")
    if count > 1 << 16 or 4 * count + offsets > len(raw) - at:
        raise LakeCorrupt(f"a bitmap of a deletion vector says that it has {count} containers")
    heads: tuple[int, ...] = struct.unpack_from(f"<{2 * count}H", raw, at)
    _check_sorted(heads[::2])
    at += 4 * count + offsets
    for number, size in enumerate(heads[1::2]):
        is_run = bool(runs) and runs[number >> 3] >> (number & 7) & 1
        at = _check_runs(raw, at) if is_run else _check_container(raw, at, size + 1)
    return at


def _check_runs(raw: memoryview, at: int) -> int:
    count: int = struct.unpack_from("<H", raw, at)[0]
    pairs = struct.unpack_from(f"<{2 * count}H", raw, at + 2)
    last = -1
    for start, more in zip(pairs[::2], pairs[1::2], strict=True):
        if start <= last or start + more > 0xFFFF:
            raise LakeCorrupt(f"a run of a deletion vector goes from {start} to {start + more}, and follows {last}")
        last = start + more
    if not count:
        raise LakeCorrupt("a container of a deletion vector has no runs")
    return at + 2 + 4 * count


def _check_container(raw: memoryview, at: int, size: int) -> int:
    if size <= _LONGEST_ARRAY:
        _check_sorted(struct.unpack_from(f"<{size}H", raw, at))
        return at + 2 * size
    bits = raw[at : at + _BITS]
    if len(bits) < _BITS or int.from_bytes(bits, "little").bit_count() != size:
        raise LakeCorrupt(f"a container of a deletion vector says that it has {size} positions")
    return at + _BITS


def _check_sorted(values: tuple[int, ...]) -> None:
    if not all(map(lt, values, values[1:])):
        raise LakeCorrupt("a container of a deletion vector is not sorted")


def write_puffin(blobs: Sequence[Blob]) -> tuple[bytes, list[tuple[int, int]]]:
    """Write deletion vectors into one Puffin file; return it, and the offset and length of each."""
    body = bytearray(_PUFFIN)
    places, described = [], []
    for blob in blobs:
        raw = encode(blob.positions)
        place = (len(body), len(raw))
        body += raw
        places.append(place)
        described.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION_FIELD],
                # -1 is what the spec demands of a deletion vector: snapshot and sequence number come from its
                # manifest entry.
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": place[0],
                "length": place[1],
                "properties": {
                    "referenced-data-file": blob.data_file,
                    "cardinality": str(len(blob.positions)),
                },
            }
        )
    footer = json.dumps({"blobs": described, "properties": {"created-by": "calve"}}).encode()
    body += _PUFFIN + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0" + _PUFFIN
    return bytes(body), places
