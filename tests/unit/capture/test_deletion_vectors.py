"""Deletion vectors, ours and their complement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from calve.capture.deletion_vectors import Blob, complement, decode, encode, write_puffin
from calve.errors import LakeError

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
    with pytest.raises(LakeError, match="damaged"):
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
