"""Position-delete files of format v2: which rows of which data files are gone, in Parquet, ORC or Avro.

The libraries that read these formats believe sizes which a file only claims. So the pages of Parquet are measured
before they are unpacked, and ORC, which tells less, is read by a process of its own with a limit on its memory.
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
"""How many times larger than other metadata these files may be: they hold rows."""
_COLUMNS = ["file_path", "pos"]
_BYTES_PER_FILE = 512
_BATCH = 1 << 16
_DEEPEST = 8
_ORC_SECONDS = 60
_ORC_MEMORY = 2 << 30


def read(raw: bytes, file_format: str, records: int, limit: int) -> dict[str, BitMap64]:
    """Return the deleted positions of each data file.

    Args:
        raw: the file.
        file_format: as the manifest names it.
        records: how many rows the manifest says that the file has.
        limit: how many bytes metadata may have.

    Raises:
        LakeCorrupt: the file is not what it should be.
    """
    limit *= TIMES
    found: dict[str, BitMap64] = {}
    rows = 0
    for path, positions in _parts(raw, file_format.upper(), limit):
        rows += len(positions)
        if positions and max(positions) >> 63:
            raise LakeCorrupt(f"a position in {shown(path)} is below zero")
        found.setdefault(path, BitMap64()).update(positions)
        if len(found) > limit // _BYTES_PER_FILE:
            raise too_large(f"it names more than {limit // _BYTES_PER_FILE} files")
    if rows != records:
        raise LakeCorrupt(f"it has {rows} rows, and its manifest says {records}")
    return found


def _parts(raw: bytes, file_format: str, limit: int) -> Iterator[tuple[str, "array[int]"]]:
    match file_format:
        case "PARQUET":
            return _grouped(_from_parquet(raw, limit))
        case "ORC":
            return _grouped(_from_orc(raw))
        case "AVRO":
            return _from_avro(raw, limit)
        case _:
            raise LakeCorrupt(f"position deletes are in the format {shown(file_format)}")


def _grouped(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[str, "array[int]"]]:
    """Yield the positions of each data file in each batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        table = pa.table({"file_path": batch.column(0).cast(pa.string()), "pos": batch.column(1)})
        if table.schema.field("pos").type != pa.int64() or any(column.null_count for column in table.columns):
            raise LakeCorrupt("its rows are not a path and a position each")
        paths = pc.unique(table.column("file_path"))
        if len(paths) == 1:  # as nearly always
            parts = [(paths[0].as_py(), table.column("pos").combine_chunks())]
        else:
            grouped = table.group_by("file_path").aggregate([("pos", "list")])
            parts = [(row["file_path"], pa.array(row["pos_list"], pa.int64())) for row in grouped.to_pylist()]
        for path, positions in parts:
            found = array("Q")
            buffer, start = positions.buffers()[1], positions.offset * 8
            found.frombytes(memoryview(buffer)[start : start + len(positions) * 8])
            yield path, found


# Parquet.


def _from_parquet(raw: bytes, limit: int) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(
            io.BytesIO(raw), thrift_string_size_limit=1 << 24, thrift_container_size_limit=1 << 16, pre_buffer=False
        )
        _check_pages(raw, file.metadata, limit)
        yield from file.iter_batches(_BATCH, columns=_COLUMNS, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise LakeCorrupt(f"it is not a Parquet file that can be read: {shown(str(error))}") from error


def _check_pages(raw: bytes, metadata: Any, limit: int) -> None:
    """See that what Parquet would unpack fits into the limit, by what the head of each page says.

    Raises:
        LakeCorrupt: it does not, or there is no such page.
    """
    if metadata.num_rows > limit:
        raise too_large(f"it has {metadata.num_rows} rows")
    unpacked = rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        columns = [group.column(at) for at in range(group.num_columns)]
        chosen = [column for column in columns if column.path_in_schema in _COLUMNS]
        if len(chosen) != len(_COLUMNS):
            raise LakeCorrupt("its columns are not file_path and pos")
        for column in chosen:
            start = column.data_page_offset
            if column.dictionary_page_offset is not None and 0 < column.dictionary_page_offset < start:
                start = column.dictionary_page_offset
            if column.num_values != group.num_rows or start < 0:
                raise LakeCorrupt(f"a column has {column.num_values} values, and its row group {group.num_rows}")
            for size in _page_sizes(raw, start, start + column.total_compressed_size):
                unpacked += size
                if unpacked > limit:
                    raise too_large(f"its pages have more than {limit} bytes", start)
    if rows != metadata.num_rows:
        raise LakeCorrupt(f"its row groups have {rows} rows, and it says {metadata.num_rows}")


def _page_sizes(raw: bytes, at: int, end: int) -> Iterator[int]:
    """Yield how large each page of a column is when it is unpacked."""
    if end > len(raw):
        raise LakeCorrupt(f"a column ends at byte {end}, and the file has {len(raw)}", offset=at)
    while at < end:
        start = at
        try:
            head, at = _struct(raw, at, 0)
        except IndexError:
            raise LakeCorrupt("the file ends within the head of a page", offset=start) from None
        unpacked, packed = head.get(2), head.get(3)
        if unpacked is None or packed is None or unpacked < 0 or packed < 0 or packed > end - at:
            raise LakeCorrupt(f"a page says that it has {packed} bytes, and {unpacked} unpacked", offset=start)
        yield unpacked
        at += packed


def _struct(raw: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """Read a struct of Thrift's compact protocol; return its numbers by field id, and where it ends."""
    found: dict[int, int] = {}
    fid = 0
    while kind := raw[at]:
        at += 1
        if kind >> 4:
            fid += kind >> 4
        else:
            fid, at = avro.read_long(raw, at)
        value, at = _value(raw, at, kind & 15, depth)
        if value is not None:
            found[fid] = value
    return found, at + 1


def _value(raw: bytes, at: int, kind: int, depth: int) -> tuple[int | None, int]:
    """Read a value of Thrift's compact protocol; only numbers are returned."""
    match kind:
        case 1 | 2:  # true, false
            return None, at
        case 3:  # a byte
            return None, at + 1
        case 4 | 5 | 6:  # numbers of 16, 32 and 64 bits
            return avro.read_long(raw, at)
        case 7:  # a double
            return None, at + 8
        case 8:  # bytes: their length is not zigzag
            size, at = avro.read_long(raw, at)
            size = size << 1 if size >= 0 else ~(size << 1)
            if size > len(raw) - at:
                raise IndexError
            return None, at + size
        case 12 if depth < _DEEPEST:
            return None, _struct(raw, at, depth + 1)[1]
        case _:  # lists, sets and maps, of which the head of a page has none
            raise LakeCorrupt(f"the head of a page has a value of the type {kind}", offset=at)


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
            raise LakeCorrupt(f"a row is {shown(path)} and {shown(position)}, and not a path and a position")
        yield path, array("Q", [position])


# ORC.


def _from_orc(raw: bytes) -> "Iterator[pa.RecordBatch]":
    """Read ORC in a process that may take no more memory than it should, and may die."""
    import pyarrow as pa

    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-c", _READ_ORC, str(_ORC_MEMORY)],
            input=raw,
            capture_output=True,
            timeout=_ORC_SECONDS,
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
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
table = orc.ORCFile(io.BytesIO(sys.stdin.buffer.read())).read(columns={_COLUMNS!r}).select({_COLUMNS!r})
with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as out:
    out.write_table(table)
"""
