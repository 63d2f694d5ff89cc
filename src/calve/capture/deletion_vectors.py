"""Deletion vectors: which rows of a file are hidden, as Iceberg v3 stores them in Puffin files."""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from pyroaring import BitMap64

from calve.errors import LakeError

_MAGIC = b"\xd1\xd3\x39\x64"
_PUFFIN = b"PFA1"
_ROW_POSITION_FIELD = 2147483545


class Blob(NamedTuple):
    """One deletion vector, for one data file."""

    data_file: str
    positions: BitMap64


def complement(positions: BitMap64, rows: int) -> BitMap64:
    """Return the other positions of a file with so many rows: hide these, and only ``positions`` are left to read."""
    hidden: BitMap64 = positions.flip(0, rows)
    return hidden


def encode(positions: BitMap64) -> bytes:
    """Return the bytes of a deletion vector, framed by length, magic and checksum."""
    positions = positions.copy()
    positions.run_optimize()
    data = _MAGIC + positions.serialize()
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def decode(raw: bytes) -> BitMap64:
    """Read the bytes of a deletion vector."""
    (length,) = struct.unpack(">I", raw[:4])
    data = raw[4 : 4 + length]
    if data[:4] != _MAGIC or struct.unpack(">I", raw[4 + length : 8 + length])[0] != zlib.crc32(data):
        raise LakeError("a deletion vector is damaged: its checksum does not match.")
    positions: BitMap64 = BitMap64.deserialize(data[4:])
    return positions


def write_puffin(blobs: Sequence[Blob]) -> tuple[bytes, list[tuple[int, int]]]:
    """Write deletion vectors into one Puffin file; return it, and where each one lies (offset, length)."""
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
