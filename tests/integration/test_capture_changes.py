"""Updates, deletes and overwrites: the rows that came and the rows that left, exactly, in every format."""

from collections.abc import Callable

import pytest
from tests.integration.tables import KINDS, KINDS_PARTITIONED, SOME_KINDS, Source, options

from calve.capture import Operation
from calve.errors import ChangeUnsupported

pytestmark = pytest.mark.spark

_DYNAMIC = {"spark__sql__sources__partitionOverwriteMode": "dynamic"}
_COLUMNS = "id BIGINT, day DATE, v STRING"


def _fill(source: Source, kind: str, by: str) -> None:
    """Create a table with two commits, six rows in a day each, duplicates among them."""
    source.create(_COLUMNS, kind, by)
    row = "SELECT id, DATE '2026-01-01' + CAST(id % 3 AS INT), concat('v', id)"
    source.run(
        f"INSERT INTO {{t}} {row} FROM range(18)",
        f"INSERT INTO {{t}} {row} FROM range(0, 18, 5)",  # the same rows again
    )


_CHANGES = {
    "append": "INSERT INTO {t} SELECT id, DATE '2026-01-01', 'new' FROM range(100, 104)",
    "update": "UPDATE {t} SET v = concat(v, '!') WHERE id % 7 = 3",
    "delete rows": "DELETE FROM {t} WHERE id % 5 = 4",
    "merge": (
        "MERGE INTO {t} t USING (SELECT id, DATE '2026-01-02' AS day, 'merged' AS v FROM range(98, 106)) s "
        "ON t.id = s.id WHEN MATCHED AND t.id = 101 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v, day = s.day WHEN NOT MATCHED THEN INSERT *"
    ),
    "update again": "UPDATE {t} SET v = concat(v, '?') WHERE id IN (3, 102)",
    "delete a partition": "DELETE FROM {t} WHERE day = DATE '2026-01-03'",
    "overwrite partitions": "INSERT OVERWRITE {t} SELECT id, DATE '2026-01-02', 'over' FROM range(200, 203)",
    "truncate": "TRUNCATE TABLE {t}",
    "overwrite all": "INSERT OVERWRITE {t} SELECT id, DATE '2026-01-05', 'all' FROM range(300, 302)",
}


@pytest.mark.parametrize(("kind", "by"), KINDS_PARTITIONED)
def test_every_change_is_exact(source: Source, kind: str, by: str) -> None:
    """After each statement, and over all of them, what came and what left turn one end into the other."""
    _fill(source, kind, by)
    source.advance()
    source.advance("patient")
    places = [source.head]
    for change, statement in _CHANGES.items():
        with options(source.spark, **(_DYNAMIC if change == "overwrite partitions" else {})):
            source.run(statement)
        places.append(source.head)
        source.check(source.advance())
    source.check(source.between(places[1], places[6]))
    source.check(source.advance("patient"))


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_target_follows_by_plain_sql(source: Source, new_source: Callable[[], Source], kind: str) -> None:
    """What a capture gives goes after FROM and USING as it is: two statements keep a copy up to date."""
    source.create(_COLUMNS, kind, "day")
    target = new_source().create(_COLUMNS, "v2 merge-on-read")
    changes = [
        "INSERT INTO {t} SELECT id, DATE '2026-01-01' + CAST(id % 3 AS INT), concat('v', id) FROM range(12)",
        *(_CHANGES[change] for change in ("append", "update", "delete rows", "merge", "delete a partition")),
    ]
    for number in range(0, len(changes), 2):
        source.run(*changes[number : number + 2])
        found = source.advance()
        if found.deletes_relation:
            target.run(f"DELETE FROM {{t}} WHERE id IN (SELECT id FROM {found.deletes_relation})")
        target.run(
            f"MERGE INTO {{t}} t USING {found.relation} s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert target.rows(target.name) == source.at(source.head)


@pytest.mark.parametrize(("kind", "by"), KINDS_PARTITIONED)
def test_compaction_among_changes_changes_nothing(source: Source, kind: str, by: str) -> None:
    """Rows that a compaction moved neither came nor left, before, between and after real changes."""
    _fill(source, kind, by)
    source.run("DELETE FROM {t} WHERE id = 7")
    source.advance()
    start = source.head
    source.run(_CHANGES["update"], _CHANGES["append"])
    source.compact()
    compacted = source.head
    source.check(source.between(start))
    source.run(_CHANGES["delete rows"], _CHANGES["merge"])
    changed = source.head
    source.compact(where=f"{'day' if by else 'id'} IS NOT NULL")
    source.check(source.between(compacted, changed))
    source.check(source.between(compacted))
    source.check(source.advance())
    source.compact()
    nothing = source.capture()
    assert not nothing.changed
    assert (nothing.tables[0].files, nothing.tables[0].deletes_relation) == (0, None)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("v2 merge-on-read", "orc"),
        ("v2 merge-on-read", "avro"),
        ("v2 merge-on-read", "by partition"),
        ("v3 merge-on-read", "names"),
    ],
)
def test_how_files_are_written_does_not_matter(source: Source, kind: str, layout: str) -> None:
    """Other formats, deletes of many files in one, compressed metadata, and values that no path can spell."""
    properties = {
        "orc": {"write__format__default": "orc", "write__metadata__compression_codec": "gzip"},
        "avro": {"write__format__default": "avro", "write__delete__format__default": "avro"},
        "by partition": {"write__delete__granularity": "partition"},
        "names": {"write__object_storage__enabled": "true"},
    }[layout]
    source.create(_COLUMNS, kind, "v" if layout == "names" else "day", **properties)
    row = "SELECT id, DATE '2026-01-01' + CAST(id % 2 AS INT), concat('a=b/ü %25 ', id % 3)"
    for first in (0, 10):
        source.run(f"INSERT INTO {{t}} {row} FROM range({first}, {first + 10}, 1, 2)")
    source.run("DELETE FROM {t} WHERE id IN (1, 11)")
    source.check(source.advance())
    source.run("DELETE FROM {t} WHERE id IN (2, 3, 12, 13)", "UPDATE {t} SET v = 'new' WHERE id IN (4, 15)")
    if kind == "v2 merge-on-read":
        source.call("rewrite_position_delete_files", options="map('rewrite-all', 'true')")
    source.check(source.between(source.snapshots[2]))
    source.run("DELETE FROM {t} WHERE id IN (5, 14)", f"INSERT INTO {{t}} {row} FROM range(20, 24)")
    source.check(source.advance())


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_an_update_that_changes_nothing_still_adds_up(source: Source, kind: str) -> None:
    """Rows written again as they were may be told as come and left, or not at all."""
    _fill(source, kind, "day")
    source.advance()
    source.run("UPDATE {t} SET v = v WHERE id < 4", "DELETE FROM {t} WHERE id = 5")
    source.check(source.advance(), minimal=False)


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_what_is_there_and_gone_within_a_range_is_no_change(source: Source, kind: str) -> None:
    """Rows appended and deleted again leave no trace; a row changed back may be told as come and left."""
    _fill(source, kind, "")
    source.advance()
    source.run(
        "INSERT INTO {t} VALUES (50, DATE '2026-01-01', 'brief'), (51, DATE '2026-01-01', 'stays')",
        "UPDATE {t} SET v = 'briefer' WHERE id = 50",
        "DELETE FROM {t} WHERE id = 50",
        "UPDATE {t} SET v = 'other' WHERE id = 1",
        "UPDATE {t} SET v = 'v1' WHERE id = 1",
    )
    source.check(source.advance(), minimal=kind in {"v1", "v2 copy-on-write"})


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_capture_can_start_from_an_empty_table(source: Source, kind: str) -> None:
    """A checkpoint from before the first commit is a place like any other."""
    source.create(_COLUMNS, kind)
    empty = source.advance()
    assert not empty.changed
    assert source.rows(empty.relation) == {}
    source.run(_CHANGES["append"], _CHANGES["update"], "DELETE FROM {t} WHERE id = 101", _CHANGES["append"])
    source.check(source.advance())


@pytest.mark.parametrize("kind", ["v1", "v2 copy-on-write", "v2 merge-on-read"])
def test_an_upgrade_inside_the_range_keeps_rows_exact(source: Source, kind: str) -> None:
    """Files of older format versions are told apart from those of the range, whatever numbers they lack."""
    version = KINDS[kind][0]
    _fill(source, kind, "")
    source.advance()
    start = source.head
    source.run("INSERT INTO {t} SELECT id, DATE '2026-02-01', 'before' FROM range(500, 506)")
    between = source.head
    for newer in range(version + 1, 4):
        source.run(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('format-version' = '{newer}')")
        source.check(source.advance(f"first in {newer}"))
        source.run(
            f"DELETE FROM {{t}} WHERE id = 50{newer}",
            f"UPDATE {{t}} SET v = 'v{newer}' WHERE id IN (1, 504)",
            f"INSERT INTO {{t}} SELECT id, DATE '2026-02-02', 'v{newer}' FROM range({newer}00, {newer}02)",
        )
        source.check(source.between(start))
        source.check(source.between(between))
    source.check(source.advance())
    source.run("UPDATE {t} SET v = 'last' WHERE id IN (2, 501, 300)", "DELETE FROM {t} WHERE id = 3")
    source.check(source.advance())
    source.check(source.between(start))


def test_rows_with_maps_can_be_told_apart_by_difference(source: Source) -> None:
    """Spark cannot compare maps, but copy-on-write tables of format v2 need just that."""
    source.create("id INT, tags MAP<STRING, INT>, nest STRUCT<a: INT, b: ARRAY<INT>>", "v2 copy-on-write")
    source.run(
        "INSERT INTO {t} VALUES (1, map('a', 1, 'b', 2), named_struct('a', 1, 'b', array(1))), "
        "(2, map('b', 2, 'a', 1), NULL), (3, NULL, NULL), (4, map(), NULL), (5, map('x', NULL), NULL)"
    )
    source.advance()
    source.run("UPDATE {t} SET tags = map('a', 1) WHERE id = 1", "DELETE FROM {t} WHERE id = 3")
    found = source.advance()
    assert found.exactness == "except-all"
    source.check(found)


def test_maps_inside_other_values_are_compared_too(source: Source) -> None:
    """Event tables keep maps in structs, lists and maps; nulls and the order of keys are kept apart from values."""
    source.create(
        "id INT, deep STRUCT<tags: MAP<STRING, INT>, `odd ``name`: STRUCT<m: MAP<INT, STRING>>>, "
        "list ARRAY<MAP<STRING, INT>>, nested MAP<STRING, MAP<STRING, STRUCT<m: MAP<INT, INT>, x: INT>>>, "
        "items ARRAY<STRUCT<tags: MAP<STRING, STRING>, n: INT>>",
        "v2 copy-on-write",
    )
    deep = "named_struct('tags', map('a', 1, 'b', 2), 'odd `name', named_struct('m', map(1, 'x')))"
    nested = "map('k', map('b', named_struct('m', map(2, 2, 1, 1), 'x', 1), 'a', NULL), 'none', NULL)"
    empty = "named_struct('tags', NULL, 'odd `name', NULL)"
    items = "array(named_struct('tags', map('b', 'x', 'a', 'y'), 'n', 1), NULL, named_struct('tags', NULL, 'n', 2))"
    source.run(
        f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ CAST(id AS INT), IF(id = 3, NULL, {deep}), "
        f"array(map('a', CAST(id AS INT)), NULL, map()), {nested}, {items} FROM range(1, 7)",
        f"INSERT INTO {{t}} VALUES (7, {empty}, NULL, NULL, NULL), (8, NULL, array(), map(), array())",
    )
    source.advance()
    source.run(
        "DELETE FROM {t} WHERE id IN (1, 8)",
        f"UPDATE {{t}} SET deep = {empty} WHERE id IN (2, 3)",
        "UPDATE {t} SET list = array(map('a', 5)) WHERE id = 4",
        "UPDATE {t} SET items = array(named_struct('tags', map('a', 'z'), 'n', 1)) WHERE id = 5",
    )
    assert source.plan().exactness == "except-all"
    found = source.advance()
    assert found.exactness == "except-all"
    source.check(found)


def test_a_variant_is_refused_where_rows_must_be_compared(source: Source) -> None:
    """Already by a plan: in a table that was upgraded, the older rows have no lineage."""
    source.create("id INT", "v2 copy-on-write")
    source.run(
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(1, 4)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
        "ALTER TABLE {t} ADD COLUMN v VARIANT",
    )
    source.advance()
    source.run("DELETE FROM {t} WHERE id = 1")
    for ask in (source.plan, source.capture):
        with pytest.raises(ChangeUnsupported, match="v contains a variant"):
            ask()


@pytest.mark.parametrize("kind", ["v1", "v2 merge-on-read", "v3 copy-on-write"])
def test_changes_not_asked_for_are_refused_by_name(source: Source, kind: str) -> None:
    """The error names the snapshots and the option, and nothing is recorded."""
    _fill(source, kind, "day")
    appends = frozenset({Operation.APPEND})
    source.advance(operations=appends)
    source.run(_CHANGES["append"], _CHANGES["update"])
    updated = source.head
    source.run("DELETE FROM {t} WHERE day = DATE '2026-01-02'")
    deleted = source.head
    with pytest.raises(ChangeUnsupported) as refused:
        source.capture(operations=appends)
    named = {told["snapshot_id"]: told["operation"] for told in refused.value.context["snapshots"]}
    assert named == {updated: "overwrite", deleted: "delete"}
    assert "--operations append,delete,overwrite" in refused.value.remedy
    with pytest.raises(ChangeUnsupported) as refused:
        source.capture(operations=appends | {Operation.OVERWRITE})
    assert [told["snapshot_id"] for told in refused.value.context["snapshots"]] == [deleted]
    source.check(source.advance())
