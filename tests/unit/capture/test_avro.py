"""The Avro codec: whatever a manifest may look like, what is written is read, skipped or copied unchanged."""

import itertools
import json
import struct
import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyiceberg.avro.codecs import KNOWN_CODECS

from calve.capture import avro
from calve.errors import LakeCorrupt


@dataclass(frozen=True)
class Kind:
    """A schema, values of it, and what they read as."""

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]
    """Pairs of what is written and what is read."""


def _plain(schema: Any, values: st.SearchStrategy[Any]) -> Kind:
    return Kind(schema, values.map(lambda value: (value, value)))


INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
PRIMITIVES = [
    _plain("boolean", st.booleans()),
    _plain("int", INTS),
    _plain("long", LONGS),
    _plain("float", st.floats(allow_nan=False, width=32)),
    _plain("double", st.floats(allow_nan=False)),
    _plain("string", st.text()),
    _plain("bytes", st.binary()),
    _plain({"type": "int", "logicalType": "date"}, INTS),
    _plain({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, LONGS),
]
_names = itertools.count()


def _fixed(size: int) -> Kind:
    schema = {"type": "fixed", "name": f"fixed_{next(_names)}", "size": size, "logicalType": "decimal"}
    return _plain(schema, st.binary(min_size=size, max_size=size))


def _optional(kind: Kind) -> Kind:
    return Kind(["null", kind.schema], st.just((None, None)) | kind.values)


def _reversed_optional(kind: Kind) -> Kind:
    return Kind([kind.schema, "null"], st.just((None, None)) | kind.values)


def _array(kind: Kind) -> Kind:
    pairs = st.lists(kind.values, max_size=4)
    values = pairs.map(lambda items: ([item[0] for item in items], [item[1] for item in items]))
    return Kind({"type": "array", "items": kind.schema, "element-id": 1}, values)


def _int_map(kind: Kind) -> Kind:
    """Return what Iceberg writes for a map with integer keys."""
    fields = [
        {"name": "key", "type": "int", "field-id": 1},
        {"name": "value", "type": kind.schema, "field-id": 2},
    ]
    items = {"type": "record", "name": f"k_v_{next(_names)}", "fields": fields}
    values = st.dictionaries(INTS, kind.values.map(lambda pair: pair[0]), max_size=4).map(
        lambda found: [{"key": key, "value": value} for key, value in found.items()]
    )
    return _plain({"type": "array", "logicalType": "map", "items": items}, values)


def _record(kinds: list[Kind]) -> Kind:
    names = [f"f{number}" for number in range(len(kinds))]
    fields = [
        {"name": n, "type": k.schema, "field-id": 10 + i} for i, (n, k) in enumerate(zip(names, kinds, strict=True))
    ]
    values = st.tuples(*(kind.values for kind in kinds)).map(
        lambda pairs: (
            dict(zip(names, [pair[0] for pair in pairs], strict=True)),
            dict(zip(names, [pair[1] for pair in pairs], strict=True)),
        )
    )
    return Kind({"type": "record", "name": f"record_{next(_names)}", "fields": fields}, values)


LEAVES = st.sampled_from(PRIMITIVES) | st.integers(1, 20).map(_fixed)
KINDS = st.recursive(
    LEAVES,
    lambda inner: (
        inner.filter(lambda kind: not isinstance(kind.schema, list)).map(_optional)
        | inner.filter(lambda kind: not isinstance(kind.schema, list)).map(_reversed_optional)
        | inner.map(_array)
        | st.sampled_from([_plain("long", LONGS), _plain("bytes", st.binary(max_size=100))]).map(_int_map)
        | st.lists(inner, min_size=1, max_size=4).map(_record)  # an item that takes no bytes is refused in arrays
    ),
    max_leaves=8,
)


@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """For any schema, a value comes back, and both reading and skipping stop right behind it."""
    kind = data.draw(KINDS)
    written, read = data.draw(kind.values)
    raw = avro.Block(avro.writer(kind.schema)(written) + avro.encode_long(-77))
    assert avro.reader(kind.schema)(raw, 0) == (read, len(raw) - 2)
    assert avro.skipper(kind.schema)(raw, 0) == len(raw) - 2


@given(st.data())
def test_a_value_that_is_cut_short_is_never_read(data: st.DataObject) -> None:
    """Wherever the bytes end: reading and skipping notice it, and give nothing that was not there."""
    kind = data.draw(KINDS)
    whole = avro.writer(kind.schema)(data.draw(kind.values)[0])
    raw = avro.Block(whole[: data.draw(st.integers(0, max(len(whole) - 1, 0)))])
    if len(raw) == len(whole):
        return
    for act in (avro.reader(kind.schema), avro.skipper(kind.schema)):
        with pytest.raises((IndexError, LakeCorrupt)):
            act(raw, 0)


@given(st.data())
def test_some_keys_of_a_map_are_read(data: st.DataObject) -> None:
    """Whatever the keys, however many bytes they take, those that are wanted are found, and no others."""
    kind, values = data.draw(st.sampled_from([("long", LONGS), ("bytes", st.binary(max_size=100))]))
    whole = data.draw(st.dictionaries(st.integers(-70, 70) | INTS, values, max_size=5))
    wanted = frozenset(data.draw(st.sets(st.sampled_from(sorted(whole)) if whole else st.integers(0, 3))))
    schema = _int_map(_plain(kind, values)).schema
    raw = avro.Block(avro.writer(schema)([{"key": key, "value": value} for key, value in whole.items()]))
    assert avro.int_map_reader(kind, wanted)(raw, 0) == (
        {key: value for key, value in whole.items() if key in wanted},
        len(raw),
    )


@given(st.data())
def test_containers_keep_header_and_records(data: st.DataObject) -> None:
    """What goes into a file comes out of it, and the header's schema is kept to the letter."""
    kind = _record([PRIMITIVES[0], data.draw(KINDS)])
    pairs = data.draw(st.lists(kind.values, max_size=5))
    schema = json.dumps(kind.schema, indent=3)
    write = avro.writer(kind.schema)
    raw = avro.write_container(
        {"avro.schema": schema.encode(), "other": b"\0kept"}, b"".join(write(pair[0]) for pair in pairs), len(pairs)
    )
    container = avro.read_container(raw)
    assert (container.header["avro.schema"].decode(), container.header["other"]) == (schema, b"\0kept")
    assert list(container.records(avro.reader(kind.schema))) == [pair[1] for pair in pairs]


def _snappy(payload: bytes) -> tuple[bytes, int]:
    import pyarrow as pa

    packed = pa.Codec("snappy").compress(payload, asbytes=True) + struct.pack(">I", zlib.crc32(payload))
    return packed, len(packed)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2", "snappy"])
def test_blocks_of_any_codec_are_read(codec: str) -> None:
    """Writers choose how to compress, and how many records stand in a block."""
    compressor: Any = KNOWN_CODECS[codec]  # type: ignore[index]
    if codec == "snappy":
        compressor = SimpleNamespace(compress=_snappy)
    sync = b"s" * 16
    blocks = []
    for values in ([1, 2, 3], [4], list(range(100, 300))):
        payload = b"".join(avro.encode_long(value) for value in values)
        packed = compressor.compress(payload)[0] if compressor else payload
        blocks.append(avro.encode_long(len(values)) + avro.encode_bytes(packed) + sync)
    header = {"avro.schema": b'{"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}'}
    header["avro.codec"] = codec.encode()
    pairs = [avro.encode_bytes(key.encode()) + avro.encode_bytes(value) for key, value in header.items()]
    raw = avro.MAGIC + avro.encode_long(len(pairs)) + b"".join(pairs) + b"\0" + sync + b"".join(blocks)
    container = avro.read_container(raw)
    found = container.records(avro.reader(container.schema))
    assert [record["a"] for record in found] == [1, 2, 3, 4, *range(100, 300)]
    with pytest.raises(LakeCorrupt, match="more than") as error:
        avro.read_container(raw, 100)
    assert "lake.max_metadata_bytes" in error.value.remedy


def test_arrays_in_sized_blocks_are_read() -> None:
    """Java writes arrays in blocks that say how many bytes they have: a negative count."""
    items = b"".join(avro.encode_long(value) for value in (5, 6))
    raw = (
        avro.encode_long(-2) + avro.encode_long(len(items)) + items + avro.encode_long(1) + avro.encode_long(7) + b"\0"
    )
    block = avro.Block(raw)
    assert avro.reader({"type": "array", "items": "long"})(block, 0) == ([5, 6, 7], len(raw))
    nested = {"type": "array", "items": {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}}
    assert avro.reader(nested)(block, 0) == ([{"a": 5}, {"a": 6}, {"a": 7}], len(raw))
    assert avro.skipper(nested)(block, 0) == len(raw)


def test_named_types_may_be_used_again() -> None:
    """A schema may name a record or fixed type that it defined before."""
    fixed = {"type": "fixed", "name": "sixteen", "size": 2}
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": fixed}, {"name": "b", "type": ["null", "sixteen"]}],
    }
    value = {"a": b"12", "b": b"34"}
    raw = avro.writer(schema)(value)
    assert avro.reader(schema)(avro.Block(raw), 0) == (value, 5)
    assert avro.writer(schema)({"a": b"12"}) == b"12\0"


def test_maps_and_enums_are_read_and_skipped() -> None:
    """Iceberg has none today; a field that has one must not break what stands behind it."""
    schema = {"type": "map", "values": {"type": "enum", "name": "e", "symbols": ["no", "yes"]}}
    raw = avro.Block(avro.encode_long(1) + avro.encode_bytes(b"key") + avro.encode_long(1) + b"\0")
    assert avro.reader(schema)(raw, 0) == ({"key": "yes"}, len(raw))
    assert avro.skipper(schema)(raw, 0) == len(raw)


def test_other_files_are_refused() -> None:
    """A manifest that is no Avro file is a damaged table, not a crash."""
    with pytest.raises(LakeCorrupt, match="not an Avro file"):
        avro.read_container(b"PAR1 and so on")


def test_an_unknown_codec_is_named() -> None:
    """A manifest that cannot be decompressed is refused by the codec's name."""
    raw = avro.write_container({"avro.schema": b'"long"'}, avro.encode_long(1), 1)
    with pytest.raises(LakeCorrupt, match="brotli!"):
        avro.read_container(raw.replace(b"\x0edeflate", b"\x0ebrotli!"))


NUMBERS = [
    ("more than 64 bits", b"\xff" * 11),
    ("more than 64 bits", b"\xff" * 9 + b"\x7f"),
]


@pytest.mark.parametrize(("problem", "raw"), NUMBERS)
def test_numbers_have_64_bits(problem: str, raw: bytes) -> None:
    """A number that goes on and on is refused, and not computed."""
    with pytest.raises(LakeCorrupt, match=problem):
        avro.read_long(raw, 0)


def _damaged(schema: Any, payload: bytes, count: int) -> bytes:
    return avro.write_container({"avro.schema": json.dumps(schema).encode()}, payload, count)


def _read_all(raw: bytes) -> list[Any]:
    container = avro.read_container(raw)
    return list(container.records(avro.reader(container.schema)))


def _record_of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


GIB = avro.encode_long(1 << 30)
EMPTY = {"type": "record", "name": "nothing", "fields": []}
DAMAGES = {
    "a length of 1 GiB": (_record_of("bytes"), GIB + b"x", 1, "a length is 1073741824, but 1 bytes are left"),
    "a length below zero": (_record_of("string"), avro.encode_long(-3) + b"x", 1, "a length is -3"),
    "a count of 2**62": (
        _record_of({"type": "array", "items": "long"}),
        avro.encode_long(1 << 62),
        1,
        "items follow, but 0 bytes are left",
    ),
    "empty records x 10**9": (EMPTY, b"", 10**9, "more than 131072 records"),
    "empty records": (EMPTY, b"", 10**5, "100000 records in 0 bytes"),
    "arrays of nothing": (
        _record_of({"type": "array", "items": EMPTY}),
        avro.encode_long(60_000) + bytes(1 << 20),
        1,
        "bytes follow the 1 records",
    ),
    "bytes behind the records": (_record_of("long"), b"\2\2\2", 1, "2 bytes follow the 1 records"),
    "too few records": (_record_of("long"), b"\2\2\2", 3, None),
    "a block that ends within a record": (_record_of("double"), b"\2\2\2", 1, "ends within record 1 of 1"),
    "a branch that is not there": (_record_of(["null", "long"]), b"\x06\2", 1, "branch 3 of a union of 2"),
    "a branch below zero": (_record_of(["null", "long"]), b"\1\2", 1, "branch -1 of a union of 2"),
    "neither true nor false": (_record_of("boolean"), b"\7", 1, "7 is neither true nor false"),
    "a text that is none": (_record_of("string"), b"\4\xff\xfe", 1, "is not UTF-8"),
    "an int of 64 bits": (_record_of("int"), GIB[:-1] + b"\xff\x7f", 1, "not a 32-bit number"),
    "a type that holds itself": (_record_of("r"), b"", 0, "a type that contains itself without end"),
    "types that double": (
        {
            "type": "record",
            "name": "t0",
            "fields": [
                {"name": f"f{n}", "type": {"type": "record", "name": f"t{n + 1}", "fields": [
                    {"name": "a", "type": f"t{n + 2}"}, {"name": "b", "type": f"t{n + 2}"}]}} for n in range(40)
            ] + [{"name": "last", "type": {"type": "record", "name": "t41", "fields": []}}],
        },
        b"\0",
        1,
        "its Avro schema has",
    ),
    "a type that is not there": (_record_of("nobody"), b"\0", 1, "has the type nobody"),
    "a type that is a number": (_record_of(7), b"\0", 1, "has the type 7"),
    "a schema that is a text": ("long", b"\2", 1, None),
    "a fixed type of negative size": (_record_of({"type": "fixed", "name": "f", "size": -1}), b"\0", 1, "has the type"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES)
def test_damage_is_named(case: str) -> None:
    """What a file says about itself is not believed: it ends in an error that says what was found, or in the truth."""
    schema, payload, count, problem = DAMAGES[case]
    if problem is None:
        _read_all(_damaged(schema, payload, count))
        return
    with pytest.raises(LakeCorrupt, match=problem) as error:
        _read_all(_damaged(schema, payload, count))
    assert error.value.code == "lake_corrupt"
    assert error.value.offset is not None


GOOD = _damaged(_record_of("long"), b"\2\2\2", 3)
PACKED = [
    ("nothing at all", b"", "not an Avro file"),
    ("only the magic", avro.MAGIC, "ends within its header"),
    ("half a header", GOOD[:40], "bytes are left"),
    ("no sync marker", GOOD[: GOOD.rindex(b"deflate") + 8], "ends within its header"),
    ("another sync marker", GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "sync marker"),
    ("a block of 1 GiB", GOOD.replace(b"\x06\n", b"\x06" + GIB), "3 records in 1073741824 bytes, but"),
    ("a file that was cut", GOOD[:-5], "bytes, but"),
    ("another codec", GOOD.replace(b"\x0edeflate", b"\x0a" + b"bzip2"), "bzip2"),
]


@pytest.mark.parametrize(("raw", "problem"), [case[1:] for case in PACKED], ids=[case[0] for case in PACKED])
def test_damaged_files_are_named(raw: bytes, problem: str) -> None:
    """A file that is cut or changed between its blocks is refused before anything is unpacked."""
    with pytest.raises(LakeCorrupt, match=problem):
        _read_all(raw)


def test_bombs_are_not_unpacked() -> None:
    """A few kilobytes that stand for gigabytes cost neither the time nor the memory."""
    raw = _damaged(_record_of("bytes"), bytes(65 << 20), 1)
    assert len(raw) < 100_000
    with pytest.raises(LakeCorrupt, match="more than 67108864 bytes"):
        avro.read_container(raw)
