"""The plans of a merge, and how one is chosen. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from calve.merging.bounds import Interval, KeyRange, Value, union
from calve.merging.request import MergeRequest

MOST_BROADCAST = 500_000
"""Most rows of the source whose keys are broadcast to be looked up in the target."""
MOST_BROADCAST_WHOLE = 200_000
"""Most rows of the source that are broadcast with all their columns."""
MOST_NEW_PARTITIONS = 4
"""Most new partitions in which each task may open files when rows are appended without a shuffle."""
MOST_OLD_PARTITIONS = 50
"""Most old partitions in which one task may open files, for late rows."""

_DAY = 86_400_000_000
# The shortest month and year: an estimate of partitions that is rather too high than too low.
_UNITS = {"hours": _DAY // 24, "days": _DAY, "months": 28 * _DAY, "years": 365 * _DAY}
_TIMED = re.compile(r"(days|hours|months|years)\((\w+)\)")


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The target, from its metadata."""

    name: str  # in full, as Spark shows it
    columns: Mapping[str, str]  # names and types
    properties: Mapping[str, str]
    partitioning: tuple[str, ...]
    branch: str | None  # where this session reads and writes; None: the main branch
    head: int | None  # the snapshot that is merged into
    rows: int
    files: int
    slices: int  # partitions, or files of a table without partitions
    ranges: tuple[KeyRange, ...]  # of the key columns whose bounds every file has

    def is_unique(self, keys: Collection[str]) -> bool:
        """Tell whether the owner declares the keys unique, by identifier fields (Iceberg's primary key)."""
        identifiers = set(self.properties.get("identifier-fields", "").strip("[]").split(","))
        return identifiers <= set(keys) and not any("," in name or "." in name for name in self.columns)

    @property
    def deletes_cheaply(self) -> bool:
        """Tell whether deletes are merge-on-read, so that files are not rewritten."""
        return self.properties.get("write.delete.mode") == "merge-on-read"

    @property
    def timed(self) -> KeyRange | None:
        """Return the range of the key that the table is partitioned by in time, if it is by that alone."""
        if len(self.partitioning) != 1:
            return None
        transform = self.partitioning[0]
        match = _TIMED.fullmatch(transform)
        column = match[2] if match else transform if self.columns.get(transform) == "date" else None
        return next((item for item in self.ranges if item.column == column), None)

    @property
    def leading(self) -> KeyRange | None:
        """Return the most selective range: that of the partitions, else the one with the most intervals."""
        return self.timed or max(self.ranges, key=lambda item: len(item.intervals), default=None)

    @property
    def placing(self) -> tuple[KeyRange, ...]:
        """Return the ranges that a row must be in to match.

        Partitions by time are enough: rows of an old partition are then told apart from those of a new one, also
        when their other keys cannot match, so that the few late ones are written together.
        """
        return self.ranges if self.timed is None else (self.timed,)

    def takes_as_they_lie(self, source: "MergeSource") -> bool:
        """Tell whether rows may be written by the tasks that hold them, without a shuffle.

        Not if the owner chose an order of rows, and not into many partitions, new or old.
        """
        chosen = {"write.distribution-mode", "sort-order"} & self.properties.keys()
        if self.rows == 0 or self.timed is None or source.new is None or chosen:
            return False
        rows, timed = source.new, self.timed.column
        old = next((len(item.intervals) for item in source.ranges if item.column == timed), 0)
        if old > MOST_OLD_PARTITIONS:
            return False
        match = _TIMED.fullmatch(self.partitioning[0])
        unit = _UNITS[match[1] if match else "days"]
        return (_micros(rows.high, self.timed.type) - _micros(rows.low, self.timed.type)) / unit < MOST_NEW_PARTITIONS


def _micros(value: Value, type_name: str) -> int:
    """Return the time of a value, in microseconds."""
    if isinstance(value, str):
        return (datetime.fromisoformat(value) - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001
    return int(value) * (_DAY if type_name == "date" else 1)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The source, from one pass over its keys with the target's ranges."""

    rows: int
    null_keys: int  # never match
    elsewhere: int  # outside of the target's ranges: cannot match either
    ranges: tuple[KeyRange, ...] = ()  # of the rows that may match
    everywhere: tuple[KeyRange, ...] = ()  # of all rows whose keys are not null
    new: Interval | None = None  # where in the leading range those lie that are elsewhere
    deleting: int = 0  # further rows, which only delete what they match

    @property
    def may_match(self) -> int:
        """Number of rows that may have a match."""
        return self.rows - self.null_keys - self.elsewhere + self.deleting

    def with_deletes(self, deletes: "MergeSource") -> "MergeSource":
        """Return the source including the rows that only delete."""
        return replace(
            self,
            ranges=union(self.ranges, deletes.ranges),
            everywhere=union(self.everywhere, deletes.everywhere),
            deleting=deletes.may_match,
        )


@dataclass(frozen=True, slots=True)
class OneMerge:
    """One MERGE of the whole source."""

    reason: str
    ranges: tuple[KeyRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """Change nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class AppendAll:
    """Append the whole source: nothing can match."""

    reason: str


@dataclass(frozen=True, slots=True)
class MergeSome:
    """Merge the rows that may match, without looking them up first, and append the others."""

    reason: str
    ranges: tuple[KeyRange, ...]
    broadcasts: bool


@dataclass(frozen=True, slots=True)
class LookUp:
    """Look up by a broadcast join which rows match, merge those, and append the others."""

    reason: str
    ranges: tuple[KeyRange, ...]
    rewrites: bool = False
    """Whether matching rows may be deleted and appended again: cheaper than MERGE if deletes are."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete every row with a key of the source, and append the whole source."""

    reason: str
    ranges: tuple[KeyRange, ...]


Plan = Nothing | OneMerge | AppendAll | MergeSome | LookUp | Replace


def only_merge(
    request: MergeRequest, target: MergeTarget, source_types: Mapping[str, str], *, atomic: bool
) -> str | None:
    """Return why the source must be merged by a single MERGE; None if it need not be."""
    if target.branch is None and atomic:
        return "without a branch (spark.wap.branch) only a single commit is atomic and is checked against other writers"
    if target.branch is None and request.accumulates:
        return "a crash could repeat it, which changes the result here, and there is no branch"
    for key in request.keys:
        if source_types[key] != target.columns[key]:
            return f"{key} is {source_types[key]} in the source and {target.columns[key]} in the target: cast it"
    return None


def is_worth_bounding(request: MergeRequest, target: MergeTarget, source_types: Mapping[str, str]) -> bool:
    """Tell whether the source's keys can save reading parts of the target."""
    has_parts = target.leading is not None and len(target.leading.intervals) > 1
    return has_parts and all(source_types[key] == target.columns[key] for key in request.keys)


def choose(request: MergeRequest, target: MergeTarget, source: MergeSource) -> Plan:
    """Return the cheapest plan for a merge that may take several commits."""
    if source.rows + source.deleting == 0:
        return Nothing("the source is empty")
    if source.may_match == 0:
        reason = "no row of the source lies where the target has rows"
        return AppendAll(reason) if request.inserts else Nothing(reason)
    if not request.inserts:
        broadcasts = source.may_match <= MOST_BROADCAST_WHOLE
        return MergeSome("nothing is inserted, so an inner join is enough", source.ranges, broadcasts)
    if source.may_match > MOST_BROADCAST:
        reason = f"more than {MOST_BROADCAST:,} rows may match, too many to broadcast"
        return MergeSome(reason, source.ranges, broadcasts=False)
    # Without a branch, readers would miss for a moment what is deleted first.
    deletes = target.deletes_cheaply and target.branch is not None
    if deletes and request.replaces and target.is_unique(request.keys):
        reason = (
            "few rows may match, and by the target's identifier fields each matches one at most: a broadcast delete"
        )
        return Replace(reason, source.ranges)
    reason = "few rows may match: a broadcast join finds those that do, and no row of the target is shuffled"
    return LookUp(reason, source.ranges, deletes and request.rewrites)
