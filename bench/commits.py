"""A table with thousands of commits and partitions, whose metadata is written as a writer would leave it after years.

Each commit adds a file to its own day and one to an earlier day. To append one by one would write the growing metadata
and its list of manifests again each time; here both are written once. No data file exists: pages read metadata only.
"""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, LongType, NestedField

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

DAY = 86_400_000
ROWS = 40_000
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))


def write_table(catalog: "Catalog", name: str, commits: int, partitions: int, now: int, ends: list[int]) -> list[int]:
    """Make a table.

    Args:
        catalog: where.
        name: of the table.
        commits: how many it has.
        partitions: how many days they are spread over, which end now.
        now: in milliseconds.
        ends: the numbers of commits besides the last that have a list of manifests.

    Returns:
        The ids of the snapshots.
    """
    catalog.create_namespace_if_not_exists(name.partition(".")[0])
    table = catalog.create_table(name, SCHEMA, partition_spec=BY_DAY, properties={"format-version": "2"})
    place = Path(unquote(urlsplit(table.metadata_location).path))
    manifests: list[ManifestFile] = []
    snapshots = []
    for number in range(commits):
        manifests.append(_manifest(table, number, _days(number, commits, partitions, now)))
        if number + 1 in {*ends, commits}:
            _list(table, number, manifests)
        at = now - DAY * partitions * (commits - 1 - number) // commits
        snapshots.append(_snapshot(table, number, at))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    last = snapshots[-1]["snapshot-id"]
    log = [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in snapshots]
    metadata |= {"snapshots": snapshots, "snapshot-log": log, "current-snapshot-id": last}
    metadata |= {"refs": {"main": {"snapshot-id": last, "type": "branch"}}, "last-sequence-number": commits}
    place.write_text(json.dumps(metadata | {"last-updated-ms": now}), encoding="utf-8")
    return [one["snapshot-id"] for one in snapshots]


def _days(number: int, commits: int, partitions: int, now: int) -> list[int]:
    """Return the days that a commit writes to: its own, and one that is late."""
    today = now // DAY - partitions + 1 + number * partitions // commits
    first = now // DAY - partitions + 1
    return [today, max(first, today - int(random.Random(number).expovariate(1 / 20)) - 1)]


def _id(number: int) -> int:
    return 10**15 + number


def _manifest(table: "Table", number: int, days: list[int]) -> "ManifestFile":
    output = table.io.new_output(f"{table.location()}/metadata/m{number}.avro")
    with write_manifest(2, BY_DAY, SCHEMA, output, _id(number), "deflate") as writer:
        for each, day in enumerate(days):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{table.location()}/data/day={day}/{number}-{each}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(day),
                record_count=ROWS,
                file_size_in_bytes=ROWS * 31,
                sort_order_id=None,
                spec_id=0,
                equality_ids=None,
                key_metadata=None,
            )
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=_id(number),
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            writer.add_entry(entry)
    made = writer.to_manifest_file()
    made.sequence_number = made.min_sequence_number = number + 1  # as its own list would say
    return made


def _list_path(table: "Table", number: int) -> str:
    return f"{table.location()}/metadata/snap-{number}.avro"


def _list(table: "Table", number: int, manifests: "list[ManifestFile]") -> None:
    output = table.io.new_output(_list_path(table, number))
    with write_manifest_list(2, output, _id(number), _id(number - 1), number + 1, "deflate") as writer:
        writer.add_manifests(manifests[::-1])


def _snapshot(table: "Table", number: int, at: int) -> dict[str, Any]:
    files = {"added-data-files": "2", "added-records": str(2 * ROWS), "added-files-size": str(2 * ROWS * 31)}
    totals = {"total-data-files": str(2 * (number + 1)), "total-records": str(2 * ROWS * (number + 1))}
    parent = {"parent-snapshot-id": _id(number - 1)} if number else {}
    return {
        "snapshot-id": _id(number),
        "sequence-number": number + 1,
        "timestamp-ms": at,
        "manifest-list": _list_path(table, number),
        "summary": {"operation": "append", **files, **totals},
        "schema-id": 0,
        **parent,
    }
