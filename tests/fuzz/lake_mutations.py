"""Mutations of a table's files that keep their form: what is changed is a length, a count, a type, a place or a value.

Each says what may come of it: with HARMLESS the answers stay as they are; with DAMAGE they stay, or there is an error;
with VALUE the file is a valid one of another table, as far as anybody can tell, so that any answer will do.
"""

import bz2
import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterable
from copy import deepcopy
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any

from pyroaring import BitMap64
from tests.fuzz.lake_tables import position_deletes

from calve.capture import avro, deletion_vectors


class Effect(StrEnum):
    """What a mutation may do to the answers."""

    HARMLESS = "harmless"
    DAMAGE = "damage"
    VALUE = "value"


Mutate = Callable[[Random, bytes], bytes]
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 127, 128, 255, 1000, 65_535, 65_536, 2**31 - 1, 2**31, 2**32, -(2**31), 2**40),
    *(2**62, 2**63 - 1, -(2**63)),
)
BOMB = 70 << 20


# JSON: fields by type.

_TEXTS = (
    "",
    "x",
    "\0",
    "\ud800",
    "x" * 5_000,
    "main",
    "/etc/passwd",
    "/dev/zero",
    "NaN",
    "-1",
    "9" * 5_000,
    "truncate(x)",
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        4,
        2**31,
        2**53,
        2**63 - 1,
        2**63,
        -(2**63),
        2**70,
        10**400,
        1.5,
        1e308,
        float("inf"),
    ),
    *([], {}, [[]], [None], [{}], {"type": "struct"}, {"type": "list"}, {"": {}}, ["null", "long"]),
    *_TEXTS,
)


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return every container and key of a document."""
    found, left = [], [document]
    while left:
        here = left.pop()
        for key in here if isinstance(here, dict) else range(len(here)):
            found.append((here, key))
            if isinstance(here[key], dict | list):
                left.append(here[key])
    return found


def _value_for(random: Random, value: Any) -> Any:
    """Return another value: of the same type, or of any."""
    if random.random() < 0.5:
        return deepcopy(random.choice(_VALUES))
    if type(value) is int:
        return random.choice(NUMBERS + tuple(value + step for step in (-2, -1, 1, 2)))
    if isinstance(value, str):
        return random.choice([*_TEXTS, value + "x", value[:-1], value.upper(), value * 2])
    if isinstance(value, list):
        return deepcopy(random.choice([value * 2, value[:-1], value[::-1]]))
    return {**value, "more": 1} if isinstance(value, dict) else value


def edited_json(random: Random, document: Any) -> Any:
    """Change, remove, rename or copy a few fields of a document."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        places = _places(document)
        if not places:
            return document
        owner, key = random.choice(places)
        match random.randrange(6):
            case 0:
                del owner[key]
            case 1 if isinstance(owner, dict):
                owner[random.choice(["x", "type", "id", "fields", key.upper()])] = owner.pop(key)
            case 2:
                other, place = random.choice(places)
                owner[key] = deepcopy(other[place])
            case _:
                owner[key] = _value_for(random, owner[key])
    return document


def _dumped(random: Random, document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass")


def _json_fields(random: Random, raw: bytes) -> bytes:
    return _dumped(random, edited_json(random, json.loads(raw)))


def _json_cycle(random: Random, raw: bytes) -> bytes:
    document = json.loads(raw)
    snapshots = document["snapshots"]
    one, other = random.choice(snapshots), random.choice(snapshots)
    one["parent-snapshot-id"] = other["snapshot-id"]
    if random.random() < 0.5:
        other["parent-snapshot-id"] = one["snapshot-id"]
    return json.dumps(document).encode()


def _json_harmless(random: Random, raw: bytes) -> bytes:
    document = json.loads(raw)
    document["a-field-of-tomorrow"] = {"deep": [1, {"er": None}], "number": 2**80}
    for name in ("statistics", "partition-statistics"):
        document[name] = []
    shuffled = dict(random.sample(list(document.items()), len(document)))
    text = json.dumps(shuffled, indent=random.choice([None, 0, 3])).encode()
    return gzip.compress(text) if random.random() < 0.5 else text


def _json_text(random: Random, raw: bytes) -> bytes:
    """Break the text itself: its end, its encoding, its nesting, its numbers and its keys."""
    text = raw.decode()
    at = random.randrange(len(text))
    match random.randrange(10):
        case 0:
            return raw[:at]
        case 1:
            return text.replace("{", '{"format-version":2,', 1).encode()
        case 2:
            return (text[:at] + "[" * 200_000).encode()
        case 3:
            return ('{"a":' * 50_000 + "1" + "}" * 50_000).encode()
        case 4:
            return text.replace('"last-updated-ms": ', '"last-updated-ms": 9' + "9" * 5_000, 1).encode()
        case 5:
            return text.replace(
                '"snapshot-id":2', '"snapshot-id":' + random.choice(["NaN", "-Infinity", "2.0", "2e0"]), 1
            ).encode()
        case 6:
            return text.encode(random.choice(["utf-16", "utf-32", "utf-8-sig"]))
        case 7:
            return gzip.compress(raw)[: -random.randrange(1, 200)]
        case 8:
            return raw + random.choice([b"x", b"\0", b"{}", b"]"])
        case _:
            return random.choice([b"", b"null", b"[]", b"7", b'"x"', b"\x1f\x8b", b"\xff\xfe", b"{}"])


@cache
def _json_bomb(kind: int) -> bytes:
    many = b'{"format-version":2,"a":[' + b",".join([b"{}"] * 3_000_000) + b"]}"
    return [gzip.compress(b" " * BOMB + b"{}", 1), many][kind]


def _json_bombs(random: Random, _: bytes) -> bytes:
    kind = random.randrange(3)
    return _json_bomb(kind) if kind < 2 else b'{"a":"' + b"x" * BOMB + b'"}'  # too large to be kept


def _json_many(random: Random, raw: bytes) -> bytes:
    """Fill metadata with as many snapshots, columns, properties or keys as just fit."""
    document = json.loads(raw)
    match random.randrange(4):
        case 0:
            line = [{"snapshot-id": n, "timestamp-ms": 1, "parent-snapshot-id": n - 1} for n in range(5, 200_000)]
            document["snapshots"] += line[:: random.choice([1, -1])]
        case 1:
            document["schemas"][0]["fields"] += [{"id": n, "name": "a", "type": "int"} for n in range(9, 200_000)]
        case 2:
            document["properties"] |= {f"k{n}": "v" for n in range(900_000)}
        case _:
            pairs = ",".join(f'"k{n % 800_000}":{n}' for n in range(900_000))
            return ("{" + pairs + "}").encode()
    return json.dumps(document).encode()


# Avro containers.


def unpacked(raw: bytes) -> tuple[dict[str, bytes], list[tuple[int, bytes]]]:
    """Return the header and the decompressed blocks of a container file."""
    container = avro.read_container(raw)
    return container.header, [(count, bytes(block)) for count, block in container.blocks]


def _packed(codec: str, payload: bytes) -> bytes:
    if codec == "deflate":
        return zlib.compress(payload)[2:-4]
    if codec == "bzip2":
        return bz2.compress(payload)
    if codec == "zstandard":
        from zstandard import ZstdCompressor

        return ZstdCompressor().compress(payload)
    if codec == "snappy":
        import pyarrow as pa

        packed: bytes = pa.Codec("snappy").compress(payload, asbytes=True)
        return packed + struct.pack(">I", zlib.crc32(payload))
    return payload


def container(
    header: dict[str, bytes],
    blocks: Iterable[tuple[int, bytes]],
    codec: str = "deflate",
    *,
    named: str | None = None,
    size: int | None = None,
    syncs: tuple[bytes, bytes] = (b"s" * 16, b"s" * 16),
) -> bytes:
    """Write a container file, true to its parts or not."""
    parts = {**header, "avro.codec": (codec if named is None else named).encode()}
    pairs = [avro.encode_bytes(key.encode()) + avro.encode_bytes(value) for key, value in parts.items()]
    out = [avro.MAGIC, avro.encode_long(len(pairs)), *pairs, b"\0", syncs[0]]
    for count, payload in blocks:
        packed = _packed(codec, payload)
        out += [avro.encode_long(count), avro.encode_long(len(packed) if size is None else size), packed, syncs[1]]
    return b"".join(out)


CODECS = ("null", "deflate", "bzip2", "zstandard", "snappy")


def _avro_recompressed(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    return container({**header, "more": random.randbytes(9)}, blocks, random.choice(CODECS))


def _avro_renamed(random: Random, raw: bytes) -> bytes:
    """Give the fields of a record other names: their ids are what counts."""
    header, blocks = unpacked(raw)
    schema = json.loads(header["avro.schema"])
    record = random.choice(
        [schema, *(f["type"] for f in schema["fields"] if isinstance(f["type"], dict) and "fields" in f["type"])]
    )
    if any("field-id" not in field or field["field-id"] > 2**30 for field in record["fields"]):
        return raw
    for field in record["fields"]:
        field["name"] = f"the_{field['name']}"
    return container({**header, "avro.schema": json.dumps(schema).encode()}, blocks)


def _avro_counts(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    at = random.randrange(len(blocks)) if blocks else 0
    wrong = random.choice([count for count in (*NUMBERS, 10**9) if not blocks or count != blocks[at][0]])
    payload = random.choice([blocks[at][1] if blocks else b"", b"", bytes(1000)])
    new = [(wrong, payload)]
    return container(header, [*blocks[:at], *new, *blocks[at + 1 :]])


def _avro_sizes(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    return container(header, blocks, random.choice(CODECS), size=random.choice([*NUMBERS[1:], 1 << 30]))


def _avro_syncs(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    return container(header, blocks, syncs=(b"s" * 16, random.choice([b"t" * 16, b"s" * 15, b"", b"s" * 17])))


def _avro_codec(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    codec = random.choice(CODECS)
    named = random.choice([name for name in (*CODECS, "lzma", "", "Deflate", "x" * 500, "\u00e9") if name != codec])
    return container(header, blocks, codec, named=named)


def _avro_cut(random: Random, raw: bytes) -> bytes:
    return raw[: random.randrange(len(raw))]


def _avro_header(random: Random, raw: bytes) -> bytes:
    header, blocks = unpacked(raw)
    header = dict(header)
    match random.randrange(4):
        case 0:
            del header[random.choice(list(header))]
        case 1:
            header["avro.schema"] = random.choice([b"", b"x", b'"long"', b"[]", b"{}", b"7", b"[" * 100_000, b"null"])
        case 2:
            key = random.choice(list(header))
            header[key] = header[key][: random.randrange(len(header[key]) + 1)]
        case _:
            pairs = avro.encode_long(random.choice(NUMBERS)) + avro.encode_bytes(b"avro.schema")
            return avro.MAGIC + pairs + avro.encode_long(random.choice(NUMBERS)) + raw[40:]
    return container(header, blocks)


def _avro_schema(random: Random, raw: bytes) -> bytes:
    """Change types, names and field ids in the schema; the records stay."""
    header, blocks = unpacked(raw)
    key = "schema" if "schema" in header and random.random() < 0.2 else "avro.schema"
    document = edited_json(random, json.loads(header[key]))
    if random.random() < 0.3 and isinstance(document, dict):
        fields = [owner for owner, place in _places(document) if place == "type"]
        if fields:
            random.choice(fields)["type"] = random.choice(
                [
                    *("null", "boolean", "int", "long", "float", "double", "bytes", "string", "r2", "manifest_entry"),
                    *(["null", "string"], ["long"], [], {"type": "fixed", "name": "f", "size": random.choice(NUMBERS)}),
                    *({"type": "array", "items": "null"}, {"type": "map", "values": "long"}),
                    {"type": "array", "items": {"type": "record", "name": "e", "fields": []}},
                ]
            )
    return container({**header, key: _dumped(random, document)}, blocks)


def _avro_bytes(random: Random, raw: bytes) -> bytes:
    """Change lengths, counts and branches in the records, wherever they are."""
    header, blocks = unpacked(raw)
    if not blocks:
        return raw
    at = random.randrange(len(blocks))
    payload = bytearray(blocks[at][1])
    for _ in range(random.choice([1, 1, 2, 5])):
        place = random.randrange(len(payload) + 1)
        match random.randrange(4):
            case 0 if place < len(payload):
                payload[place] = random.randrange(256)
            case 1:
                payload[place : place + 1] = avro.encode_long(random.choice(NUMBERS))
            case 2:
                payload[place:place] = b"\xff" * random.randrange(1, 12)
            case _:
                del payload[place : place + random.randrange(1, 9)]
    return container(header, [*blocks[:at], (blocks[at][0], bytes(payload)), *blocks[at + 1 :]])


def _avro_values(random: Random, raw: bytes) -> bytes:
    """Change values of the records, which stay well-formed."""
    header, _ = unpacked(raw)
    whole = avro.read_container(raw)
    records = list(whole.records(avro.reader(whole.schema)))
    if not records:
        return raw
    document = records
    for _ in range(random.choice([1, 1, 2, 3])):
        owner, key = random.choice(_leaves(document))
        value = owner[key]
        if type(value) is int:
            owner[key] = random.choice(NUMBERS)
        elif isinstance(value, str):
            owner[key] = random.choice([text for text in _TEXTS if text.isprintable() or text == "\0"])
        elif isinstance(value, bytes):
            owner[key] = random.choice([b"", b"\0", value + b"\0", b"\xff" * 8, bytes(20), bytes(5_000)])
        else:
            owner[key] = None if random.random() < 0.5 else owner[key]
    document = [*document, *document[:1]] if random.random() < 0.05 else document
    write = avro.writer(whole.schema)
    try:
        payload = b"".join(write(record) for record in document)
    except (TypeError, AttributeError, StopIteration):
        return raw
    return container(header, [(len(document), payload)])


def _leaves(document: Any) -> list[tuple[Any, Any]]:
    return [(owner, key) for owner, key in _places(document) if not isinstance(owner[key], dict | list)]


@cache
def _bomb(codec: str) -> bytes:
    return _packed(codec, bytes(BOMB))


def _avro_bombs(random: Random, raw: bytes) -> bytes:
    """Replace a block by a few kilobytes that stand for many megabytes."""
    header, _ = unpacked(raw)
    codec = random.choice(CODECS[1:])
    head = container(header, [], codec)
    packed = _bomb(codec)
    return head + avro.encode_long(random.choice([1, 1000, 10**9])) + avro.encode_bytes(packed) + b"s" * 16


def _avro_floods(random: Random, raw: bytes) -> bytes:
    """Write one huge array or map, or very many small records, of not quite too many bytes."""
    header, _ = unpacked(raw)
    size = random.choice([1 << 20, 16 << 20])
    payload = random.choice([b"\0", b"\2", b"\2\0"]) * (size // 2)
    payload = b"\2\2\2\2\2" + avro.encode_long(size) + payload if random.random() < 0.5 else payload
    return container(header, [(random.choice([1, 1000, 100_000, size // 2]), payload)], "zstandard")


# Deletion vectors: Roaring's containers, behind a checksum that fits.


def _framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


_VECTOR = b"\xd1\xd3\x39\x64"


def _vector_bytes(random: Random, raw: bytes) -> bytes:
    """Change keys, counts, positions and runs; the checksum is made to fit, and the place too."""
    size = int.from_bytes(raw[4:8], "big")
    data = bytearray(raw[8 : 8 + size])
    for _ in range(random.choice([1, 1, 2, 6])):
        place = random.randrange(4, len(data))
        width = random.choice([1, 2, 4])
        data[place : place + width] = (random.choice(NUMBERS) & (256**width - 1)).to_bytes(width, "little")
    data = data[:size]
    return raw[:4] + _framed(bytes(data)) + raw[12 + size :]


def _vector_other(random: Random, raw: bytes) -> bytes:
    """Put other vectors, valid ones too, in place of the first."""
    size = int.from_bytes(raw[4:8], "big")
    positions = BitMap64(random.sample(range(100), 22)) if random.random() < 0.5 else BitMap64([2**62, 5, 2**33])
    if random.random() < 0.3:
        positions = BitMap64(range(random.choice([10, 5_000, 100_000])))
    new = deletion_vectors.encode(positions)
    return raw[:4] + new[: size + 8].ljust(size + 8, b"\0") + raw[12 + size :]


def _vector_frame(random: Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    changed[random.randrange(4, 12)] ^= 1 << random.randrange(8)
    return bytes(changed)


def _vector_counts(random: Random, raw: bytes) -> bytes:
    """Say that there are more bitmaps, containers or runs than can be."""
    size = int.from_bytes(raw[4:8], "big")
    many = random.choice(NUMBERS) & (2**64 - 1)
    cookie = random.choice([12346, 12347 | (random.randrange(65536) << 16), 0, 2**32 - 1])
    data = _VECTOR + struct.pack("<QII", many, 0, cookie) + random.randbytes(max(size - 20, 0))
    return raw[:4] + _framed(data[:size]) + raw[12 + size :]


# Position deletes.


def _flipped(random: Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    for _ in range(random.choice([1, 1, 2, 8])):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _footer_flipped(random: Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    size = int.from_bytes(raw[-8:-4], "little")
    for _ in range(random.choice([1, 1, 2, 5])):
        changed[random.randrange(max(len(raw) - size - 8, 0), len(raw))] = random.randrange(256)
    return bytes(changed)


def _rows(random: Random, _: bytes) -> bytes:
    """Write rows that cannot be: negative, null, of other types, and far too many."""
    import io

    import pyarrow as pa
    from pyarrow import parquet

    paths: Any = pa.array(["x"] * 44)
    positions: Any = pa.array(range(44), pa.int64())
    match random.randrange(5):
        case 0:
            positions = pa.array([*range(43), -5], pa.int64())
        case 1:
            positions = pa.array([*range(43), None], pa.int64())
        case 2:
            positions = pa.array([str(n) for n in range(44)])
        case 3:
            paths = pa.array(range(44), pa.int64())
        case _:
            paths = pa.array([f"p{n}" for n in range(44)])
    names = random.choice([["file_path", "pos"], ["path", "pos"], ["pos", "file_path"], ["file_path", "file_path"]])
    out = io.BytesIO()
    parquet.write_table(
        pa.table([paths, positions], names=names), out, compression=random.choice(["none", "zstd", "snappy"])
    )
    return out.getvalue()


@cache
def _row_bomb(rows: int) -> bytes:
    return position_deletes([("x", 0)] * rows, "PARQUET", compression="zstd")


def _row_bombs(random: Random, _: bytes) -> bytes:
    return _row_bomb(random.choice([100_000, 2_000_000]))


def _anything(random: Random, raw: bytes) -> bytes:
    return random.choice(
        [b"", b"\0", raw * 2, raw[::-1], random.randbytes(200), b"PAR1", b"Obj\1", b"PFA1", raw + b"\0"]
    )


_AVRO: dict[str, tuple[Mutate, Effect, float]] = {
    "recompressed": (_avro_recompressed, Effect.HARMLESS, 4),
    "renamed": (_avro_renamed, Effect.HARMLESS, 3),
    "counts": (_avro_counts, Effect.VALUE, 10),
    "sizes": (_avro_sizes, Effect.DAMAGE, 8),
    "syncs": (_avro_syncs, Effect.DAMAGE, 3),
    "codec": (_avro_codec, Effect.DAMAGE, 5),
    "cut": (_avro_cut, Effect.VALUE, 6),
    "header": (_avro_header, Effect.VALUE, 8),
    "schema": (_avro_schema, Effect.VALUE, 30),
    "bytes": (_avro_bytes, Effect.VALUE, 30),
    "values": (_avro_values, Effect.VALUE, 30),
    "flipped": (_flipped, Effect.VALUE, 10),
    "anything": (_anything, Effect.DAMAGE, 2),
    "bombs": (_avro_bombs, Effect.DAMAGE, 1),
    "floods": (_avro_floods, Effect.VALUE, 1),
}
MUTATIONS: dict[str, dict[str, tuple[Mutate, Effect, float]]] = {
    "metadata": {
        "fields": (_json_fields, Effect.VALUE, 80),
        "cycle": (_json_cycle, Effect.VALUE, 8),
        "harmless": (_json_harmless, Effect.HARMLESS, 8),
        "text": (_json_text, Effect.DAMAGE, 20),
        "flipped": (_flipped, Effect.VALUE, 15),
        "anything": (_anything, Effect.DAMAGE, 3),
        "bombs": (_json_bombs, Effect.DAMAGE, 1),
        "many": (_json_many, Effect.VALUE, 0.2),
    },
    "avro": _AVRO,
    "puffin": {
        "bytes": (_vector_bytes, Effect.VALUE, 60),
        "other": (_vector_other, Effect.VALUE, 20),
        "frame": (_vector_frame, Effect.DAMAGE, 10),
        "counts": (_vector_counts, Effect.DAMAGE, 20),
        "anything": (_anything, Effect.DAMAGE, 5),
        "cut": (_avro_cut, Effect.VALUE, 5),
    },
    "parquet": {
        "footer": (_footer_flipped, Effect.VALUE, 50),
        "flipped": (_flipped, Effect.VALUE, 40),
        "rows": (_rows, Effect.VALUE, 20),
        "anything": (_anything, Effect.DAMAGE, 3),
        "cut": (_avro_cut, Effect.VALUE, 5),
        "bombs": (_row_bombs, Effect.VALUE, 1),
    },
}
"""By kind of file: what is done, what may come of it, and how often."""


def kind_of(name: str, deletes: str) -> str:
    """Return the kind of a table's file."""
    if name.endswith(".json"):
        return "metadata"
    if name == "deletes":
        return {"AVRO": "avro"}.get(deletes, "parquet")
    return "puffin" if name.endswith(".puffin") else "avro"


def mutated(random: Random, kind: str, raw: bytes) -> tuple[str, Effect, bytes]:
    """Return the name of a mutation, what may come of it, and a file that it was done to."""
    choices = MUTATIONS[kind]
    name = random.choices(list(choices), [weight for _, _, weight in choices.values()])[0]
    mutate, effect, _ = choices[name]
    return name, effect, mutate(random, raw)
