"""Rows deleted by key, as streaming writers do: a table of keys, and the rows that left where they can be told."""

import pytest
from tests.integration.tables import Source, union

from calve.capture import CaptureLimits

pytestmark = pytest.mark.spark

KINDS = ["v2 merge-on-read", "v3 merge-on-read"]
_ROWS = "INSERT INTO {t} VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z'), (3, 'd', 'zz'), (NULL, 'e', 'n')"


def _create(source: Source, kind: str, by: str = "") -> None:
    source.create("id INT, city STRING, v STRING", kind, by)
    source.run(_ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_come_as_a_table_and_rows_by_it(source: Source, kind: str) -> None:
    """A key that matched nothing is a key like others; null is a key; what came later under it stays."""
    _create(source, kind)
    source.advance()
    source.delete_by_key(["id"], [2], [None], [999])
    source.run("INSERT INTO {t} VALUES (2, 'b', 'again')")
    found = source.advance(ranges=("id", "city"))
    assert [keys["columns"] for keys in found.delete_keys] == [("id",)]
    assert source.rows(found.delete_keys[0]["table"]) == {(2,): 1, (None,): 1, (999,): 1}
    source.check(found)
    assert all(told["lower"] is told["upper"] is None and not told["empty"] for told in found.ranges.values())

    # with other deletes, other keys, and rows that come and go by key within the range
    source.delete_by_key(["id"], [3])
    source.run("DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (7, 'b', 'gone'), (8, 'f', 'stays')")
    source.delete_by_key(["city", "v"], ["b", "again"], ["b", "gone"])
    found = source.advance()
    assert sorted(keys["columns"] for keys in found.delete_keys) == [("city", "v"), ("id",)]
    source.check(found)
    after = source.capture()
    assert not after.changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_deleted_keys_is_captured_whole(source: Source, kind: str) -> None:
    """Everything live, at once and in parts, with the old deletes in force; and over a later compaction."""
    _create(source, kind)
    source.delete_by_key(["id"], [3])
    source.run("INSERT INTO {t} VALUES (3, 'c', 'new')")
    source.check(source.advance())
    parts = [source.rows(part.relation) for part in source.in_parts("in parts", limits=CaptureLimits(max_files=1))]
    assert len(parts) > 1
    assert union(parts) == source.at(source.head)
    source.run("UPDATE {t} SET v = 'changed' WHERE id = 1")
    source.check(source.advance())
    start = source.head
    source.delete_by_key(["id"], [1])
    source.run("INSERT INTO {t} VALUES (1, 'a', 'newer')")
    source.compact()
    found = source.between(start)
    if found.delete_keys:  # still listed beside files that were written without the rows: then only keys are told
        assert found.deletes_relation is None
        assert source.rows(found.relation) == source.at(source.head) - source.at(start)
    else:
        source.check(found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_counts_in_its_partition_only(source: Source, kind: str) -> None:
    """The same key in another partition is another row; where that cannot be told, no rows are named."""
    _create(source, kind, "city")
    source.run("INSERT INTO {t} VALUES (1, 'b', 'other')")
    source.advance()
    source.delete_by_key(["id"], [1], partition="city=a")
    found = source.advance()
    assert found.deletes_relation is None
    assert source.rows(found.delete_keys[0]["table"]) == {(1,): 1}
    source.delete_by_key(["id", "city"], [1, "b"], [3, "b"], partition="city=b")
    source.check(source.advance())


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_start_to_read_only_keys_are_reported(source: Source, kind: str) -> None:
    """Over an empty start nothing left; over another schema the start does not read as it would now."""
    source.create("id INT, city STRING, v STRING", kind)
    source.advance()
    source.run(_ROWS)
    source.delete_by_key(["id"], [1])
    found = source.advance()
    assert found.deletes_relation is None
    source.check(found)
    source.run("ALTER TABLE {t} DROP COLUMN v", "ALTER TABLE {t} ADD COLUMN v STRING")
    source.delete_by_key(["id"], [2])
    found = source.advance()
    assert (found.changed, found.deletes_relation) == (True, None)
    assert source.rows(found.delete_keys[0]["table"]) == {(2,): 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_holds_what_the_keys_are_compared_with(source: Source, kind: str) -> None:
    """The rows that left are read from the start, so expiry must not take it."""
    _create(source, kind)
    source.advance()
    start = source.head
    truth = source.at(start)
    source.delete_by_key(["id"], [2])
    truth -= source.at(source.head)
    found = source.capture(lease=True)
    with pytest.raises(Exception, match="referenced"):
        source.expire(start)
    assert source.rows(found.tables[0].deletes_relation) == truth
    source.commit(found)
    source.expire(start)
