"""The audit log is a chain: each line holds the digest of the one before, so that none can be changed or taken out.

The oldest lines go after a while, and a line of its own says so: it holds the digest of the last one that went.

What a chain cannot show by itself is that its end was cut off: for that, keep the digest of a line elsewhere, and ask
whether it is still there.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from calve.access.records import Act, Entry

GENESIS = "0" * 64
"""What stands before the first line."""
PRUNED = "prune_audit"
"""What is done to lines that were kept for long enough."""


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


def pruned(last: Entry, at: int) -> Act:
    """Return the line that tells of the lines up to one that they were kept for long enough, and are gone."""
    return Act(
        at, "calve", PRUNED, f"audit:{last.seq}", "scheduler", "ok", {"through": last.seq, "digest": last.digest}
    )


def verify(entries: Iterable[Entry], expected: str | None = None) -> Verdict:
    """Read all lines in order, and say where the chain is broken, if it is.

    The first lines may be missing if a later line tells that they were pruned, and which digest the last of them had;
    so may those after the ones that were read before it happened.

    Args:
        entries: all lines, from the first one.
        expected: the digest of a line that was noted elsewhere, if there is one.
    """
    lines, seq, head, is_found = 0, 0, GENESIS, expected is None
    gaps: dict[tuple[object, object], Verdict] = {}
    for entry in entries:
        if entry.seq > seq + 1:
            gap = Verdict(lines, head, seq + 1, f"line {seq + 1} is missing")
            seq, head = entry.seq - 1, entry.previous
            gaps[seq, head] = gap
        problem = _problem(entry, seq + 1, head)
        if problem:
            gaps[seq, head] = gaps.get((seq, head), Verdict(lines, head, seq + 1, problem))
            break
        if entry.act.action == PRUNED:
            gaps = {place: gap for place, gap in gaps.items() if place != _told(entry)}
        lines, seq, head = lines + 1, entry.seq, entry.digest
        is_found = is_found or head == expected
    return replace(next(iter(gaps.values()), Verdict(lines, head)), holds_expected=is_found)


def _told(entry: Entry) -> tuple[object, object]:
    return entry.act.detail.get("through"), entry.act.detail.get("digest")


def _problem(entry: Entry, seq: int, previous: str) -> str:
    if entry.seq != seq:
        return f"line {seq} is missing"
    if entry.previous != previous:
        return f"line {seq} does not follow the one before"
    if entry.digest != digest_of(entry.seq, entry.act, entry.previous):
        return f"line {seq} was changed"
    return ""
