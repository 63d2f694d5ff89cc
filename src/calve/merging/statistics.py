"""Statistics of the target and the source of a merge, from metadata and from Spark."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calve.errors import RequestInvalid, TableMissing
from calve.merging.bounds import Interval, KeyRange, all_hold, is_ordered, range_of, reading
from calve.merging.plans import MergeSource, MergeTarget
from calve.merging.request import MergeRequest
from calve.texts import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAIN = "main"
_NULL, _ELSEWHERE = -2, -1
# Below it, too many rows of other keys would be fetched for each hash (decision 0016).
_NEARLY_ALL = 0.95
_COSTLY = re.compile(
    r"^[\s+\-:*()\d]*(Exchange|Sort|SortMergeJoin|\w*Aggregate\w*|Window\w*|Generate|\w*Python\w*|\w*InPandas\w*"
    r"|MapPartitions\w*|MapElements|Sample|LocalLimit|GlobalLimit|CollectLimit|TakeOrdered\w*)\b",
    re.MULTILINE,
)
_RANDOM = re.compile(r"\b(rand|randn|uuid|shuffle|randstr|uniform|monotonically_increasing_id)\(", re.IGNORECASE)


def columns_of(frame: "DataFrame") -> dict[str, str]:
    """Return names and types of a frame's columns."""
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def named_like(names: Sequence[str], columns: Mapping[str, str], where: str) -> tuple[str, ...]:
    """Return names in the spelling of the columns.

    Raises:
        RequestInvalid: There is no such column.
    """
    by_lower = {column.lower(): column for column in columns} | {column: column for column in columns}
    found = [by_lower.get(name, by_lower.get(name.lower())) for name in names]
    missing = [name for name, column in zip(names, found, strict=True) if column is None]
    if missing:
        raise RequestInvalid(
            f"{where} has no column {', '.join(missing)}.", remedy=f"Its columns are {', '.join(columns)}."
        )
    return tuple(column for column in found if column is not None)


def target_columns(spark: "SparkSession", into: tuple[str, ...]) -> dict[str, str]:
    """Return names and types of the target's columns.

    Raises:
        TableMissing: There is no such table.
    """
    from pyspark.errors import AnalysisException

    try:
        return columns_of(spark.table(quoted(*into)))
    except AnalysisException as error:
        if "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            raise
        raise TableMissing(f"There is no table {'.'.join(into)} to merge into.", table=".".join(into)) from error


def qualified(spark: "SparkSession", into: tuple[str, ...]) -> tuple[str, ...]:
    """Return a table's name with its namespace, which its metadata tables need."""
    if len(into) > 1:
        return into
    (row,) = spark.sql("SELECT current_catalog(), current_database()").collect()
    return (row[0], *row[1].split("."), *into)


def target(spark: "SparkSession", request: MergeRequest, columns: Mapping[str, str]) -> MergeTarget:
    """Return the target's statistics from metadata; no data file is read."""
    described = [(row[0], row[1]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {request.target}").collect()]
    properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {request.target}").collect()}
    branch = _branch(spark, properties)
    head, version = _head(spark, request.into, branch)
    ordered = [key for key in request.keys if is_ordered(columns[key])]
    slices = _slices(spark, request, columns, ordered, version)
    ranges = [_range(key, columns[key], at, slices) for at, key in enumerate(ordered)]
    return MergeTarget(
        name=_below(described, "# Detailed Table Information").get("Name", ".".join(request.into)),
        columns=columns,
        properties=properties,
        partitioning=partitioning(described),
        branch=branch,
        head=head,
        rows=sum(row["records"] for row in slices),
        files=sum(row["files"] for row in slices),
        slices=len(slices),
        ranges=tuple(item for item in ranges if item is not None),
    )


def partitioning(described: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the partition fields from DESCRIBE: numbered, or by name alone if all are plain columns."""
    below = _below(described, "# Partitioning")
    numbered = tuple(value for key, value in below.items() if re.fullmatch(r"Part \d+", key))
    names = [key for key, _ in described]
    if numbered or "# Partition Information" not in names:
        return numbered
    first = names.index("# Partition Information") + 2  # below comes a line with the headings
    return tuple(names[first : names.index("", first)])


def _below(described: Sequence[tuple[str, str]], heading: str) -> dict[str, str]:
    """Return what DESCRIBE shows below a heading: above it are columns, which may have any name."""
    names = [key for key, _ in described]
    return dict(described[names.index(heading) :]) if heading in names else {}


def _branch(spark: "SparkSession", properties: Mapping[str, str]) -> str | None:
    """Return the branch that this session writes to; None: main."""
    branch = spark.conf.get("spark.wap.branch", None)
    return branch if branch and properties.get("write.wap.enabled", "").lower() == "true" else None


def _head(spark: "SparkSession", into: tuple[str, ...], branch: str | None) -> tuple[int | None, str]:
    """Return the newest snapshot, and the clause for metadata tables, which show the main branch by default."""
    rows = spark.sql(f"SELECT name, snapshot_id FROM {quoted(*into, 'refs')}").collect()
    heads: dict[str, int] = {row[0]: row[1] for row in rows}
    head = heads.get(branch or MAIN, heads.get(MAIN))
    return head, "" if head is None else f" VERSION AS OF {head}"


def newest(spark: "SparkSession", target: MergeTarget, into: tuple[str, ...]) -> dict[str, str]:
    """Return the summary of the newest snapshot; empty if nothing was written."""
    row = spark.sql(
        f"SELECT s.snapshot_id, s.summary FROM {quoted(*into, 'snapshots')} s JOIN {quoted(*into, 'refs')} r"
        f" ON s.snapshot_id = r.snapshot_id WHERE r.name IN ('{target.branch or MAIN}', '{MAIN}')"
        f" ORDER BY r.name = '{MAIN}' LIMIT 1"
    ).collect()
    return dict(row[0][1]) if row and row[0][0] != target.head else {}


def _slices(
    spark: "SparkSession", request: MergeRequest, columns: Mapping[str, str], ordered: Sequence[str], version: str
) -> list[Any]:
    """Return the target's data files by partition (by file where there is none), with the bounds of the keys."""
    files = quoted(*request.into, "files")
    group = "`partition`" if "partition" in spark.table(files).columns else "file_path"
    bounds = [text for at, key in enumerate(ordered) for text in _bounds(key, columns[key], at)]
    selected = ", ".join(["sum(record_count) AS records", "count(*) AS files", *bounds])
    return spark.sql(f"SELECT {selected} FROM {files}{version} WHERE content = 0 GROUP BY {group}").collect()


def _bounds(key: str, type_name: str, at: int) -> list[str]:
    metrics = f"readable_metrics.{quoted(key)}"
    low, high = f"{metrics}.lower_bound", f"{metrics}.upper_bound"
    # A file whose keys are all null has no bounds; it holds nothing that can match.
    only_nulls = f"{metrics}.value_count = {metrics}.null_value_count"
    known = f"({low} IS NOT NULL AND {high} IS NOT NULL) OR coalesce({only_nulls}, false)"
    return [
        f"{reading(type_name, f'min({low})')} AS low{at}",
        f"{reading(type_name, f'max({high})')} AS high{at}",
        f"every({known}) AS known{at}",
    ]


def _range(key: str, type_name: str, at: int, slices: Sequence[Any]) -> KeyRange | None:
    if not all(row[f"known{at}"] for row in slices):
        return None
    found = [(row[f"low{at}"], row[f"high{at}"]) for row in slices]
    return range_of(key, type_name, [pair for pair in found if pair != (None, None)])


def explained(spark: "SparkSession", view: str) -> str:
    """Return Spark's physical plan of a view."""
    return str(spark.sql(f"EXPLAIN SELECT * FROM {view}").collect()[0][0])


def is_worth_keeping(plan: str) -> bool:
    """Tell whether a source should be computed once and kept, instead of being read twice.

    Each row is needed once, and a filter on its key comes before all other work on it, unless rows are exchanged or
    computed together, or by chance.
    """
    left = _without_kept(plan)
    return _COSTLY.search(left) is not None or _RANDOM.search(left) is not None


def _without_kept(plan: str) -> str:
    """Return a plan without the parts below cached relations."""
    left: list[str] = []
    depth: int | None = None
    for line in plan.splitlines():
        at = len(line) - len(line.lstrip(" :+-"))
        if depth is not None and at > depth:
            continue
        depth = at if "InMemoryRelation" in line else None
        left.append(line)
    return "\n".join(left)


def reads(plan: str, table: str) -> bool:
    """Tell whether a plan reads a table."""
    return re.search(rf"(?<![\w.]){re.escape(table)}(?![\w.])", plan) is not None


def source(spark: "SparkSession", view: str, request: MergeRequest, target: MergeTarget) -> MergeSource:
    """Count the rows of a view by whether they can match, and return the ranges of the keys of those that may."""
    leading = target.leading
    position = leading.position("s") if leading and leading.intervals else "0"
    nulls = " OR ".join(f"s.{quoted(key)} IS NULL" for key in request.keys)
    bounds = [
        f"{reading(item.type, f'{end}(s.{quoted(item.column)})')} AS {name}{at}"
        for at, item in enumerate(target.ranges)
        for end, name in (("min", "low"), ("max", "high"))
    ]
    place = (
        f"CASE WHEN {nulls} THEN {_NULL} WHEN NOT ({_may_match(target)}) THEN {_ELSEWHERE} ELSE {position} END AS place"
    )
    keys = ", ".join(f"s.{quoted(key)}" for key in request.keys)
    selected = ", ".join(["place", "count(*) AS records", *bounds])
    rows = spark.sql(f"SELECT {selected} FROM (SELECT {keys}, {place} FROM {view} s) s GROUP BY place").collect()
    return _summed(rows, target)


@dataclass(frozen=True, slots=True)
class Keys:
    """Statistics of the keys of some rows."""

    rows: int
    are_unique: bool
    hashed: str | None
    """A bigint key that is different in nearly all rows."""


def keys(spark: "SparkSession", view: str, request: MergeRequest, target: MergeTarget) -> Keys:
    """Count the different keys of a view."""
    names = [quoted(key) for key in request.keys]
    numbers = [key for key in request.keys if target.columns[key] == "bigint"]
    counted = ", ".join(f"count(DISTINCT {quoted(key)})" for key in numbers)
    selected = ", ".join(filter(None, ["count(*)", f"count(DISTINCT {', '.join(names)})", counted]))
    rows, different, *each = spark.sql(f"SELECT {selected} FROM {view}").collect()[0]
    told_apart = max(zip(each, numbers, strict=True), default=(0, ""))
    return Keys(rows, rows == different, told_apart[1] if told_apart[0] > _NEARLY_ALL * rows else None)


def _may_match(target: MergeTarget) -> str:
    return "false" if target.rows == 0 else all_hold(target.placing, "s")


def _summed(rows: Sequence[Any], target: MergeTarget) -> MergeSource:
    counts = {row["place"]: row["records"] for row in rows}
    inside = _ranges([row for row in rows if row["place"] >= 0], target)
    everywhere = _ranges([row for row in rows if row["place"] != _NULL], target)
    return MergeSource(
        rows=sum(counts.values()),
        null_keys=counts.get(_NULL, 0),
        elsewhere=counts.get(_ELSEWHERE, 0),
        ranges=tuple(found for found in inside if found is not None),  # what cannot be written in SQL bounds nothing
        everywhere=tuple(found for found in everywhere if found is not None),
        new=_new([row for row in rows if row["place"] == _ELSEWHERE], target),
    )


def _ranges(rows: Sequence[Any], target: MergeTarget) -> list[KeyRange | None]:
    return [
        range_of(item.column, item.type, [(row[f"low{at}"], row[f"high{at}"]) for row in rows])
        for at, item in enumerate(target.ranges)
    ]


def _new(rows: Sequence[Any], target: MergeTarget) -> Interval | None:
    found = next(
        (item for item in _ranges(rows, target) if item and target.leading and item.column == target.leading.column),
        None,
    )
    return found.intervals[0] if found and found.intervals else None
