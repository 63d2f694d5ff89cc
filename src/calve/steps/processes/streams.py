"""The output streams of a program: split into lines of bounded length, and logged."""

from collections import deque
from collections.abc import Callable, Iterator

LINE_BYTES = 16_384
"""Longer lines are cut."""
SPARE_BYTES = 65_536
"""How much more of a line is searched for secrets before it is cut: a cut must not show half of a secret."""
TAIL_LINES = 60
"""How many lines of each stream are kept for the error message of a program that fails."""


class Frames:
    """Decodes the frames that a supervisor sends."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Read the next bytes; yield the letter and the content of each complete frame."""
        self._data += data
        while len(self._data) >= 5:
            end = 5 + int.from_bytes(self._data[1:5], "big")
            if len(self._data) < end:
                return
            yield chr(self._data[0]), self._data[5:end]
            self._data = self._data[end:]


class Lines:
    """Decodes bytes into lines; replaces invalid UTF-8, and keeps only what follows the last carriage return."""

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        """Take the function that masks secrets; lines are cut after masking."""
        self._mask = mask
        self._rest = b""
        self._cut = 0

    def feed(self, data: bytes) -> list[str]:
        """Read the next bytes; return the complete lines."""
        *whole, rest = data.split(b"\n")
        lines = [self._finish(piece) for piece in whole]
        self._keep(rest)
        return lines

    def close(self) -> list[str]:
        """Return the last line if no newline ended it."""
        return [self._finish(b"")] if self._rest else []

    def _keep(self, piece: bytes) -> None:
        room = LINE_BYTES + SPARE_BYTES - len(self._rest)
        self._cut += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _finish(self, piece: bytes) -> str:
        self._keep(piece)
        shown = self._rest.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace").replace("\0", "\ufffd")
        cut, self._rest, self._cut = self._cut, b"", 0
        if len(shown) <= LINE_BYTES // 4 and not cut:  # a character has at most four bytes
            return shown
        masked = self._mask(shown).encode()
        cut += max(0, len(masked) - LINE_BYTES)
        line = masked[:LINE_BYTES].decode("utf-8", "ignore")
        return f"{line} … and {cut} bytes more" if cut else line


class Output:
    """Logs both streams of a program as they arrive, and keeps the last lines of each."""

    def __init__(self, log: Callable[[str], None], mask: Callable[[str], str] = str) -> None:
        self._log = log
        self._streams = {"O": Lines(mask), "E": Lines(mask)}
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        """The last lines of standard error."""
        self.stdout_tail: deque[str] = deque(maxlen=TAIL_LINES)
        """The last lines of standard output."""

    def feed(self, letter: str, data: bytes) -> None:
        """Read the next bytes of a stream: O is standard output, E standard error."""
        self._take(letter, self._streams[letter].feed(data))

    def close(self) -> None:
        """Log what is left."""
        for letter, stream in self._streams.items():
            self._take(letter, stream.close())

    def _take(self, letter: str, lines: list[str]) -> None:
        (self.tail if letter == "E" else self.stdout_tail).extend(lines)
        if lines:
            self._log("\n".join(lines) + "\n")
