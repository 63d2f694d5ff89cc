"""How a merge can be done, and which way is chosen."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from calve.merging.bounds import Interval, Range, Value, union
from calve.merging.request import Request

MOST_BROADCAST = 500_000
"""Rows of the source whose keys are sent to every executor to be looked up in the target."""
MOST_BROADCAST_WHOLE = 200_000
"""Rows of the source that are sent to every executor with all their columns."""
MOST_NEW_PARTITIONS = 4
"""New partitions that each task may open files in, when rows are appended without a shuffle."""
MOST_OLD_PARTITIONS = 50
"""Old partitions that one task may open files in, for the late rows."""

_DAY = 86_400_000_000
_UNITS = {"hours": _DAY // 24, "days": _DAY, "months": 28 * _DAY, "years": 365 * _DAY}
_TIMED = re.compile(r"(days|hours|months|years)\((\w+)\)")


@dataclass(frozen=True, slots=True)
class Target:
    """What metadata tells of the target."""

    name: str  # in full, as Spark shows it
    columns: Mapping[str, str]  # names and types
    properties: Mapping[str, str]
    partitioning: tuple[str, ...]
    branch: str | None  # where this session reads and writes; None: the main branch
    head: int | None  # the snapshot that is merged into
    rows: int
    files: int
    slices: int  # partitions, or files of a table without partitions
    ranges: tuple[Range, ...]  # of the key columns whose bounds every file has

    def is_unique(self, keys: Collection[str]) -> bool:
        """Tell whether its owner says that no two rows have the same keys: by identifier fields, Iceberg's own word."""
        identifiers = set(self.properties.get("identifier-fields", "").strip("[]").split(","))
        return identifiers <= set(keys) and not any("," in name or "." in name for name in self.columns)

    @property
    def deletes_cheaply(self) -> bool:
        """Tell whether a row is deleted by a mark, and not by writing its whole file anew."""
        return self.properties.get("write.delete.mode") == "merge-on-read"

    @property
    def timed(self) -> Range | None:
        """Return the range of the key by whose time the table is partitioned, where it is by that alone."""
        if len(self.partitioning) != 1:
            return None
        transform = self.partitioning[0]
        match = _TIMED.fullmatch(transform)
        column = match[2] if match else transform if self.columns.get(transform) == "date" else None
        return next((item for item in self.ranges if item.column == column), None)

    @property
    def leading(self) -> Range | None:
        """Return the range that tells most: the partitions', else the one in the most pieces."""
        return self.timed or max(self.ranges, key=lambda item: len(item.intervals), default=None)

    @property
    def placing(self) -> tuple[Range, ...]:
        """Return the ranges outside of which a row cannot match.

        Partitions by time are enough: rows of an old partition are then told apart from those of a new one, also
        when their other keys cannot match, so that the few late ones are written together.
        """
        return self.ranges if self.timed is None else (self.timed,)

    def takes_as_they_lie(self, source: "Source") -> bool:
        """Tell whether rows may be written by the tasks that have them, without a shuffle.

        Not where the owner chose an order of rows, and not into many partitions at once, be they new or old.
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
    """Return the time that a value stands for."""
    if isinstance(value, str):
        return (datetime.fromisoformat(value) - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001
    return int(value) * (_DAY if type_name == "date" else 1)


@dataclass(frozen=True, slots=True)
class Source:
    """What one pass over the keys tells of the source, given the target's ranges."""

    rows: int
    null_keys: int  # never match
    elsewhere: int  # outside of the target's ranges: cannot match either
    ranges: tuple[Range, ...] = ()  # of the rows that may match
    everywhere: tuple[Range, ...] = ()  # of all rows whose keys are not null
    new: Interval | None = None  # where in the leading range those lie that are elsewhere
    deleting: int = 0  # further rows, which only delete what they match

    @property
    def may_match(self) -> int:
        """Return how many rows may have a match."""
        return self.rows - self.null_keys - self.elsewhere + self.deleting

    def with_deletes(self, deletes: "Source") -> "Source":
        """Return the source together with the rows that only delete."""
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
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """Leave the target as it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class AppendAll:
    """Append the whole source: nothing can match."""

    reason: str


@dataclass(frozen=True, slots=True)
class MergeSome:
    """Merge the rows that may match, without looking them up first, and append the others."""

    reason: str
    ranges: tuple[Range, ...]
    broadcasts: bool


@dataclass(frozen=True, slots=True)
class LookUp:
    """Look up by a broadcast join which rows match, merge those, and append the others."""

    reason: str
    ranges: tuple[Range, ...]
    rewrites: bool = False
    """Whether those that match may be deleted, and appended as they will be: cheaper than MERGE where deletes are."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete whatever has a key of the source, and append the whole source."""

    reason: str
    ranges: tuple[Range, ...]


Plan = Nothing | OneMerge | AppendAll | MergeSome | LookUp | Replace


def only_merge(request: Request, target: Target, source_types: Mapping[str, str], *, atomic: bool) -> str | None:
    """Return why the source must go through one MERGE, if it must."""
    if target.branch is None and atomic:
        return "without a branch (spark.wap.branch) only a single commit is atomic and is checked against other writers"
    if target.branch is None and request.accumulates:
        return "after a crash it would be done twice, which gives something else here, and there is no branch"
    for key in request.keys:
        if source_types[key] != target.columns[key]:
            return f"{key} is {source_types[key]} in the source and {target.columns[key]} in the target: cast it"
    return None


def is_worth_bounding(request: Request, target: Target, source_types: Mapping[str, str]) -> bool:
    """Tell whether knowing the source's keys can spare reading parts of the target."""
    has_parts = target.leading is not None and len(target.leading.intervals) > 1
    return has_parts and all(source_types[key] == target.columns[key] for key in request.keys)


def choose(request: Request, target: Target, source: Source) -> Plan:
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
