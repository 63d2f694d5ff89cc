"""Position-delete files of format v2: which rows of which data files are deleted, in Parquet, ORC or Avro.

The libraries that read these formats trust the sizes that a file claims. So the pages of Parquet are measured before
they are decompressed, and ORC, whose sizes cannot be checked first, is read in a separate process with limited memory.
"""

import io
import subprocess
import sys
from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap64

from calve.capture import avro
from calve.errors import LakeCorrupt
from calve.lake import shown, too_large

if TYPE_CHECKING:
    import pyarrow as pa

TIMES = 4
"""How many times larger than other metadata these files may be, because they contain rows."""
_COLUMNS = ["file_path", "pos"]
_BYTES_PER_FILE = 512
_BYTES_PER_ROW = 16
_BATCH = 1 << 16
_DEEPEST = 8
_MOST_VALUES = 1_000_000
_ORC_SECONDS = 60
_ORC_MEMORY = 2 << 30


def read(raw: bytes, file_format: str, records: int, limit: int) -> dict[str, BitMap64]:
    """Return the deleted positions of each data file.

    Args:
        raw: the file.
        file_format: as named in the manifest.
        records: how many rows the file has, according to its manifest.
        limit: how many bytes metadata may have.

    Raises:
        LakeCorrupt: the file is damaged, or does not match its manifest.
    """
    limit *= TIMES
    found: dict[str, BitMap64] = {}
    rows = 0
    for path, positions in _parts(raw, file_format.upper(), limit):
        rows += len(positions)
        # The positions were read as unsigned: a negative one has the highest bit set.
        if positions and max(positions) >> 63:
            raise LakeCorrupt(f"a position in {shown(path)} is below zero")
        found.setdefault(path, BitMap64()).update(positions)
        if len(found) > limit // _BYTES_PER_FILE:
            raise too_large(f"it names more than {limit // _BYTES_PER_FILE} files")
    # A reader that stopped early would leave deleted rows in the change, without any error.
    if rows != records:
        raise LakeCorrupt(f"it has {rows} rows, and its manifest says {records}")
    return found


def _parts(raw: bytes, file_format: str, limit: int) -> Iterator[tuple[str, "array[int]"]]:
    match file_format:
        case "PARQUET":
            return _grouped(_from_parquet(raw, limit))
        case "ORC":
            return _grouped(_from_orc(raw, limit))
        case "AVRO":
            return _from_avro(raw, limit)
        case _:
            raise LakeCorrupt(f"position deletes are in the format {shown(file_format)}")


def _grouped(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[str, "array[int]"]]:
    """Yield the positions of each data file in each batch, without repeating the path for each row."""
    import pyarrow as pa

    for batch in batches:
        paths, positions = batch.column(0), batch.column(1)
        if not pa.types.is_dictionary(paths.type):
            paths = paths.dictionary_encode()
        is_fit = pa.types.is_string(paths.type.value_type) and positions.type == pa.int64()
        if not is_fit or paths.null_count or positions.null_count:
            raise LakeCorrupt("a row is not a path and a position")
        names, rows = paths.dictionary, pa.table({"path": paths.indices, "pos": positions})
        for row in rows.group_by("path").aggregate([("pos", "list")]).to_batches():
            for number, found in zip(row.column("path"), row.column("pos_list"), strict=True):
                yield names[number.as_py()].as_py(), _numbers(found.values)


def _numbers(positions: "pa.Int64Array") -> "array[int]":
    found = array("Q")
    buffer, start = positions.buffers()[1], positions.offset * 8
    found.frombytes(memoryview(buffer)[start : start + len(positions) * 8])
    return found


# Parquet. Its footer and the heads of its pages are read here too, because the library ends the process over some.


def _from_parquet(raw: bytes, limit: int) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    from pyarrow import parquet

    try:
        _check_pages(raw, limit)
    except (LookupError, TypeError, AttributeError) as error:
        raise LakeCorrupt("its Parquet metadata is not valid") from error
    try:
        # read_dictionary: thousands of rows share one path. pre_buffer off: no thread of Arrow outlives an error.
        file = parquet.ParquetFile(io.BytesIO(raw), read_dictionary=_COLUMNS[:1], pre_buffer=False)
        yield from file.iter_batches(_BATCH, columns=_COLUMNS, use_threads=False)
    except (OSError, LookupError, pa.ArrowException) as error:
        raise LakeCorrupt(f"it is not a Parquet file that can be read: {shown(str(error))}") from error


def _check_pages(raw: bytes, limit: int) -> None:
    """Check by the footer and the page headers that the decompressed pages fit into the limit.

    Raises:
        LakeCorrupt: they do not, or a page is missing.
    """
    size = int.from_bytes(raw[-8:-4], "little")
    if len(raw) < 12 or raw[:4] != b"PAR1" or raw[-4:] != b"PAR1" or size > len(raw) - 12:
        raise LakeCorrupt("it is not a Parquet file, or it was cut", offset=max(len(raw) - 8, 0))
    footer = _Thrift(raw, len(raw) - 8 - size, len(raw) - 8).struct()
    unpacked = rows = 0
    for group in footer[_GROUPS]:
        rows += group[_ROWS]
        for column in (chunk[_COLUMN] for chunk in group[_CHUNKS]):
            if column[_PATH] not in ([b"file_path"], [b"pos"]):
                continue
            start, first = column[_DATA_PAGES], column.get(_DICTIONARY, 0)
            start = first if 0 < first < start else start
            for page in _page_sizes(raw, start, start + column[_PACKED]):
                unpacked += page
                if unpacked > limit:
                    raise too_large(f"its pages have more than {limit} bytes", start)
    if rows > limit // _BYTES_PER_ROW:
        raise too_large(f"it has {rows} rows")


def _page_sizes(raw: bytes, at: int, end: int) -> Iterator[int]:
    """Yield the decompressed size of each page of a column."""
    if not 0 < at <= end <= len(raw):
        raise LakeCorrupt(f"a column goes from byte {at} to {end}, and the file has {len(raw)}", offset=max(at, 0))
    while at < end:
        head = _Thrift(raw, at, end)
        sizes = head.struct()
        unpacked, packed = sizes[_PAGE_UNPACKED], sizes[_PAGE_PACKED]
        if unpacked < 0 or not 0 <= packed <= end - head.at:
            raise LakeCorrupt(f"a page says that it has {packed} bytes, and {unpacked} unpacked", offset=at)
        yield unpacked
        at = head.at + packed


_I32, _I64, _LIST, _STRUCT = 5, 6, 9, 12
"""Types of Thrift's compact protocol. Readers ignore a field that has another type than the one defined for it."""
_ROWS, _GROUPS = (3, _I64), (4, _LIST)
_CHUNKS, _COLUMN = (1, _LIST), (3, _STRUCT)
_PATH, _PACKED, _DATA_PAGES, _DICTIONARY = (3, _LIST), (7, _I64), (9, _I64), (11, _I64)
_PAGE_UNPACKED, _PAGE_PACKED = (2, _I32), (3, _I32)


class _Thrift:
    """Reads Thrift's compact protocol, in which Parquet writes its metadata."""

    def __init__(self, raw: bytes, at: int, end: int) -> None:
        self.at = at
        self._raw = raw
        self._end = end
        self._left = _MOST_VALUES

    def struct(self, depth: int = 0) -> dict[tuple[int, int], Any]:
        """Read a struct: its values by the number and the type of each field.

        Raises:
            LakeCorrupt: it does not end properly.
        """
        found: dict[tuple[int, int], Any] = {}
        number = 0
        while head := self._byte():
            if head >> 4:
                number += head >> 4
            else:
                number = self._number()
            found[number, head & 15] = self._value(head & 15, depth, in_list=False)
        return found

    def _value(self, kind: int, depth: int, *, in_list: bool) -> Any:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise LakeCorrupt("its Parquet metadata is nested too deep, or does not end", offset=self.at)
        match kind:
            case 1 | 2:  # a boolean, whose value is in the type itself, except in a list
                return self._byte() == 1 if in_list else kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._number()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._size())
            case 9 | 10:
                return self._list(depth + 1)
            case 12:
                return self.struct(depth + 1)
            case _:
                raise LakeCorrupt(f"its Parquet metadata has a value of the unknown type {kind}", offset=self.at)

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = self._size() if head >> 4 == 15 else head >> 4
        return [self._value(head & 15, depth, in_list=True) for _ in range(self._some(size))]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, size: int) -> bytes:
        self.at += self._some(size)
        return self._raw[self.at - size : self.at]

    def _number(self) -> int:
        value, self.at = avro.read_long(self._raw, self.at)
        return value

    def _size(self) -> int:
        value = self._number()
        return ~(value << 1) if value < 0 else value << 1  # sizes are written as they are, and read as zigzag

    def _some(self, size: int) -> int:
        """Return a number of bytes or items, compared with the remaining bytes."""
        if not 0 <= size <= self._end - self.at:
            raise LakeCorrupt(f"a length is {size}, but {self._end - self.at} bytes are left", offset=self.at)
        return size


# Avro.


def _from_avro(raw: bytes, limit: int) -> Iterator[tuple[str, "array[int]"]]:
    container = avro.read_container(raw, limit)
    compiler = avro.compiler(container.schema)
    parts = [
        (
            field["name"],
            compiler.reader(field["type"]) if field["name"] in _COLUMNS else avro.skip_reader(compiler, field),
        )
        for _, field in avro.fields(container.schema)
    ]
    for record in container.records(avro.record_reader(parts)):
        path, position = (record.get(name) for name in _COLUMNS)
        if not isinstance(path, str) or type(position) is not int or position < 0:
            raise LakeCorrupt(f"a row contains {shown(path)} and {shown(position)}, not a path and a position")
        yield path, array("Q", [position])


# ORC.


def _from_orc(raw: bytes, limit: int) -> "Iterator[pa.RecordBatch]":
    """Read ORC in a process with limited memory, which may crash."""
    import pyarrow as pa

    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            # -P: nothing from the current folder can take the place of pyarrow.
            [sys.executable, "-P", "-c", _READ_ORC, str(_ORC_MEMORY), str(limit // _BYTES_PER_ROW)],
            input=raw,
            capture_output=True,
            timeout=_ORC_SECONDS,
            env={"ARROW_DEFAULT_MEMORY_POOL": "system"},  # even if the file takes it over, it has no secrets
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LakeCorrupt(f"reading it took longer than {_ORC_SECONDS} s") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise LakeCorrupt(f"it is not an ORC file that can be read: {shown(last) or 'the reader died'}")
    with pa.ipc.open_stream(done.stdout) as stream:
        yield from stream


_READ_ORC = f"""
import io, resource, sys
import pyarrow as pa
from pyarrow import orc
memory, rows = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
file = orc.ORCFile(io.BytesIO(sys.stdin.buffer.read()))
if file.nrows > rows:
    sys.exit(f"it has {{file.nrows}} rows")
table = file.read(columns={_COLUMNS!r}).select({_COLUMNS!r})
table = table.set_column(0, "file_path", table.column(0).dictionary_encode())
with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as out:
    out.write_table(table)
"""
