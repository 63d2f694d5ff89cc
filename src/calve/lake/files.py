"""The lake's files, by the paths that Iceberg metadata names."""

import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from calve.errors import CalveError, FilesLost, LakeCorrupt, LakeError, LakeUnavailable
from calve.folders import is_refusal, writing
from calve.lake.metadata_checks import shown, too_large
from calve.lake.object_stores import failure, is_throttled, open_io

if TYPE_CHECKING:
    from pyiceberg.io import FileIO, InputFile, InputStream

T = TypeVar("T")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SETTING = "capture.location, or warehouse of the catalog"
_UNTOLD = 1 << 24
"""How many bytes are read of a file that does not report its size."""
_PAUSES = (1.0, 2.0, 4.0)
"""How long to wait, in seconds, before the next request to a store that asks for fewer."""
_FILE_SCHEME = re.compile(r"file:(//(localhost)?(?=/))?(?=/)")


def local_path(location: str) -> Path | None:
    """Return the local path of a location; None if it is not on this machine.

    Percent signs are not decoded: neither Iceberg nor Hadoop encodes what it writes into metadata.
    """
    if match := _FILE_SCHEME.match(location):
        return Path(location[match.end() :])
    return None if _SCHEME.match(location) else Path(location)


class Files:
    """Reads and writes whole small files: local ones directly, others through PyIceberg's file systems."""

    def __init__(self, properties: Mapping[str, str] | None = None, *, max_bytes: int = sys.maxsize) -> None:
        """Take the catalog's properties, which hold the credentials of object stores, and the limit of a file."""
        self.max_bytes = max_bytes
        self._properties = dict(properties or {})
        self._remote: dict[str, FileIO] = {}
        self._opening = Lock()

    def read(self, path: str, *, times: int = 1, through: "InputFile | None" = None) -> bytes:
        """Return a file's content, at most ``times`` times ``max_bytes``; a remote one ``through`` PyIceberg, if given.

        Raises:
            LakeCorrupt: it is larger, or not a regular file.
        """
        limit = self.max_bytes * times

        def whole() -> bytes:
            with self._opened(path, through) as (stream, size):
                if size > limit:
                    raise too_large(f"it has {size} bytes").in_file(path)
                return stream.read(size or _UNTOLD)  # files of the kernel say that they are empty

        content = self._tried(path, whole)
        if len(content) > limit:
            raise too_large(f"it has more than {limit} bytes").in_file(path)
        return content

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of a file.

        Raises:
            LakeCorrupt: the file is too short, or the range is larger than the limit.
        """
        if length > self.max_bytes:
            raise too_large(f"a part of it has {length} bytes", offset).in_file(path)

        def part() -> bytes:
            with self._opened(path) as (stream, size):
                if length > size - offset:
                    raise LakeCorrupt(f"{length} bytes are expected, but the file has {size}", path=path, offset=offset)
                stream.seek(offset)
                return stream.read(length)

        return self._tried(path, part)

    @contextmanager
    def _opened(self, path: str, through: "InputFile | None" = None) -> "Iterator[tuple[BinaryIO | InputStream, int]]":
        """Open a file for reading; yield it with its size."""
        if local := local_path(path):
            with _regular(local, path) as stream:
                yield stream, os.fstat(stream.fileno()).st_size
            return
        with (through or self._io(path).new_input(path)).open() as remote:
            yield remote, _size(remote)

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically."""

        def written() -> None:
            with writing("A file of the lake", path, _SETTING):
                if local := local_path(path):
                    _replace(local, content)
                    return
                with self._io(path).new_output(path).create(overwrite=True) as stream:
                    stream.write(content)

        self._tried(path, written)

    def delete(self, path: str) -> bool:
        """Delete a file, leftovers of writing it, and folders that become empty; tell whether the file existed."""

        def deleted() -> bool:
            with writing("A file of the lake", path, _SETTING):
                if local := local_path(path):
                    return _remove(local)
                try:
                    self._io(path).delete(path)
                except FileNotFoundError:
                    return False
                return True

        return self._tried(path, deleted)

    def exists(self, path: str) -> bool:
        """Tell whether a file exists."""
        local = local_path(path)
        return self._tried(path, local.exists if local else lambda: self._io(path).new_input(path).exists())

    def _tried(self, path: str, action: Callable[[], T]) -> T:
        """Do something with a file, again while its object store asks for fewer requests; explain what goes wrong."""
        pauses = iter(_PAUSES)
        while True:
            try:
                return action()
            except CalveError:
                raise
            except Exception as error:
                pause = next(pauses, None) if local_path(path) is None and is_throttled(error) else None
                if pause is None:
                    raise self._explained(path, error) from error
                time.sleep(pause)

    def _explained(self, path: str, error: Exception) -> Exception:
        """Return an error that names the path for one of a file system."""
        if local_path(path) is None and not is_refusal(error):
            return failure(error, path, self._remote.get(path.partition(":")[0]))
        if isinstance(error, FileNotFoundError):
            return FilesLost(f"{path} is gone.", path=path)
        if is_refusal(error):
            return LakeError(f"{path} cannot be read: {error}", path=path)
        if isinstance(error, ValueError):  # no path at all: half a character, or a zero byte
            return LakeCorrupt(f"no file can have this name: {error}", path=shown(path))
        return LakeUnavailable(f"{path} cannot be reached: {error}", path=path)

    def _io(self, path: str) -> "FileIO":
        scheme = path.partition(":")[0]
        # Threads read many files at once: without the lock each of them would connect anew.
        with self._opening:
            if scheme not in self._remote:
                self._remote[scheme] = open_io(self._properties, path)
            return self._remote[scheme]


def _size(stream: "InputStream") -> int:
    """Return the size of a file of an object store, which told it when the file was opened."""
    # Not by seeking to the end: GCS would be asked for the bytes from there on, and refuses that.
    if callable(told := getattr(stream, "size", None)):
        return int(told())
    stream.seek(0, os.SEEK_END)
    size = stream.tell()
    stream.seek(0)
    return size


def _replace(local: Path, content: bytes) -> None:
    """Write a local file beside its place, then move it there."""
    local.parent.mkdir(parents=True, exist_ok=True)
    # Not hidden: where a kill leaves one in a source, Iceberg's orphan removal passes over hidden files.
    half = local.with_name(f"{local.name}.{uuid.uuid4().hex}.half")
    try:
        half.write_bytes(content)
        half.replace(local)
    finally:
        half.unlink(missing_ok=True)


def _remove(local: Path) -> bool:
    """Delete a local file, leftovers of writing it, and empty folders; tell whether the file existed."""
    was_there = local.exists()
    local.unlink(missing_ok=True)
    for half in local.parent.glob(f"{escape(local.name)}.*.half"):  # of a writer that was killed
        half.unlink(missing_ok=True)
    _remove_empty_folders(local.parent)
    return was_there


@contextmanager
def _regular(local: Path, path: str) -> Iterator[BinaryIO]:
    """Open a regular file only: a pipe would block for ever, and a device may never end."""
    number = os.open(local, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise LakeCorrupt("it is a folder, a pipe or a device, not a file", path=path)
    with os.fdopen(number, "rb") as stream:
        yield stream


def _remove_empty_folders(folder: Path) -> None:
    """Remove a table's ``metadata`` or ``data`` folder and then the table's own, as far as they are empty."""
    if folder.name not in {"metadata", "data"}:
        return
    try:
        os.rmdir(folder)  # noqa: PTH106 - refuses a folder that is not empty, which is the point
        os.rmdir(folder.parent)  # noqa: PTH106 - the same
    except OSError:
        return
