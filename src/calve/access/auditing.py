"""The audit log is a chain: each line holds the digest of the one before, so that none can be changed or taken out.

What a chain cannot show by itself is that its end was cut off: for that, keep the digest of a line elsewhere, and ask
whether it is still there.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from calve.access.records import Act, Entry

GENESIS = "0" * 64
"""What stands before the first line."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reading of the whole log gave."""

    lines: int
    head: str
    """The digest of the last line that fits."""
    broken_at: int | None = None
    """The number of the first line that does not fit."""
    problem: str = ""
    holds_expected: bool = True
    """Whether the digest that was looked for is that of some line."""

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing was changed, as far as can be told."""
        return self.broken_at is None and self.holds_expected


def digest_of(seq: int, act: Act, previous: str) -> str:
    """Return the digest of a line."""
    text = json.dumps([seq, previous, asdict(act)], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def chained(last: Entry | None, act: Act) -> Entry:
    """Return the line that comes after the last one."""
    seq, previous = (1, GENESIS) if last is None else (last.seq + 1, last.digest)
    return Entry(seq, act, previous, digest_of(seq, act, previous))


def verify(entries: Iterable[Entry], expected: str | None = None) -> Verdict:
    """Read all lines in order, and say where the chain is broken, if it is.

    Args:
        entries: all lines, from the first one.
        expected: the digest of a line that was noted elsewhere, if there is one.
    """
    lines, head, is_found = 0, GENESIS, expected is None
    for entry in entries:
        problem = _problem(entry, lines + 1, head)
        if problem:
            return Verdict(lines, head, lines + 1, problem, is_found)
        lines, head = lines + 1, entry.digest
        is_found = is_found or head == expected
    return Verdict(lines, head, holds_expected=is_found)


def _problem(entry: Entry, seq: int, previous: str) -> str:
    if entry.seq != seq:
        return f"line {seq} is missing"
    if entry.previous != previous:
        return f"line {seq} does not follow the one before"
    if entry.digest != digest_of(entry.seq, entry.act, entry.previous):
        return f"line {seq} was changed"
    return ""
