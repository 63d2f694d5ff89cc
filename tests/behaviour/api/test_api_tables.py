"""Tables through REST, on a real server and real tables: what their metadata says, and who may know it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionSpec
from sqlalchemy import event
from starlette.middleware import Middleware
from tests.engines import Playground
from tests.servers import Site, site_on
from tests.table_lake import NOW, TODAY, TableLake, append, day, keep_chain, rows, services, table_lake_on

from calve.access import Principal, PrincipalKind, Role
from calve.api.app import FixedPrincipal
from calve.app import tables_on
from calve.capture import Operation
from calve.lake import SqlCatalog


@pytest.fixture
def table_lake(playground: Playground, tmp_path: Path) -> Iterator[TableLake]:
    """Give a lake."""
    with table_lake_on(playground, tmp_path) as table_lake:
        yield table_lake


@pytest.fixture
def site(playground: Playground, table_lake: TableLake) -> Iterator[Site]:
    """Give a server with that lake."""
    with site_on(playground, services(playground, table_lake)) as site:
        yield site


def letters(changes: dict[str, Any]) -> dict[str, str]:
    """Return the cells of each partition."""
    return {row["partition"]: row["cells"] for row in changes["partitions"]}


def test_tables_in_use_are_listed_and_all_on_request(site: Site, table_lake: TableLake) -> None:
    """Those with consumers by default; with ``all`` every table of the catalogs but what captures made."""
    for name in ("db.events", "db.other", "sales.orders"):
        append(table_lake.create(name), 0)
    table_lake.commit("demo.daily/take")
    (used,) = site.get("/tables")["elements"]
    assert used == {
        "table": "db.events",
        "consumers": ["demo.daily/take"],
        "read_by": ["demo.daily"],
        "written_by": [],
        "watched_by": [],
    }
    everything = site.get("/tables?all=true&limit=2")
    assert [one["table"] for one in everything["elements"]] == ["db.events", "db.other"]
    cursor = everything["page_info"]["end_cursor"]
    assert [one["table"] for one in site.get(f"/tables?all=true&cursor={cursor}")["elements"]] == ["sales.orders"]
    assert [one["table"] for one in site.get("/tables?all=true&namespace=sales")["elements"]] == ["sales.orders"]
    assert [one["table"] for one in site.get("/tables?all=true&search=OTHER")["elements"]] == ["db.other"]


def test_a_table_tells_what_is_in_it_and_how_long_its_history_is_kept(site: Site, table_lake: TableLake) -> None:
    """From metadata alone, with its consumers and how far they are behind."""
    table = table_lake.create("db.events", properties={"history.expire.max-snapshot-age-ms": "3600000"})
    append(table, 0, 1)
    table_lake.commit("demo.daily")
    append(table, 0)
    found = site.get("/tables/db.events")
    assert (found["rows"], found["files"], found["commits"], found["format_version"]) == (3, 3, 2, 2)
    assert found["partition_spec"] == [{"name": "day", "transform": "identity", "column": "day"}]
    assert [(one["name"], one["type"]) for one in found["columns"]] == [
        ("id", "long"),
        ("at", "timestamptz"),
        ("day", "date"),
    ]
    assert found["expiry"] == {"max_snapshot_age_ms": 3_600_000, "min_snapshots_to_keep": 1, "is_default": False}
    (lag,) = found["lag"]
    assert (lag["consumer"], lag["pending_commits"], lag["pending_records"]) == ("demo.daily", 1, 1)
    assert 0 < lag["expires_in_seconds"] <= 3_600
    assert found["current_snapshot"]["refs"] == ["main"]
    site.get("/tables/db.nothing", 404)


def test_snapshots_are_listed_newest_first(site: Site, table_lake: TableLake) -> None:
    """With what each did, which step wrote it, and the branches and tags at it."""
    table = table_lake.create("db.events")
    append(table, 0)
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "v1").commit()
    table.append(rows(table, NOW), snapshot_properties={"calve.attempt": "demo.daily/1/merge"})
    page = site.get("/tables/db.events/snapshots?limit=1")
    (newest,) = page["elements"]
    assert (newest["operation"], newest["added_rows"], newest["refs"]) == ("append", 1, ["main"])
    assert newest["written_by"] == {"attempt": "demo.daily/1/merge"}
    (oldest,) = site.get(f"/tables/db.events/snapshots?cursor={page['page_info']['end_cursor']}")["elements"]
    assert (oldest["snapshot_id"], oldest["refs"], oldest["parent_id"]) == (first.snapshot_id, ["v1"], None)


def test_changes_show_what_is_committed_open_pending_and_late(site: Site, table_lake: TableLake) -> None:
    """A column for each commit, a row for each partition; late is a partition older than the day of its commit."""
    table = table_lake.create("db.events")
    append(table, 0, 1)
    table_lake.commit("demo.daily")
    append(table, 0, 3)
    table_lake.captures.capture(["db.events"], "demo.daily")
    append(table, 0, 2)
    found = site.get("/tables/db.events/changes?consumer=demo.daily")
    assert letters(found) == {day(0): "cop", day(1): "L..", day(2): "..l", day(3): ".o."}
    assert (found["checkpoint_column"], found["unread"], found["is_by_day"]) == (0, 0, False)
    assert [row["rows"] for row in found["partitions"]] == [3, 1, 1, 1]
    everything = site.get("/tables/db.events/changes")
    assert letters(everything) == {day(0): "ccc", day(1): "L..", day(2): "..L", day(3): ".L."}
    assert everything["checkpoint_column"] is None
    newest = site.get("/tables/db.events/changes?commits=1&partitions=1")
    assert letters(newest) == {day(0): "c"}
    assert (newest["partition_count"], newest["commit_count"]) == (2, 3)
    new = letters(site.get("/tables/db.events/changes?consumer=demo.new"))
    assert new[day(0)] == "ppp"


def test_changes_show_what_a_consumer_does_not_take(site: Site, table_lake: TableLake) -> None:
    """A delete is refused where only appends are taken, and pending where the consumer takes deletes."""
    table = table_lake.create("db.events")
    append(table, 0, 1)
    table_lake.commit("demo.appends")
    table_lake.commit("demo.all", operations=frozenset(Operation))
    table.delete(f"day < '{TODAY.date()}'")
    assert letters(site.get("/tables/db.events/changes?consumer=demo.appends")) == {day(0): "c.", day(1): "Lx"}
    assert letters(site.get("/tables/db.events/changes?consumer=demo.all")) == {day(0): "c.", day(1): "Ll"}


def test_changes_of_a_table_without_partitions_have_one_row(site: Site, table_lake: TableLake) -> None:
    """Whatever the days of its rows."""
    table = table_lake.create("db.events", PartitionSpec())
    append(table, 0, 1)
    append(table, 5)
    found = site.get("/tables/db.events/changes")
    assert (letters(found), found["is_partitioned"]) == ({"all": "cc"}, False)


def test_lateness_says_what_a_lookback_misses(site: Site, table_lake: TableLake) -> None:
    """By the days of partitions, weighted by rows, or by the bounds of a column."""
    table = table_lake.create("db.events")
    append(table, *[0] * 90, *[1] * 6, *[5] * 4)
    by_day = site.get("/tables/db.events/lateness")
    assert (by_day["rows"], by_day["late_rows"], by_day["misses_none_days"], by_day["unread"]) == (100, 10, 5, 0)
    missed = {one["days"]: one["missed_rows"] for one in by_day["lookbacks"]}
    assert (missed[0], missed[1], missed[3], missed[5]) == (10, 4, 4, 0)
    again = {one["days"]: one["times_re_read"] for one in by_day["lookbacks"]}
    assert (again[0], again[1], again[5]) == (0, 0.9, 4.74)
    assert by_day["curve"][-1]["share_at_least"] == 1
    assert len(by_day["curve"]) <= 200
    by_bounds = site.get("/tables/db.events/lateness?column=at&window=7")
    assert (by_bounds["rows"], by_bounds["late_rows"]) == (100, 10)
    site.get("/tables/db.events/lateness?column=id", 400)


def test_lateness_needs_a_time(site: Site, table_lake: TableLake) -> None:
    """Where partitions tell none, a column has to be named."""
    append(table_lake.create("db.events", PartitionSpec()), 0, 2)
    assert "?column=" in site.get("/tables/db.events/lateness", 400)["remedy"]
    assert site.get("/tables/db.events/lateness?column=at")["rows"] == 2


READS = ("", "/snapshots", "/changes", "/lateness")


def test_tables_that_are_not_granted_do_not_exist(playground: Playground, tmp_path: Path) -> None:
    """The answer is that of a missing table; consumers of other namespaces are not shown."""
    (tmp_path / "calve.toml").write_text(
        '[access.tables]\npolicy = "closed"\n[access.tables.read]\n"demo" = ["db.events"]\n"other.eu" = ["db.*"]\n'
    )
    with table_lake_on(playground, tmp_path) as table_lake:
        for name in ("db.events", "db.secret"):
            append(table_lake.create(name), 0)
            table_lake.commit("demo.daily", name)
            table_lake.commit("other.eu.daily", name)
        seen = {}
        for name, namespace in (("ann", "demo"), ("bob", "other")):
            who = Principal(name, PrincipalKind.USER, {namespace: Role.VIEWER})
            given = services(playground, table_lake)
            with site_on(playground, given, middleware=[Middleware(FixedPrincipal, principal=who)]) as site:
                for path in READS:
                    site.get(f"/tables/db.events{path}")
                    missing, hidden = (f"/tables/{table}{path}" for table in ("db.nothing", "db.secret"))
                    if name == "ann":
                        assert _renamed(site.get(hidden, 404)) == _renamed(site.get(missing, 404))
                listed = site.get("/tables?all=true")["elements"]
                seen[name] = {one["table"]: one["consumers"] for one in listed}
                assert seen[name] == {one["table"]: one["consumers"] for one in site.get("/tables")["elements"]}
                assert [one["consumer"] for one in site.get("/tables/db.events")["lag"]] == seen[name]["db.events"]
                other = "other.eu.daily" if name == "ann" else "demo.daily"
                site.get(f"/tables/db.events/changes?consumer={other}", 403)
    assert seen["ann"] == {"db.events": ["demo.daily"]}
    assert seen["bob"] == {"db.events": ["other.eu.daily"], "db.secret": ["other.eu.daily"]}


def _renamed(problem: dict[str, Any]) -> dict[str, Any]:
    """Return the answer as if it had been asked of the table that does not exist."""
    return {key: str(value).replace("db.secret", "db.nothing") for key, value in problem.items()}


@pytest.mark.each_store
def test_lag_is_kept_over_time(site: Site, table_lake: TableLake, playground: Playground) -> None:
    """Each consumer once in five minutes, however many take samples; with what it was behind, and until when."""
    table = table_lake.create("db.events", properties={"history.expire.max-snapshot-age-ms": "3600000"})
    append(table, 0)
    table_lake.commit("demo.daily")
    table_lake.commit("other.daily")
    append(table, 0, 1)
    tables = tables_on(table_lake.lake, playground.store)
    assert [tables.take_samples(), tables.take_samples()] == [2, 2]
    found = site.get("/tables/db.events/lag-history?consumer=demo.daily")
    (one,) = found["consumers"]
    (sample,) = one["samples"]
    assert (sample["commits"], sample["files"], sample["rows"]) == (1, 2, 2)
    assert sample["checkpoint_at"] < sample["current_at"] < sample["expires_at"]
    assert 0 < one["unrecoverable_in"] <= 3_600_000
    assert [each["consumer"] for each in site.get("/tables/db.events/lag-history")["consumers"]] == [
        "demo.daily",
        "other.daily",
    ]


def test_consumers_of_a_table_cost_one_load_of_it(table_lake: TableLake, playground: Playground) -> None:
    """Samples and lags of many consumers ask the catalog for a table once, and each is what it is alone."""
    append(table_lake.create("db.events"), 0)
    append(table_lake.create("db.other"), 0)
    for name in "abcd":
        table_lake.commit(f"demo.{name}")
    table_lake.commit("demo.a", "db.other")
    catalog = table_lake.lake.catalog("lake")
    assert isinstance(catalog, SqlCatalog)
    append(catalog.pyiceberg().load_table("db.events"), 0, 1)
    tables, captures = tables_on(table_lake.lake, playground.store), table_lake.captures
    alone = [one for name in "abcd" for one in captures.lag(f"demo.{name}")]
    statements: list[str] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = captures.lag()
    assert [replace(one, age_seconds=0, expires_in_seconds=0) for one in found] == [
        replace(one, age_seconds=0, expires_in_seconds=0) for one in alone
    ]
    assert [(one.table, one.pending_commits) for one in found] == [
        ("db.events", 1),
        ("db.other", 0),
        *[("db.events", 1)] * 3,
    ]
    assert len(statements) == 1
    statements.clear()
    assert tables.take_samples() == 5
    assert len(statements) == 2


@pytest.mark.each_store
def test_consumers_that_are_behind_are_listed_by_the_end_of_their_history(
    site: Site, table_lake: TableLake, playground: Playground
) -> None:
    """Who is not behind is not there; history that ends before two more commits is critical."""
    for name, age in (("db.slow", "864000000"), ("db.quick", "1")):
        table = table_lake.create(name, properties={"history.expire.max-snapshot-age-ms": age})
        append(table, 0)
        table_lake.commit("demo.daily", name)
        append(table, 0)
    table_lake.commit("demo.done", "db.slow")
    tables_on(table_lake.lake, playground.store).take_samples()
    found = site.get("/lag/behind")["elements"]
    assert [(one["table"], one["consumer"], one["is_critical"]) for one in found] == [
        ("db.quick", "demo.daily", True),
        ("db.slow", "demo.daily", False),
    ]
    assert found[0]["expires_in"] < found[1]["expires_in"]


def test_the_lag_of_others_is_not_shown(playground: Playground, table_lake: TableLake) -> None:
    """Neither now nor over time."""
    table = table_lake.create("db.events")
    append(table, 0)
    table_lake.commit("demo.daily")
    append(table, 0)
    tables_on(table_lake.lake, playground.store).take_samples()
    ann = Principal("ann", PrincipalKind.USER, {"other": Role.VIEWER})
    given = services(playground, table_lake)
    with site_on(playground, given, middleware=[Middleware(FixedPrincipal, principal=ann)]) as site:
        assert site.get("/lag/behind")["elements"] == []
        assert site.get("/tables/db.events/lag-history")["consumers"] == []
        site.get("/tables/db.events/lag-history?consumer=demo.daily", 403)


@pytest.mark.each_store
def test_lineage_is_followed_both_ways(site: Site, table_lake: TableLake, playground: Playground) -> None:
    """As far as asked for, with when each table changed and how far its readers are behind."""
    keep_chain(playground, table_lake)
    table_lake.commit("demo.daily/step", "db.raw")
    append(table_lake.lake.catalog("lake").pyiceberg().load_table("db.raw"), 0, 1)
    tables_on(table_lake.lake, playground.store).take_samples()
    near = site.get("/lineage?table=db.events&depth=1")
    assert [(one["from"], one["to"]) for one in sorted(near["edges"], key=lambda one: one["at"])] == [
        ("workflow:demo.daily", "table:db.events"),
        ("table:db.events", "workflow:other.agg"),
    ]
    whole = site.get("/lineage?table=db.raw&depth=5")
    assert [one["id"] for one in whole["nodes"]] == [
        "table:db.events",
        "table:db.raw",
        "table:db.sums",
        "workflow:demo.daily",
        "workflow:demo.load",
        "workflow:other.agg",
    ]
    changed = {one["name"]: one["changed_at"] for one in whole["nodes"] if one["kind"] == "table"}
    assert changed["db.sums"] == 1_004
    assert changed["db.raw"] > 1_004
    (read,) = [one for one in whole["edges"] if one["workflow_id"] == "demo.daily" and one["direction"] == "read"]
    assert (read["pending_commits"], read["pending_rows"], read["rows"]) == (1, 2, 5)
    assert len(site.get("/lineage")["edges"]) == 5
    assert {one["workflow_id"] for one in site.get("/lineage?workflow=other.agg&depth=1")["edges"]} == {"other.agg"}
    site.get("/lineage?table=db.nothing", 404)
    found = site.get("/tables/db.events")
    assert (found["written_by"], found["read_by"]) == (["demo.daily/step"], ["other.agg"])
    of_workflow = site.get("/tables?workflow_id=demo.daily")["elements"]
    assert [(one["table"], one["written_by"], "demo.daily" in one["read_by"]) for one in of_workflow] == [
        ("db.events", ["demo.daily/step"], False),
        ("db.raw", [], True),
    ]


def test_lineage_ends_where_the_rights_end(playground: Playground, table_lake: TableLake) -> None:
    """Workflows of other namespaces are neither shown nor passed through."""
    keep_chain(playground, table_lake)
    ann = Principal("ann", PrincipalKind.USER, {"other": Role.VIEWER})
    given = services(playground, table_lake)
    with site_on(playground, given, middleware=[Middleware(FixedPrincipal, principal=ann)]) as site:
        for path in ("/lineage", "/lineage?table=db.events", "/lineage?workflow=other.agg"):
            found = site.get(path)
            assert {one["workflow_id"] for one in found["edges"]} == {"other.agg"}
            assert "table:db.raw" not in {one["id"] for one in found["nodes"]}
        assert site.get("/lineage?workflow=demo.daily")["edges"] == []
        assert site.get("/tables?workflow_id=demo.daily")["elements"] == []
        assert site.get("/tables/db.events")["written_by"] == []
