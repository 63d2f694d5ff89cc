"""Names in SQL."""

import pytest

from calve.merging.identifiers import parts, selecting
from calve.texts import quoted


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db.t", ("db", "t")),
        ("lake.db.t", ("lake", "db", "t")),
        ("`my db`.`a.b`", ("my db", "a.b")),
        ("db.`a``b`", ("db", "a`b")),
    ],
)
def test_a_name_has_parts_quoted_or_not(name: str, expected: tuple[str, ...]) -> None:
    """A dot within backticks belongs to the part."""
    assert parts(name) == expected
    assert parts(quoted(*expected)) == expected


@pytest.mark.parametrize("name", ["", "db.", ".t", "`db", "a``b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="is not a name"):
        parts(name)


def test_a_name_is_quoted_so_that_it_cannot_end_early() -> None:
    """Backticks within are doubled."""
    assert quoted("db", "a`b; DROP") == "`db`.`a``b; DROP`"


@pytest.mark.parametrize("name", ["db.t", "`select`.`from`", " lake.db.t ", "values", "db.t VERSION AS OF 5"])
def test_what_may_stand_after_from_is_selected(name: str) -> None:
    """A table's name, also with a version."""
    assert selecting(name) == f"SELECT * FROM {name}"


@pytest.mark.parametrize(
    "query",
    ["SELECT 1", "with a as (select 1) select * from a", "(SELECT 1)", "-- why\n/* and\nhow */ SELECT 1", "VALUES (1)"],
)
def test_a_query_is_taken_as_it_is(query: str) -> None:
    """Also where comments stand before it."""
    assert selecting(query) == query
