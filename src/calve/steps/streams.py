"""What a program prints, on its way into the log: whole lines, of bounded length."""

from collections import deque
from collections.abc import Callable, Iterator

LINE_BYTES = 16_384
"""A line that is longer is cut."""
SPARE_BYTES = 65_536
"""How much more of a line is looked at for secrets before it is cut, lest the first half of one be shown."""
TAIL_LINES = 60
"""How many lines of each stream are at hand to tell why a program failed."""


class Frames:
    """Takes apart what a supervisor sends."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take the next bytes; yield the letter and the content of each frame that is complete."""
        self._data += data
        while len(self._data) >= 5:
            end = 5 + int.from_bytes(self._data[1:5], "big")
            if len(self._data) < end:
                return
            yield chr(self._data[0]), self._data[5:end]
            self._data = self._data[end:]


class Lines:
    """Makes lines of bytes: bad UTF-8 is replaced, and of a line that was written over only the last text stays."""

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        """Take what puts stars for secrets: a line is cut after that."""
        self._mask = mask
        self._rest = b""
        self._cut = 0

    def feed(self, data: bytes) -> list[str]:
        """Take the next bytes; return the lines that are complete."""
        *whole, rest = data.split(b"\n")
        lines = [self._finish(piece) for piece in whole]
        self._keep(rest)
        return lines

    def close(self) -> list[str]:
        """Return the last line, if it has no end."""
        return [self._finish(b"")] if self._rest else []

    def _keep(self, piece: bytes) -> None:
        room = LINE_BYTES + SPARE_BYTES - len(self._rest)
        self._cut += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _finish(self, piece: bytes) -> str:
        self._keep(piece)
        shown = self._rest.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace").replace("\0", "\ufffd")
        cut, self._rest, self._cut = self._cut, b"", 0
        if len(shown) <= LINE_BYTES // 4 and not cut:  # as no letter has more than four bytes
            return shown
        masked = self._mask(shown).encode()
        cut += max(0, len(masked) - LINE_BYTES)
        line = masked[:LINE_BYTES].decode("utf-8", "ignore")
        return f"{line} … and {cut} bytes more" if cut else line


class Output:
    """Logs both streams of a program as they come, and remembers the end of each."""

    def __init__(self, log: Callable[[str], None], mask: Callable[[str], str] = str) -> None:
        self._log = log
        self._streams = {"O": Lines(mask), "E": Lines(mask)}
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        """The last lines of standard error."""
        self.printed: deque[str] = deque(maxlen=TAIL_LINES)
        """The last lines of standard output."""

    def feed(self, letter: str, data: bytes) -> None:
        """Take the next bytes of a stream: O is standard output, E standard error."""
        self._take(letter, self._streams[letter].feed(data))

    def close(self) -> None:
        """Log what is left."""
        for letter, stream in self._streams.items():
            self._take(letter, stream.close())

    def _take(self, letter: str, lines: list[str]) -> None:
        (self.tail if letter == "E" else self.printed).extend(lines)
        if lines:
            self._log("\n".join(lines) + "\n")
