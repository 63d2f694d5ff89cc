"""What a merge is asked to do, in SQL."""

from typing import Any

import pytest

from calve.errors import RequestInvalid
from calve.merging.bounds import Interval, KeyRange
from calve.merging.request import MergeRequest, request


def _asked(**changed: Any) -> MergeRequest:
    asked: dict[str, Any] = {
        "into": "lake.db.t",
        "keys": ["id"],
        "when_matched": "update",
        "when_not_matched": "insert",
        "delete_when": None,
        "has_deletes": False,
    }
    return request(**asked | changed)


def test_a_merge_in_full() -> None:
    """Deletes come first, names are quoted, and bounds follow the keys."""
    asked = _asked(keys=["id", "a`b"], when_matched={"n": "t.n + s.n"}, delete_when="s.n = 0", has_deletes=True)
    on = "t.`id` = s.`id` AND t.`a``b` = s.`a``b`"
    bounds = (KeyRange("id", "bigint", (Interval(1, 2),)),)
    assert asked.statement("v", ["id", "a`b", "n"], bounds, inserts=True).splitlines() == [
        f"MERGE INTO `lake`.`db`.`t` t USING v s ON {on} AND (t.`id` BETWEEN 1 AND 2)",
        "WHEN MATCHED AND s.`__calve_deleted` THEN DELETE",
        "WHEN MATCHED AND (s.n = 0) THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET t.`n` = t.n + s.n",
        "WHEN NOT MATCHED AND NOT s.`__calve_deleted` THEN INSERT (`id`, `a``b`, `n`) VALUES (s.`id`, s.`a``b`, s.`n`)",
    ]


@pytest.mark.parametrize(
    ("when_matched", "expected"),
    [
        ("update", ["WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`n` = s.`n`"]),
        ("delete", ["WHEN MATCHED THEN DELETE"]),
        ("ignore", []),
    ],
)
def test_what_matches_is_updated_deleted_or_ignored(when_matched: str, expected: list[str]) -> None:
    """Update sets every column of the target."""
    asked = _asked(when_matched=when_matched)
    assert asked.statement("v", ["id", "n"], (), inserts=False).splitlines()[1:] == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"keys": []}, "key columns"),
        ({"keys": "id"}, "key columns"),
        ({"keys": ["id", "ID"]}, "key columns"),
        ({"when_matched": "upsert"}, "when_matched is 'upsert'"),
        ({"when_not_matched": "update"}, "when_not_matched is 'update'"),
        ({"when_matched": "ignore", "when_not_matched": "ignore"}, "does nothing"),
        ({"when_matched": {}, "when_not_matched": "ignore"}, "does nothing"),
        ({"into": "db."}, "is not a name"),
        ({"into": "db.t.branch_x"}, "names a branch"),
    ],
)
def test_a_merge_that_makes_no_sense_is_refused(changed: dict[str, Any], expected: str) -> None:
    """Before Spark is asked for anything."""
    with pytest.raises(RequestInvalid, match=expected):
        _asked(**changed)


def test_expressions_may_accumulate() -> None:
    """They may give something else when they run twice; a plain update does not."""
    assert _asked(when_matched={"n": "t.n + s.n"}).accumulates
    assert not _asked().accumulates


def test_what_was_deleted_would_be_inserted_when_it_is_done_twice() -> None:
    """Unless nothing is inserted."""
    assert _asked(when_matched="delete").accumulates
    assert _asked(delete_when="s.n = 0").accumulates
    assert not _asked(when_matched="delete", when_not_matched="ignore").accumulates


def test_what_is_replaced_is_deleted_by_its_keys() -> None:
    """The keys are sent to where the target is, whose files are pruned by bounds."""
    bounds = (KeyRange("id", "bigint", (Interval(1, 2),)),)
    assert _asked().removal("v", bounds) == (
        "DELETE FROM `lake`.`db`.`t` __calve_target WHERE (__calve_target.`id` BETWEEN 1 AND 2) AND EXISTS (SELECT "
        "/*+ BROADCAST(__calve_source) */ 1 FROM v __calve_source WHERE __calve_target.`id` = __calve_source.`id`)"
    )


def test_rows_that_match_are_read_as_they_will_be() -> None:
    """With the keys that they had, which expressions may change, and whether they go."""
    asked = _asked(when_matched={"N": "t.n + s.n"}, delete_when="t.n = 0")
    assert asked.rewritten("v", ("id", "n"), (), None) == (
        "SELECT /*+ BROADCAST(s) */ t.`id` AS `id`, t.n + s.n AS `n`, s.`id` AS `__calve_had_0`, "
        "coalesce(t.n = 0, false) AS `__calve_deleted` FROM `lake`.`db`.`t` t JOIN v s ON t.`id` = s.`id`"
    )


def test_rows_are_looked_up_by_one_key_and_compared_by_the_others() -> None:
    """Spark takes for a key what stands with an equals sign."""
    assert _asked(keys=["id", "day"]).on(hashed="id") == "t.`id` = s.`id` AND t.`day` BETWEEN s.`day` AND s.`day`"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"when_matched": "ignore"}, False),
        ({"when_matched": {"n": "s.n"}}, False),
        ({"when_not_matched": "ignore"}, False),
        ({"delete_when": "s.n = 0"}, False),
        ({"has_deletes": True}, False),
    ],
)
def test_only_an_update_of_all_columns_replaces_rows(changed: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    """Everything else looks at the row that is there, or may leave none."""
    assert _asked(**changed).replaces is expected
