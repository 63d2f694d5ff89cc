"""Which commit changed which partition, and how far a consumer has processed it: a map of letters. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from calve.capture.inspection.facts import Cells
from calve.capture.inspection.history import written_by
from calve.capture.inspection.periods import DAY, Partition
from calve.capture.model import Checkpoint, Operation
from calve.capture.snapshots import RangeSnapshot

MOST_COLUMNS = 400
"""With more commits than this, a column is a day."""


class Letter(StrEnum):
    """What one commit in one partition means to a consumer."""

    NOTHING = "."
    UNREAD = "?"
    """It is not known yet whether the commit touched the partition."""
    REPLACED = "r"
    """Files were rewritten without changing rows: captures ignore it."""
    COMMITTED = "c"
    COMMITTED_LATE = "L"
    """Committed; the partition is older than the day of the commit."""
    OPEN = "o"
    """In a capture that is not committed yet."""
    PENDING = "p"
    PENDING_LATE = "l"
    REFUSED = "x"
    """Pending, and the consumer does not capture this operation: its next capture will be refused."""


_RANK = {letter: rank for rank, letter in enumerate(Letter)}
"""If several commits share a column, the last of these letters counts."""
_LETTERS = bytes.maketrans(bytes(_RANK.values()), "".join(Letter).encode())
_MEANINGS = {
    Letter.NOTHING: "not touched",
    Letter.UNREAD: "not read yet",
    Letter.REPLACED: "files rewritten, the same rows: not captured",
    Letter.COMMITTED: "committed",
    Letter.COMMITTED_LATE: "late, and committed",
    Letter.OPEN: "in an open capture",
    Letter.PENDING: "pending",
    Letter.PENDING_LATE: "late, and pending",
    Letter.REFUSED: "refused: the consumer does not take this operation",
}
LEGEND = {letter.value: meaning for letter, meaning in _MEANINGS.items()}


@dataclass(frozen=True, slots=True)
class Reader:
    """The progress of a consumer in a table, and the operations that it captures."""

    committed: Checkpoint | None = None
    opened: Checkpoint | None = None
    """The end of its open capture."""
    operations: frozenset[Operation] = frozenset({Operation.APPEND})


@dataclass(frozen=True, slots=True)
class Column:
    """One commit, or all commits of one day."""

    snapshot_id: int
    """For a day, its last one."""
    at: int
    operation: str
    """For a day, those of all its commits."""
    commits: int
    written_by: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One partition."""

    partition: str
    cells: str
    """A letter for each column."""
    files: int
    rows: int
    bytes: int
    """The files, rows and bytes that the commits of the map touched and added."""


@dataclass(frozen=True, slots=True)
class ChangeMap:
    """Commits and the partitions that they touched."""

    columns: tuple[Column, ...]
    """Oldest first."""
    rows: tuple[Row, ...]
    """The newest partition first."""
    partitions: int
    """How many there are in these commits, shown or not, as far as they have been read."""
    is_by_day: bool
    checkpoint_column: int | None
    """The last column that is committed as a whole; -1 if none is, None without a consumer."""
    unread: int
    """How many commits have not been read yet: try again."""


def change_map(
    commits: Sequence[RangeSnapshot],
    facts: Mapping[int, Cells],
    reader: Reader | None,
    partitions: slice,
) -> ChangeMap:
    """Return the map of some commits, newest first.

    Args:
        commits: the commits.
        facts: what they did, by snapshot; missing ones count as unread.
        reader: the consumer; None: everything counts as committed.
        partitions: which partitions are shown, counted from the newest.
    """
    oldest_first = commits[::-1]
    groups = _groups(oldest_first)
    marks = _marks(oldest_first, reader)
    places = [place for place, group in enumerate(groups) for _ in group]
    found = _partitions(facts, commits)
    unknown = bytes(_RANK[_unread(group, facts)] for group in groups)
    rows = {one: _RowSum(unknown) for one in found[partitions]}
    for step, mark, place in zip(oldest_first, marks, places, strict=True):
        ranks, today = (_RANK[mark], _RANK[_LATE.get(mark, mark)]), step.timestamp_ms // DAY * DAY
        for partition, files, added, size in facts.get(step.snapshot_id, ()):
            if partition in rows:
                rows[partition].add(place, ranks[partition.is_before(today)], files, added, size)
    return ChangeMap(
        tuple(_column(group) for group in groups),
        tuple(row.shown(partition.name) for partition, row in rows.items()),
        len(found),
        len(groups) < len(commits) or len(commits) > MOST_COLUMNS,
        None if reader is None else _checkpoint_column(groups, marks),
        sum(step.snapshot_id not in facts for step in commits),
    )


def _groups(commits: Sequence[RangeSnapshot]) -> list[list[RangeSnapshot]]:
    if len(commits) <= MOST_COLUMNS:
        return [[step] for step in commits]
    return [list(group) for _, group in groupby(commits, key=lambda step: step.timestamp_ms // DAY)]


def _unread(group: Sequence[RangeSnapshot], facts: Mapping[int, Cells]) -> Letter:
    """Return the letter of a column in a partition that none of its commits is known to have touched."""
    return Letter.NOTHING if all(step.snapshot_id in facts for step in group) else Letter.UNREAD


def _marks(commits: Sequence[RangeSnapshot], reader: Reader | None) -> list[Letter]:
    """Return what each commit is to a consumer, without regard to partitions."""
    if reader is None:
        return [Letter.REPLACED if step.operation is Operation.REPLACE else Letter.COMMITTED for step in commits]
    done, opened = _end(commits, reader.committed), _end(commits, reader.opened)
    return [_mark(step, place, done, opened, reader.operations) for place, step in enumerate(commits)]


def _mark(step: RangeSnapshot, place: int, done: int, opened: int, operations: frozenset[Operation]) -> Letter:
    if step.operation is Operation.REPLACE:
        return Letter.REPLACED
    if place < done:
        return Letter.COMMITTED
    if place < opened:
        return Letter.OPEN
    return Letter.PENDING if step.operation in operations else Letter.REFUSED


def _end(commits: Sequence[RangeSnapshot], upto: Checkpoint | None) -> int:
    """Return how many of the commits, oldest first, a checkpoint covers as a whole."""
    if upto is None or upto.snapshot_id is None:
        return 0
    for place, step in enumerate(commits):
        if step.snapshot_id == upto.snapshot_id:
            return place + (upto.pending is None)
    # expired, or before the commits that are shown: later commits have a later time
    return sum(step.timestamp_ms <= upto.timestamp_ms for step in commits)


_LATE = {Letter.COMMITTED: Letter.COMMITTED_LATE, Letter.PENDING: Letter.PENDING_LATE}


class _RowSum:
    """One partition while the map is drawn: the rank of each letter, and sums."""

    __slots__ = ("bytes", "files", "ranks", "rows")

    def __init__(self, ranks: bytes) -> None:
        self.ranks = bytearray(ranks)
        self.files = self.rows = self.bytes = 0

    def add(self, place: int, rank: int, files: int, rows: int, size: int) -> None:
        """Add a cell."""
        if self.ranks[place] < rank:  # noqa: PLR1730 - max() doubles the time of a map of 50,000 cells
            self.ranks[place] = rank
        self.files += files
        self.rows += rows
        self.bytes += size

    def shown(self, name: str) -> Row:
        """Return the row as it is shown."""
        return Row(name, self.ranks.translate(_LETTERS).decode(), self.files, self.rows, self.bytes)


def _partitions(facts: Mapping[int, Cells], commits: Sequence[RangeSnapshot]) -> list[Partition]:
    """Return the partitions that commits touched, the newest first."""
    found = {cell.partition for step in commits for cell in facts.get(step.snapshot_id, ())}
    timeless = sorted((one for one in found if one.end is None), key=lambda one: one.name)
    timed = sorted((one for one in found if one.end is not None), key=lambda one: (-(one.end or 0), one.name))
    return [*timed, *timeless]


def _column(group: Sequence[RangeSnapshot]) -> Column:
    last = group[-1]
    operations = dict.fromkeys(str(step.operation or "unknown") for step in group)
    at = last.timestamp_ms if len(group) == 1 else last.timestamp_ms // DAY * DAY
    who = written_by(last.summary) if len(group) == 1 else {}
    return Column(last.snapshot_id, at, ", ".join(operations), len(group), who)


def _checkpoint_column(groups: Sequence[Sequence[RangeSnapshot]], marks: Sequence[Letter]) -> int:
    waiting = {Letter.OPEN, Letter.PENDING, Letter.REFUSED}
    first = next((place for place, mark in enumerate(marks) if mark in waiting), len(marks))
    covered = 0
    for place, group in enumerate(groups):
        covered += len(group)
        if covered > first:
            return place - 1
    return len(groups) - 1
