"""Writes the log of one attempt: the store keeps its first and its last megabytes, however long the log is.

Offsets count bytes from the beginning of everything that was written, kept or not. The log is cut into blocks of whole
lines. The store keeps the first blocks and the last ones: each new piece drops older blocks after the first. Text that
the store does not have yet is also in a file, the *spool*, where the next worker on this machine finds it if this one
is killed.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from calve.engine.model import LogChunk, LogExtent

log = logging.getLogger(__name__)

BLOCK = 65_536
"""The most bytes of a block, the unit that is kept or dropped."""
PIECE = 524_288
"""The most bytes of a piece, the unit that the store keeps and reads."""
SPOOL = "log"
"""The name of the spool's folder in the folder of the attempt."""
_CONTINUATION = 0b1100_0000


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How many bytes of a log the store keeps."""

    head: int = 4_000_000
    tail: int = 4_000_000
    part: int | None = None
    """The size of the files in which the whole log is kept; None if it is not kept."""


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    line: int
    """How many lines end before it."""
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Spool:
    """Files with the text of a log, each named by the offset where it begins.

    Without ``part``, they contain what the store does not have yet. With it, they contain everything, in files of about
    that size, and this class never removes them. If the disk is full or gone, the spool is lost; the step continues.
    """

    def __init__(self, folder: Path, part: int | None = None) -> None:
        self.folder = folder
        self._part = part
        self._file: Path | None = None
        self._size = 0
        self._is_broken = False

    def write(self, start: int, data: bytes) -> None:
        """Append data at an offset of the log."""
        if self._is_broken:
            return
        if self._file is None or (self._part is not None and self._size >= self._part):
            self._file, self._size = self.folder / f"{start:020d}", 0
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._file.open("ab", buffering=0) as file:
                file.write(data)
        except OSError as error:
            self._is_broken = True
            log.warning("the log %s cannot be kept on this machine: %s", self.folder.name, error)
        self._size += len(data)

    def turn(self) -> None:
        """Begin a new file with the next write, unless everything is kept."""
        if self._part is None:
            self._file = None

    def forget(self, end: int) -> None:
        """Remove the files that begin before an offset and are in the store, unless everything is kept."""
        if self._part is not None or not self.folder.exists():
            return
        for start, path in spooled(self.folder):
            if start < end and path != self._file:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # the folders are not empty
            self.folder.rmdir()
            self.folder.parent.rmdir()


def spooled(folder: Path) -> list[tuple[int, Path]]:
    """Return the files of a spool, ordered by the offset where each begins."""
    return sorted((int(path.name), path) for path in folder.iterdir() if path.name.isdecimal())


@dataclass(slots=True)
class Log:
    """Collects what an attempt writes, and hands it out in pieces."""

    attempt_uuid: str
    limits: LogLimits = field(default_factory=LogLimits)
    spool: Spool | None = None
    number: int = 0
    """The number of the next piece."""
    end: int = 0
    """The offset of the next text."""
    lines: int = 0
    """How many lines have ended."""
    _blocks: deque[_Block] = field(default_factory=deque)
    _unkept: list[LogChunk] = field(default_factory=list)
    """Pieces that could not be stored: handed out again unchanged, because the store may have them after all."""
    _lock: Lock = field(default_factory=Lock)

    def write(self, text: str) -> None:
        """Add text without secrets; of a text too large for memory, drop what is neither head nor tail."""
        with self._lock:
            for data in _cut(text.encode("utf-8", "replace")):
                self._blocks.append(_Block(self.end, self.lines, data))
                if self.spool is not None:
                    self.spool.write(self.end, data)
                self.end += len(data)
                self.lines += data.count(b"\n")
            self._drop()

    def recover(self) -> None:
        """Read from the spool what an earlier worker on this machine wrote and the store does not have."""
        spool, self.spool = self.spool, None
        if spool is not None and spool.folder.is_dir():
            for start, path in spooled(spool.folder):
                data = path.read_bytes()
                if start <= self.end < start + len(data):
                    self.write(data[self.end - start :].decode("utf-8", "replace"))
        self.spool = spool

    def take(self) -> list[LogChunk]:
        """Return what was written since the last call, in pieces."""
        with self._lock:
            pieces = [*self._unkept, *self._chunks()]
            self._unkept = []
            if self.spool is not None:
                self.spool.turn()
            return pieces

    def put_back(self, pieces: list[LogChunk]) -> None:
        """Take back pieces that could not be stored; the next ``take`` returns them again."""
        with self._lock:
            self._unkept = [*pieces, *self._unkept]
            self._drop()

    def kept(self, pieces: list[LogChunk]) -> None:
        """Note that the store has these pieces, so that the spool can remove them."""
        if pieces and self.spool is not None:
            with self._lock:
                self.spool.forget(pieces[-1].start + pieces[-1].size)

    def _chunks(self) -> Iterator[LogChunk]:
        dropped = (self.limits.head, self.end - self.limits.tail)
        while self._blocks:
            first = self._blocks.popleft()
            data, end = [first.data], first.end
            # There is a gap between two blocks if the text between them was dropped before it was handed out.
            while self._blocks and self._blocks[0].start == end and end - first.start < PIECE - BLOCK:
                data.append(self._blocks[0].data)
                end = self._blocks.popleft().end
            text = b"".join(data).decode()
            yield LogChunk(self.attempt_uuid, self.number, text, first.start, first.line, dropped)
            self.number += 1

    def _drop(self) -> None:
        """Drop blocks and pieces that were not handed out yet and belong neither to the head nor to the tail."""
        before = self.end - self.limits.tail
        self._unkept = [piece for piece in self._unkept if not self._is_between(piece.start, piece.size, before)]
        head = []
        while self._blocks and (self._blocks[0].start < self.limits.head or self._blocks[0].end <= before):
            block = self._blocks.popleft()
            if block.start < self.limits.head:
                head.append(block)
        self._blocks.extendleft(reversed(head))

    def _is_between(self, start: int, size: int, before: int) -> bool:
        return start >= self.limits.head and start + size <= before


def after(extents: list[LogExtent], last_text: str, spare: int) -> tuple[int, int, int]:
    """Return the number of the next piece of a log, its offset, and how many lines end before it.

    Args:
        extents: the extents of the log in the store.
        last_text: the text of the last of them.
        spare: how many piece numbers to leave free for a worker that may still be writing.
    """
    if not extents:
        return spare, 0, 0
    last = extents[-1]
    return last.number + 1 + spare, last.end, last.line + last_text.count("\n")


def _cut(data: bytes) -> Iterator[bytes]:
    """Cut bytes into blocks, after a line if possible, and never within a character."""
    while len(data) > BLOCK:
        end = data.rfind(b"\n", 0, BLOCK) + 1 or BLOCK
        while data[end] & _CONTINUATION == 0b1000_0000:
            end -= 1
        yield data[:end]
        data = data[end:]
    if data:
        yield data
