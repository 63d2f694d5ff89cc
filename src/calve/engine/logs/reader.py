"""Reads the log of an attempt: a page at an offset, the last lines, or the lines that contain a text.

The store has pieces of the log. If the settings say so, files outside the store have the parts that it dropped. Offsets
count bytes from the beginning of everything that was written, kept or not; a page that would start in a gap starts
after it. The log is never loaded into memory as a whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from calve.engine.model import LogExtent
from calve.engine.ports import LogFiles, LogPieces
from calve.errors import CalveError

PAGE = 65_536
"""How many bytes a page has by default."""
MOST = 8_388_608
"""The most bytes of one page, and how far back ``tail`` searches for lines."""
SCAN = 33_554_432
"""How many bytes one search reads; the next search continues where it stopped."""
AHEAD = 1_048_576
"""How many bytes a search reads at once."""
SHOWN = 1_000
"""How many characters of a matching line are returned."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of a log."""

    offset: int
    """The offset where the text begins."""
    text: str
    next_offset: int
    """The offset of the next page."""
    size: int
    """The current length of the log."""
    left_out: int = 0
    """How many bytes between the requested offset and the text are not kept."""

    @property
    def is_last(self) -> bool:
        """Tell whether the log ends here, as of now."""
        return self.next_offset >= self.size

    def shown(self) -> str:
        """Return the text, after a line that says how many bytes are missing before it, if any are."""
        return f"… {self.left_out:,} bytes of the log are left out here …\n{self.text}" if self.left_out else self.text


@dataclass(frozen=True, slots=True)
class LogMatch:
    """A line that contains the text of a search."""

    offset: int
    line: int | None
    """Its number, from 1; None if unknown."""
    text: str


@dataclass(frozen=True, slots=True)
class LogMatches:
    """The lines that a search has found."""

    matches: tuple[LogMatch, ...]
    next_offset: int | None
    """The offset where the next search continues; None if the whole log was searched."""
    size: int
    left_out: int = 0
    """How many bytes could not be searched because they are not kept."""


class LogReader:
    """Reads the log of one attempt, as it was stored when the reader was first used."""

    def __init__(self, pieces: LogPieces, attempt_uuid: str, files: LogFiles | None = None) -> None:
        self._pieces = pieces
        self._uuid = attempt_uuid
        self._files = files
        self._read: Mapping[int, bytes] = {}
        """The pieces that were read last, by number: the next page may continue in one of them."""

    @property
    def size(self) -> int:
        """How many bytes have been written so far, kept or not."""
        return self._extents[-1].end if self._extents else 0

    @property
    def kept(self) -> int:
        """How many bytes of it are kept."""
        return sum(extent.size for extent in self._extents)

    def place(self, offset: int) -> int:
        """Return an offset counted from the beginning; a negative one counts from the end."""
        return max(0, self.size + offset) if offset < 0 else offset

    def page(self, offset: int, limit: int = PAGE) -> LogPage:
        """Return the text at an offset, up to ``limit`` bytes; a negative offset counts from the end.

        A page ends where a gap begins. It contains whole characters only, so it may be a few bytes shorter.
        """
        place = self.place(offset)
        extent = next((each for each in self._extents if each.end > place), None)
        if extent is None:
            return LogPage(max(place, self.size), "", max(place, self.size), self.size)
        begin = max(place, extent.start)
        limit = min(limit, MOST)
        near = list(self._from(extent, begin + limit))
        self._fetch(near)
        last = begin + limit
        data = b"".join(self._bytes(each, max(begin, each.start), last - max(begin, each.start)) for each in near)
        return self._whole(begin, data, left_out=extent.start - place if extent.start > place else 0)

    def _from(self, extent: LogExtent, end: int) -> Iterator[LogExtent]:
        """Yield an extent and those that follow it without a gap, up to an offset."""
        place = extent.start
        for each in self._extents[self._extents.index(extent) :]:
            if each.start > place or place >= end:
                return
            yield each
            place = each.end

    def pages(self, offset: int = 0) -> Iterator[LogPage]:
        """Yield the log page by page, from an offset to its end."""
        while not (page := self.page(offset)).is_last:
            yield page
            offset = page.next_offset
        yield page

    def tail(self, lines: int) -> LogPage:
        """Return the last lines; fewer than requested after a gap, or if they exceed ``MOST`` bytes."""
        begin, data = self.size, b""
        for at, extent in reversed(list(enumerate(self._extents))):
            if extent.end < begin or len(data) >= MOST:
                break
            if extent.address is None and extent.number not in self._read:
                self._fetch(self._before(at))
            while begin > extent.start and data.count(b"\n", 0, -1) < lines and len(data) < MOST:
                step = min(PAGE, begin - extent.start)
                begin -= step
                data = self._bytes(extent, begin, step) + data
        at = len(data) - data.endswith(b"\n")
        for _ in range(lines):
            at = data.rfind(b"\n", 0, max(0, at))
        return self._whole(self.size - len(data) + at + 1, data[at + 1 :])

    def _before(self, at: int) -> Iterator[LogExtent]:
        """Yield an extent and those before it, up to the size of a page."""
        for each in reversed(self._extents[: at + 1]):
            yield each
            if self._extents[at].end - each.start >= PAGE:
                return

    def find(self, text: str, *, ignore_case: bool = False, offset: int = 0, limit: int = 100) -> LogMatches:
        """Return up to ``limit`` lines that contain a text, from an offset on."""
        found: list[LogMatch] = []
        scanned = left_out = 0
        for block in self._blocks(offset):
            if scanned >= SCAN:
                return LogMatches(tuple(found), block.offset, self.size, left_out)
            scanned += len(block.data)
            left_out += block.left_out
            for match in block.matches(text, ignore_case=ignore_case):
                if len(found) == limit:
                    return LogMatches(tuple(found), match.offset, self.size, left_out)
                found.append(match)
        return LogMatches(tuple(found), None, self.size, left_out)

    def _blocks(self, offset: int) -> "Iterator[_Block]":
        """Yield blocks of whole lines; a block has a line number if the text before it has one."""
        block = _Block(offset, b"", self._line_at(offset))
        place = offset
        while place < self.size:
            page = self.page(place, AHEAD)
            if page.left_out or not block.data:
                yield from [block] if block.data else []
                line = block.line if page.offset == block.offset else self._line_at(page.offset)
                block = _Block(page.offset, b"", line, page.left_out)
            block = replace(block, data=block.data + page.text.encode())
            whole, block = block.cut()
            yield from [whole] if whole.data else []
            place = page.next_offset
        yield from [block] if block.data else []

    def _line_at(self, place: int) -> int | None:
        """Return the line number at an offset; it is known only at the beginning of the log or of a piece."""
        known = {extent.start: extent.line + 1 for extent in self._extents if extent.address is None}
        return 1 if place == 0 else known.get(place)

    def _whole(self, begin: int, data: bytes, left_out: int = 0) -> LogPage:
        """Return a page of whole characters: skip a partial one at the start, leave one at the end to the next page."""
        skip = next((at for at, byte in enumerate(data[:4]) if byte & 0b1100_0000 != 0b1000_0000), 0)
        text = data[skip:].decode("utf-8", "ignore")
        end = begin + skip + len(text.encode())
        if begin + len(data) >= self.size or end == begin + skip:
            end = begin + len(data)
        return LogPage(begin + skip, text, end, self.size, left_out)

    def _bytes(self, extent: LogExtent, begin: int, limit: int) -> bytes:
        """Return bytes of an extent that was fetched."""
        first, count = begin - extent.start, min(limit, extent.end - begin)
        if extent.address is not None:
            return self._outside(extent, first, count)
        found = self._read[extent.number][first : first + count]
        return found + b" " * (count - len(found))  # the piece may have been dropped meanwhile

    def _fetch(self, extents: Iterable[LogExtent]) -> None:
        """Read pieces from the store in one query, and forget those that were read before and are not among them."""
        wanted = [each.number for each in extents if each.address is None]
        missing = [number for number in wanted if number not in self._read]
        found = self._pieces.log_texts(self._uuid, missing) if missing else {}
        new = {number: found.get(number, "").encode() for number in missing}
        self._read = {number: new[number] if number in new else self._read[number] for number in wanted}

    def _outside(self, extent: LogExtent, first: int, count: int) -> bytes:
        hidden = extent.number  # of a file whose beginning the store has: see _between
        assert self._files is not None  # noqa: S101 - else no file is among the extents
        assert extent.address is not None  # noqa: S101 - as the caller has seen
        try:
            found = self._files.read_range(extent.address, hidden + first, count)
        except CalveError as error:
            found = f"\n… {extent.address} cannot be read: {error.message} …\n".encode()[:count]
        return found + b" " * (count - len(found))

    @cached_property
    def _extents(self) -> list[LogExtent]:
        """The stored parts in order, without overlaps: pieces of the store, and between them parts of files."""
        pieces = [each for each in self._pieces.log_extents(self._uuid) if each.size]
        if self._files is None or not self._has_holes(pieces):
            return pieces
        files = [each for each in self._pieces.log_files(self._uuid) if each.size]
        found: list[LogExtent] = []
        for piece in pieces:
            found += [*_between(files, found[-1].end if found else 0, piece.start), piece]
        return found

    def _has_holes(self, pieces: list[LogExtent]) -> bool:
        end = 0
        for piece in pieces:
            if piece.start > end:
                return True
            end = piece.end
        return False


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive lines of a log."""

    offset: int
    data: bytes
    line: int | None
    """The number of the first line."""
    left_out: int = 0

    def cut(self) -> "tuple[_Block, _Block]":
        """Return the whole lines, and the rest; a line longer than ``MOST`` bytes is cut."""
        end = self.data.rfind(b"\n") + 1
        if len(self.data) > MOST:
            end = len(self.data)
        if not end:
            return replace(self, data=b""), self
        line = None if self.line is None else self.line + self.data.count(b"\n")
        return replace(self, data=self.data[:end]), _Block(self.offset + end, self.data[end:], line)

    def matches(self, text: str, *, ignore_case: bool) -> Iterator[LogMatch]:
        """Yield the lines that contain a text."""
        wanted = text.casefold() if ignore_case else text
        shown = self.data.decode("utf-8", "replace")
        if wanted not in (shown.casefold() if ignore_case else shown):
            return
        offset = self.offset
        for number, line in enumerate(shown.split("\n")):
            if wanted in (line.casefold() if ignore_case else line):
                yield LogMatch(offset, None if self.line is None else self.line + number, line[:SHOWN])
            offset += len(line.encode()) + 1


def _between(files: list[LogExtent], begin: int, end: int) -> Iterator[LogExtent]:
    """Yield the parts of files between two offsets; ``number`` is how many bytes of the file precede the part."""
    for file in files:
        start, stop = max(begin, file.start), min(end, file.end)
        if start < stop:
            yield LogExtent(start, stop - start, start - file.start, address=file.address)
            begin = stop
