"""Captures over tables whose schema and partitioning change between commits, in every format."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from tests.integration.tables import Rows, Source, canonical, union
from tests.scope import ALL

pytestmark = pytest.mark.spark

LAYOUTS = {
    "unpartitioned": "",
    "by identity": "city",
    "by day": "days(ts)",
    "by bucket": "bucket(3, id)",
    "by truncate": "truncate(2, name)",
    "by an evolving spec": "city",
}
_KINDS = {
    1: dict.fromkeys(LAYOUTS, "v1"),
    2: dict(zip(LAYOUTS, ["v2 copy-on-write", "v2 merge-on-read"] * 3, strict=True)),
    3: dict(zip(LAYOUTS, ["v3 merge-on-read", "v3 copy-on-write"] * 3, strict=True)),
}
CASES = [
    pytest.param(_KINDS[version][layout], layout, id=f"v{version} {layout}")
    for version in _KINDS
    for place, layout in enumerate(LAYOUTS)
    if ALL or place % 3 == version % 3 or layout == "by an evolving spec"
]
_RESPEC: dict[int, tuple[str, ...]] = {
    2: ("ADD PARTITION FIELD bucket(2, id)",),
    4: ("REPLACE PARTITION FIELD city WITH days(ts)",),
    6: ("DROP PARTITION FIELD bucket(2, id)",),
}
"""What the evolving layout does before a batch."""


@dataclass
class _Growing:
    """A table that changes shape before every batch, and what to insert to fit it."""

    source: Source
    layout: str
    columns: dict[str, str] = field(
        default_factory=lambda: {
            "id": "CAST(id AS INT)",
            "batch": "CAST({batch} AS INT)",
            "ts": "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, CAST(id % 3 AS INT), {batch})",
            "city": "CASE WHEN id % 4 = 3 THEN NULL ELSE concat('city', id % 2) END",
            "name": "concat(char(97 + id % 3), 'name', id)",
            "price": "CAST(id / 8 AS FLOAT)",
            "amount": "CAST(id * 1.25 - 40 AS DECIMAL(9, 2))",
            "gone": "concat('gone', id)",
            "spare": "CASE WHEN id % 2 = 0 THEN 'spare' END",
            "point": "named_struct('x', CAST(id AS INT), 'y', CAST(-id AS INT))",
        }
    )
    snapshots: list[int] = field(default_factory=list)

    def alter(self, *changes: str) -> None:
        for change in changes:
            self.source.run(f"ALTER TABLE {{t}} {change}")

    def before(self, batch: int) -> None:
        """Change the table's shape for a batch."""
        if self.layout == "by an evolving spec":
            self.alter(*_RESPEC.get(batch, ()))
        columns = self.columns
        match batch:
            case 1:  # add
                self.alter("ADD COLUMNS (extra STRING, point.z INT)")
                columns["point"] = "named_struct('x', CAST(id AS INT), 'y', CAST(-id AS INT), 'z', CAST(7 AS INT))"
                columns["extra"] = "concat('extra', id)"
            case 2:  # drop
                self.alter("DROP COLUMN gone")
                del columns["gone"]
            case 3:  # add the dropped name again
                self.alter("ADD COLUMN gone INT")
                columns["gone"] = "CAST(-id AS INT)"
            case 4:  # rename
                self.alter("RENAME COLUMN name TO title", "RENAME COLUMN point.x TO across")
                self.columns = {"title" if name == "name" else name: how for name, how in columns.items()}
                self.columns["point"] = columns["point"].replace("'x'", "'across'")
            case 5:  # promote
                self.alter(
                    "ALTER COLUMN id TYPE BIGINT",
                    "ALTER COLUMN price TYPE DOUBLE",
                    "ALTER COLUMN amount TYPE DECIMAL(18, 2)",
                    "ALTER COLUMN point.y TYPE BIGINT",
                )
                columns["id"] = "5000000000 + id"
                columns["price"] = "CAST(id / 8 + 0.1 AS DOUBLE)"
                columns["amount"] = "CAST(id * 1e9 AS DECIMAL(18, 2))"
                columns["point"] = columns["point"].replace("CAST(-id AS INT)", "-id * 5000000000")
            case 6:  # reorder
                self.alter("ALTER COLUMN spare FIRST", "ALTER COLUMN point.z FIRST")
                self.columns = {"spare": columns.pop("spare"), **columns}
                z, rest = "'z', CAST(7 AS INT)", columns["point"].replace(", 'z', CAST(7 AS INT)", "")
                self.columns["point"] = rest.replace("named_struct(", f"named_struct({z}, ")
            case _:
                pass

    def append(self, batch: int) -> None:
        """Change shape, then append six rows."""
        self.before(batch)
        values = ", ".join(how.replace("{batch}", str(batch)) for how in self.columns.values())
        self.source.run(f"INSERT INTO {{t}} SELECT {values} FROM range({batch * 10}, {batch * 10 + 6})")
        self.snapshots.append(self.source.head)

    def by_batch(self) -> dict[int, Rows]:
        """Return the table's rows as they read now, by the batch that brought them."""
        found: dict[int, Rows] = defaultdict(Counter)
        for row in self.source.run("SELECT batch AS brought_by, * FROM {t}"):
            found[row[0]][canonical(row[1:])] += 1
        return found


def _grown(source: Source, kind: str, layout: str, batches: Sequence[int] = range(7)) -> _Growing:
    growing = _Growing(source, layout)
    source.create(
        "id INT, batch INT, ts TIMESTAMP, city STRING, name STRING, price FLOAT, amount DECIMAL(9, 2), "
        "gone STRING, spare STRING, point STRUCT<x: INT, y: INT>",
        kind,
        LAYOUTS[layout],
    )
    for batch in batches:
        growing.append(batch)
    return growing


@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_any_range_of_appends_reads_by_column_id(source: Source, kind: str, layout: str) -> None:
    """Whatever the schema was when rows were written, a capture reads them as the source does now."""
    growing = _grown(source, kind, layout)
    truth, snapshots = growing.by_batch(), growing.snapshots
    for start, end in ((0, 6), (2, 5)):
        found = source.between(snapshots[start], snapshots[end])
        assert source.rows(found.relation) == union([truth[n] for n in range(start + 1, end + 1)])
        assert (found.exactness, found.records) == ("exact", 6 * (end - start))
    first = source.capture().tables[0]
    assert source.rows(first.relation) == union(list(truth.values()))

    # changes to old rows, over the whole of that evolution
    source.run(
        "UPDATE {t} SET price = price + 1, point.z = 1 WHERE id % 10 = 1",
        "DELETE FROM {t} WHERE id % 10 = 2 AND batch IN (0, 3, 6)",
    )
    source.check(source.between(snapshots[1]))


@pytest.mark.parametrize("kind", ["v1", "v2 merge-on-read", "v3 copy-on-write"])
def test_a_consumer_that_follows_sees_every_shape(source: Source, kind: str) -> None:
    """Captured after every change of schema and spec, each commit comes once, in the columns of its day."""
    growing = _grown(source, kind, "by an evolving spec", [])
    for batch in range(7):
        growing.append(batch)
        found = source.advance(operations=frozenset({"append"}))
        assert source.rows(found.relation) == source.rows(f"{source.name} WHERE batch = {batch}")


@pytest.mark.parametrize("kind", ["v2 copy-on-write", "v3 merge-on-read"])
def test_a_column_that_partitioned_the_table_may_be_dropped(source: Source, kind: str) -> None:
    """Files of an old spec whose column is gone are captured like others."""
    source.create("id INT, city STRING, day DATE", kind, "city")
    source.run("INSERT INTO {t} VALUES (1, 'Bern', DATE '2026-01-01'), (2, 'Graz', DATE '2026-01-02')")
    first = source.head
    source.run("INSERT INTO {t} VALUES (3, 'Bern', DATE '2026-01-03')")
    source.run("ALTER TABLE {t} REPLACE PARTITION FIELD city WITH day", "ALTER TABLE {t} DROP COLUMN city")
    source.run("INSERT INTO {t} VALUES (4, DATE '2026-01-04')", "DELETE FROM {t} WHERE id = 1")
    everything = source.advance()
    assert source.rows(everything.relation) == source.rows(source.name)
    since = source.between(first)
    source.check(since)
    # Iceberg itself forgets the city's value when it rewrites the manifest, but not which spec it was
    assert [part["spec_id"] for part in since.partitions] == [0, 1]
