"""The audit log is a chain: each line contains the digest of the previous one, so none can be changed or removed.

Old lines are pruned; a line records that, with the digest of the last line that was pruned.

A chain alone cannot show that its end was cut off: to detect that, keep the digest of a line elsewhere, and check that
it is still there.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from calve.access.records import Act, AuditEntry

GENESIS = "0" * 64
"""The digest before the first line."""
PRUNED = "prune_audit"
"""The action recorded when lines older than their retention are deleted."""


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """The result of verifying the whole log."""

    lines: int
    head: str
    """The digest of the last valid line."""
    broken_at: int | None = None
    """The number of the first invalid line."""
    problem: str = ""
    holds_expected: bool = True
    """Whether the expected digest was found."""

    @property
    def is_whole(self) -> bool:
        """Tell whether the log is intact, as far as that can be checked."""
        return self.broken_at is None and self.holds_expected


def digest_of(seq: int, act: Act, previous: str) -> str:
    """Return the digest of a line."""
    # Sorted keys and no spaces: the digest must not depend on how a version of json writes.
    text = json.dumps([seq, previous, asdict(act)], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def chained(last: AuditEntry | None, act: Act) -> AuditEntry:
    """Return the next line of the chain."""
    seq, previous = (1, GENESIS) if last is None else (last.seq + 1, last.digest)
    return AuditEntry(seq, act, previous, digest_of(seq, act, previous))


def pruned(last: AuditEntry, at: int) -> Act:
    """Return the line that records the deletion of all lines up to one, by retention."""
    return Act(
        at, "calve", PRUNED, f"audit:{last.seq}", "scheduler", "ok", {"through": last.seq, "digest": last.digest}
    )


def verify(entries: Iterable[AuditEntry], expected: str | None = None) -> AuditCheck:
    """Check all lines in order, and return where the chain is broken, if it is.

    The first lines may be missing if a later line records that they were pruned, with the digest of the last one. Lines
    may also be pruned while the log is read: then there is a gap after those that were read before.

    Args:
        entries: all lines, from the first one.
        expected: the digest of a line that was noted elsewhere, if there is one.
    """
    lines, seq, head, is_found = 0, 0, GENESIS, expected is None
    gaps: dict[tuple[object, object], AuditCheck] = {}
    for entry in entries:
        if entry.seq > seq + 1:
            gap = AuditCheck(lines, head, seq + 1, f"line {seq + 1} is missing")
            seq, head = entry.seq - 1, entry.previous
            gaps[seq, head] = gap
        problem = _problem(entry, seq + 1, head)
        if problem:
            gaps[seq, head] = gaps.get((seq, head), AuditCheck(lines, head, seq + 1, problem))
            break
        if entry.act.action == PRUNED:
            # Only the gap that this line vouches for: digest and number have to be those of the line before the gap.
            gaps = {place: gap for place, gap in gaps.items() if place != _told(entry)}
        lines, seq, head = lines + 1, entry.seq, entry.digest
        is_found = is_found or head == expected
    return replace(next(iter(gaps.values()), AuditCheck(lines, head)), holds_expected=is_found)


def _told(entry: AuditEntry) -> tuple[object, object]:
    return entry.act.detail.get("through"), entry.act.detail.get("digest")


def _problem(entry: AuditEntry, seq: int, previous: str) -> str:
    if entry.seq != seq:
        return f"line {seq} is missing"
    if entry.previous != previous:
        return f"line {seq} does not follow the one before"
    if entry.digest != digest_of(entry.seq, entry.act, entry.previous):
        return f"line {seq} was changed"
    return ""
