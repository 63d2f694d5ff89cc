"""Which namespace may use which tables."""

import pytest

from calve.errors import TableMissing
from calve.lake import Right, TableName, TableRights

GRANTS = {
    Right.READ: {"*": ["shared.*"], "finance": ["sales.orders"]},
    Right.CAPTURE: {"sales": ["sales.*", "other.eu.*"], "deep": ["deep.**"]},
    Right.WRITE: {"sales": ["sales.out_*"], "all": ["**"]},
}
RIGHTS = TableRights(is_closed=True, patterns=GRANTS, catalogs=("lake", "other", "sales"))


def table(text: str) -> TableName:
    """Return a table of the default catalog, or of the one that the name begins with."""
    return TableName.parse(text, RIGHTS.catalogs, "default")


@pytest.mark.parametrize(
    ("namespace", "right", "name"),
    [
        ("sales", Right.CAPTURE, "sales.orders"),
        ("sales", Right.CAPTURE, "lake.sales.orders"),
        ("sales.eu", Right.CAPTURE, "sales.orders"),
        ("sales", Right.CAPTURE, "other.eu.orders"),
        ("sales", Right.READ, "sales.orders"),
        ("sales", Right.WRITE, "sales.out_1"),
        ("hr", Right.READ, "shared.days"),
        ("finance", Right.READ, "sales.orders"),
        ("deep", Right.CAPTURE, "deep.a.b.c"),
        ("all", Right.WRITE, "other.any.thing"),
        ("", Right.WRITE, "finance.ledger"),
    ],
)
def test_a_namespace_may_use_what_it_was_granted(namespace: str, right: Right, name: str) -> None:
    """Those below it too; to capture a table is to read it; what has no namespace may use all."""
    assert RIGHTS.allow(namespace, right, table(name))
    RIGHTS.require(namespace, right, table(name))


@pytest.mark.parametrize(
    ("namespace", "right", "name"),
    [
        ("finance", Right.CAPTURE, "sales.orders"),
        ("finance", Right.READ, "sales.orders2"),
        ("salesman", Right.CAPTURE, "sales.orders"),
        ("sale", Right.CAPTURE, "sales.orders"),
        ("sales", Right.CAPTURE, "sales_eu.orders"),
        ("sales", Right.CAPTURE, "other.sales.orders"),
        ("sales", Right.CAPTURE, "sales.eu.orders"),  # the table eu.orders of the catalog sales
        ("sales", Right.CAPTURE, "Sales.orders"),
        ("sales", Right.WRITE, "sales.orders"),
        ("all", Right.READ, "finance.ledger"),
        ("hr", Right.CAPTURE, "shared.days"),
        ("*", Right.CAPTURE, "sales.orders"),
    ],
)
def test_a_namespace_may_use_nothing_else(namespace: str, right: Right, name: str) -> None:
    """Names are compared whole; a star stops at a dot."""
    assert not RIGHTS.allow(namespace, right, table(name))
    with pytest.raises(TableMissing, match="does not exist, or"):
        RIGHTS.require(namespace, right, table(name))


def test_a_name_that_reads_as_one_of_another_catalog_is_not_granted_by_it() -> None:
    """A pattern for tables of the catalog ``sales`` grants no table of a namespace ``sales`` in the default one."""
    rights = TableRights(is_closed=True, patterns={Right.CAPTURE: {"a": ["sales.eu.*"]}}, catalogs=RIGHTS.catalogs)
    assert rights.allow("a", Right.CAPTURE, TableName("sales", ("eu",), "orders"))
    assert not rights.allow("a", Right.CAPTURE, TableName("lake", ("sales", "eu"), "orders"))


def test_open_tables_are_for_all() -> None:
    """Whatever is granted."""
    assert TableRights(patterns=GRANTS).allow("finance", Right.WRITE, table("sales.orders"))
