"""What a program prints, on its way into the log: whole lines, of bounded length and number."""

from collections import deque
from collections.abc import Callable, Iterator

LINE_BYTES = 16_384
"""What is longer is cut."""
LOG_BYTES = 8_388_608
"""How much of a program's output goes into the log as it comes; of what follows, only the end."""
END_LINES = 200
"""How many last lines are logged after all when there was too much."""
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

    def __init__(self) -> None:
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
        room = LINE_BYTES - len(self._rest)
        self._cut += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _finish(self, piece: bytes) -> str:
        self._keep(piece)
        shown = self._rest.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace").replace("\0", "\ufffd")
        line = f"{shown} … and {self._cut} bytes more" if self._cut else shown
        self._rest, self._cut = b"", 0
        return line


class Output:
    """Logs both streams of a program as they come, and remembers the end of each."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._streams = {"O": Lines(), "E": Lines()}
        self._room = LOG_BYTES
        self._left_out = 0
        self._end: deque[str] = deque(maxlen=END_LINES)
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
        if self._left_out:
            hidden = self._left_out - len(self._end)
            self._log("\n".join([f"… {hidden} lines are left out, here are the last ones:", *self._end]) + "\n")

    def _take(self, letter: str, lines: list[str]) -> None:
        (self.tail if letter == "E" else self.printed).extend(lines)
        if lines and self._room > 0:
            text = "\n".join(lines) + "\n"
            self._room -= len(text)
            self._log(text)
        elif lines:
            self._left_out += len(lines)
            self._end.extend(lines)
