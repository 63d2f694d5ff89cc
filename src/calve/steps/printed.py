"""What a container prints between markers, picked out of its output while that passes by."""

from calve.steps.failures import fatal
from calve.steps.outputs import LIMIT, Given, read

_STARTS = frozenset({b"MAESTRO_OUTPUT_START", b"CALVE_OUTPUT_START"})
_ENDS = frozenset({b"MAESTRO_OUTPUT_END", b"CALVE_OUTPUT_END"})
_LONGEST_MARKER = 64


class Printed:
    """Takes one stream of output, and keeps what stands between markers."""

    def __init__(self) -> None:
        self._rest = b""
        self._block: list[bytes] | None = None
        self._blocks: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if self._block is None or self._size > LIMIT:  # of a long line only its end could matter
            self._rest = self._rest[-_LONGEST_MARKER:]

    def given(self) -> Given:
        """Return what the program gave back.

        Raises:
            StepFailed: it cannot be understood, is too large, or has no end.
        """
        self._take(self._rest)
        if self._size > LIMIT:
            raise fatal(f"The program printed more than {LIMIT} bytes between the output markers.")
        if self._block is not None:
            raise fatal("The program printed the marker OUTPUT_START, but OUTPUT_END never came.")
        found = Given()
        for block in self._blocks:
            text = block.decode("utf-8", "replace")
            found = found.then(read(text, "What was printed between the output markers"))
        return found

    def _take(self, line: bytes) -> None:
        mark = line.strip()
        if self._block is None:
            self._block = [] if mark in _STARTS else None
        elif mark in _ENDS:
            self._blocks.append(b"\n".join(self._block))
            self._block = None
        else:
            self._size += len(line)
            self._block += [line] if self._size <= LIMIT else []
