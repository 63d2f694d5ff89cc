"""Deletion vectors, ours and their complement."""

import struct
import zlib

import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap64

from calve.capture.deletion_vectors import Blob, complement, decode, encode, write_puffin
from calve.errors import LakeCorrupt

FAR = 3 * 2**32 + 5
POSITIONS = st.sets(st.integers(0, 200_000) | st.integers(2**32 - 3, 2**32 + 3) | st.just(FAR))


@given(POSITIONS)
def test_what_is_encoded_is_decoded(positions: set[int]) -> None:
    """Whatever the positions, beyond 32 bits too."""
    assert set(decode(encode(BitMap64(positions)))) == positions


def test_encoding_changes_nothing() -> None:
    """A vector that was packed for writing is not packed in the caller's hands."""
    positions = BitMap64(range(5000))
    before = positions.serialize()
    encode(positions)
    assert positions.serialize() == before


@given(st.integers(0, 3000).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1))))))
def test_a_complement_leaves_exactly_the_others(case: tuple[int, set[int]]) -> None:
    """Together the two are every row of the file, once; the complement of the complement is the vector."""
    rows, positions = case[0], {position for position in case[1] if position < case[0]}
    hidden = complement(BitMap64(positions), rows)
    assert set(hidden) == set(range(rows)) - positions
    assert set(complement(hidden, rows)) == positions


@given(st.integers(0, 30))
def test_damage_is_noticed(place: int) -> None:
    """A flipped byte anywhere is an error, not other rows."""
    raw = bytearray(encode(BitMap64([1, 5, 70_000])))
    raw[4 + place % (len(raw) - 4)] ^= 0x55
    with pytest.raises(LakeCorrupt, match="damaged"):
        decode(bytes(raw))


@given(st.lists(POSITIONS.filter(bool), min_size=1, max_size=4))
def test_a_puffin_file_is_read_by_pyiceberg(vectors: list[set[int]]) -> None:
    """Footer, offsets and blobs as another implementation reads them."""
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    raw, places = write_puffin([Blob(f"f{n}", BitMap64(vector)) for n, vector in enumerate(vectors)])
    for (offset, length), vector in zip(places, vectors, strict=True):
        assert set(decode(raw[offset : offset + length])) == vector
    footer = PuffinFile(raw).footer
    assert [int(blob.properties["cardinality"]) for blob in footer.blobs] == [len(vector) for vector in vectors]
    assert [(blob.offset, blob.length) for blob in footer.blobs] == places
    found = deletion_vectors_from_puffin_file(PuffinFile(raw))
    assert [vector.referenced_data_file for vector in found] == [f"f{n}" for n in range(len(vectors))]
    parts = [[(high << 32) + low for high, bits in enumerate(vector._bitmaps) for low in bits] for vector in found]
    assert [set(part) for part in parts] == vectors


def _framed(bitmaps: bytes) -> bytes:
    data = b"\xd1\xd3\x39\x64" + bitmaps
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def _one(*parts: bytes, count: int = 1, key: int = 0) -> bytes:
    return _framed(struct.pack("<QI", count, key) + b"".join(parts))


def _arrays(*containers: tuple[int, list[int]], sizes: list[int] | None = None) -> bytes:
    """Return a bitmap without runs, with the sizes that it has or others."""
    told = sizes or [len(values) for _, values in containers]
    heads = [struct.pack("<HH", key, size - 1) for (key, _), size in zip(containers, told, strict=True)]
    bodies = [struct.pack(f"<{len(values)}H", *values) for _, values in containers]
    return struct.pack("<II", 12346, len(containers)) + b"".join(heads) + bytes(4 * len(containers)) + b"".join(bodies)


def _runs(*pairs: tuple[int, int]) -> bytes:
    body = struct.pack(f"<H{2 * len(pairs)}H", len(pairs), *(number for pair in pairs for number in pair))
    return struct.pack("<IBHH", 12347, 1, 0, 0) + body


def test_vectors_made_by_hand_are_read() -> None:
    """The checks let through what is in order: arrays, runs, and bitmaps that are empty, as Java writes them."""
    assert set(decode(_one(_arrays((0, [1, 5]), (2, [7]))))) == {1, 5, 2 * 65536 + 7}
    assert set(decode(_one(_runs((3, 2), (9, 0))))) == {3, 4, 5, 9}
    empty = struct.pack("<II", 12346, 0)
    assert set(decode(_framed(struct.pack("<QI", 2, 0) + empty + struct.pack("<I", 1) + _arrays((0, [4]))))) == {
        2**32 + 4
    }


BROKEN = {
    "nothing": b"",
    "no bitmaps": _framed(b""),
    "2**60 bitmaps": _one(_arrays((0, [1])), count=2**60),
    "one bitmap too many": _one(_arrays((0, [1])), count=2),
    "one too few": _one(_arrays((0, [1])), count=0),
    "a position of 64 bits": _one(_arrays((0, [1])), key=2**31),
    "positions that are not sorted": _one(_arrays((0, [5, 1]))),
    "a position twice": _one(_arrays((0, [5, 5]))),
    "containers that are not sorted": _one(_arrays((4, [5]), (3, [5]))),
    "a container twice": _one(_arrays((4, [5]), (4, [6]))),
    "more positions than there are": _one(_arrays((0, [1, 2]), sizes=[4000])),
    "fewer positions than there are": _one(_arrays((0, [1, 2, 3]), sizes=[2])),
    "bits that were not counted": _one(_arrays((0, [1] * 4096), sizes=[5000])),
    "2**31 containers": _one(struct.pack("<II", 12346, 2**31)),
    "65536 containers that are not there": _one(struct.pack("<I", 12347 | 65535 << 16)),
    "a cookie of nobody": _one(struct.pack("<II", 4711, 1)),
    "runs that overlap": _one(_runs((3, 5), (5, 1))),
    "runs that go too far": _one(_runs((65535, 5))),
    "no runs": _one(_runs()),
    "a length that is wrong": b"\xff\xff\xff\xff" + _one(_arrays((0, [1])))[4:],
}


@pytest.mark.parametrize("case", BROKEN)
def test_vectors_that_are_not_in_order_are_refused(case: str) -> None:
    """The checksum fits, so that only the content tells; the library would believe all of these."""
    with pytest.raises(LakeCorrupt):
        decode(BROKEN[case])
