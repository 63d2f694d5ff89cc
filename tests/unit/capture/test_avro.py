"""The Avro codec: whatever a manifest may look like, what is written is read, skipped or copied unchanged."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.decoder import new_decoder

from calve.capture import avro
from calve.errors import LakeError


@dataclass(frozen=True)
class Kind:
    """A schema, values of it, and what they read as."""

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]
    """Pairs of what is written and what is read."""


def _plain(schema: Any, values: st.SearchStrategy[Any]) -> Kind:
    return Kind(schema, values.map(lambda value: (value, value)))


INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
NATURALS = st.integers(0, 2**31 - 1)
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
    if kind.schema in ("int", "long"):  # read in one go by PyIceberg, which knows no negative ones; nor does Iceberg
        kind = _plain(kind.schema, NATURALS)
    pairs = st.lists(kind.values, max_size=4)
    values = pairs.map(lambda items: ([item[0] for item in items], [item[1] for item in items]))
    return Kind({"type": "array", "items": kind.schema, "element-id": 1}, values)


def _int_map(kind: Kind) -> Kind:
    """Return what Iceberg writes for a map with integer keys; it is read as a dictionary."""
    fields = [
        {"name": "key", "type": "int", "field-id": 1},
        {"name": "value", "type": kind.schema, "field-id": 2},
    ]
    items = {"type": "record", "name": f"k_v_{next(_names)}", "fields": fields}
    values = st.dictionaries(NATURALS, kind.values.map(lambda pair: pair[0]), max_size=4).map(
        lambda found: ([{"key": key, "value": value} for key, value in found.items()], found)
    )
    return Kind({"type": "array", "logicalType": "map", "items": items}, values)


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
        | st.sampled_from([_plain("long", NATURALS), _plain("bytes", st.binary())]).map(_int_map)
        | st.lists(inner, max_size=4).map(_record)
    ),
    max_leaves=8,
)


@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """For any schema, a value comes back, and both reading and skipping stop right behind it."""
    kind = data.draw(KINDS)
    written, read = data.draw(kind.values)
    raw = avro.writer(kind.schema)(written) + avro.encode_long(-77)
    decoder = new_decoder(raw)
    assert avro.reader(kind.schema)(decoder) == read
    assert decoder.read_int() == -77
    decoder = new_decoder(raw)
    avro.skipper(kind.schema, avro.named_types(kind.schema))(decoder)
    assert decoder.read_int() == -77


@given(st.data())
def test_containers_keep_header_and_records(data: st.DataObject) -> None:
    """What goes into a file comes out of it, and the header's schema is kept to the letter."""
    kind = _record([data.draw(KINDS)])
    pairs = data.draw(st.lists(kind.values, max_size=5))
    schema = json.dumps(kind.schema, indent=3)
    write = avro.writer(kind.schema)
    raw = avro.write_container(
        {"avro.schema": schema.encode(), "other": b"\0kept"}, b"".join(write(pair[0]) for pair in pairs), len(pairs)
    )
    container = avro.read_container(raw)
    assert (container.header["avro.schema"].decode(), container.header["other"]) == (schema, b"\0kept")
    assert avro.read_records(container) == [pair[1] for pair in pairs]


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2"])
def test_blocks_of_any_codec_are_read(codec: str) -> None:
    """Writers choose how to compress, and how many records stand in a block."""
    compressor: Any = KNOWN_CODECS[codec]  # type: ignore[index]
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
    found = avro.read_records(avro.read_container(raw))
    assert [record["a"] for record in found] == [1, 2, 3, 4, *range(100, 300)]


def test_arrays_in_sized_blocks_are_read() -> None:
    """Java writes arrays in blocks that say how many bytes they have: a negative count."""
    items = b"".join(avro.encode_long(value) for value in (5, 6))
    raw = (
        avro.encode_long(-2) + avro.encode_long(len(items)) + items + avro.encode_long(1) + avro.encode_long(7) + b"\0"
    )
    kind = {"type": "array", "items": "long"}
    assert avro.reader(kind)(new_decoder(raw)) == [5, 6, 7]
    nested = {"type": "array", "items": {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}}
    assert avro.reader(nested)(new_decoder(raw)) == [{"a": 5}, {"a": 6}, {"a": 7}]
    decoder = new_decoder(raw + b"\x08")
    avro.skipper(nested, avro.named_types(nested))(decoder)
    assert decoder.read_int() == 4


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
    assert avro.reader(schema)(new_decoder(raw)) == value
    assert avro.writer(schema)({"a": b"12"}) == b"12\0"


def test_maps_and_enums_are_read_and_skipped() -> None:
    """Iceberg has none today; a field that has one must not break what stands behind it."""
    schema = {"type": "map", "values": {"type": "enum", "name": "e", "symbols": ["no", "yes"]}}
    raw = avro.encode_long(1) + avro.encode_bytes(b"key") + avro.encode_long(1) + b"\0" + b"\x08"
    decoder = new_decoder(raw)
    assert avro.reader(schema)(decoder) == {"key": "yes"}
    decoder = new_decoder(raw)
    avro.skipper(schema, avro.named_types(schema))(decoder)
    assert decoder.read_int() == 4


def test_other_files_are_refused() -> None:
    """A manifest that is no Avro file is a damaged table, not a crash."""
    with pytest.raises(LakeError, match="not an Avro file"):
        avro.read_container(b"PAR1 and so on")


def test_an_unknown_codec_is_named() -> None:
    """A manifest that cannot be decompressed is refused by the codec's name."""
    raw = avro.write_container({"avro.schema": b'"long"'}, avro.encode_long(1), 1)
    with pytest.raises(LakeError, match="brotli!"):
        avro.read_container(raw.replace(b"\x0edeflate", b"\x0ebrotli!"))
