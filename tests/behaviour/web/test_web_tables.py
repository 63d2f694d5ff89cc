"""The pages about tables, on a real lake: what they show, in which forms, and to whom."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.pages import answer_of
from tests.table_lake import (
    TableLake,
    append,
    browser,
    day,
    page_of,
    rest,
    table_lake_on,
    twin,
    viewer,
    write_history,
)

from calve.access import Principal, PrincipalKind, Role
from calve.app import tables_on
from calve.capture.inspection import MetadataCache, TableHistory
from calve.lake import Lake, TableName
from calve.lineage import Direction, Edge
from calve.web.pages.tables import forecast, rest_of_sentence

EVENTS = "/tables/db.events"
TABS = {
    "": "",
    "/consumers": "",
    "/about": "",
    "/lag": "/lag-history",
    "/lateness": "/lateness",
    "/snapshots": "/snapshots",
}
"""The tabs of a table, and which document of REST each one shows."""
EVIL = "<img src=x onerror=alert(1)>\"'\t\n&{row}"


@pytest.fixture
def table_lake(playground: Playground, tmp_path: Path) -> Iterator[TableLake]:
    """Give a lake."""
    with table_lake_on(playground, tmp_path) as table_lake:
        yield table_lake


@pytest.fixture
def client(playground: Playground, table_lake: TableLake) -> Iterator[TestClient]:
    """Give a browser at the machine of the server."""
    with browser(playground, table_lake) as client:
        yield client


def test_tables_are_listed_with_what_their_consumers_have_not_processed(
    client: TestClient, table_lake: TableLake
) -> None:
    """Those in use, or all; the consumer that is in most need is named."""
    write_history(table_lake)
    append(table_lake.create("db.other"), 0)
    used = page_of(client, "/tables")
    assert [one.text for one in used.all("b")] == ["db.events"]
    (row,) = used.all("tr")[1:]
    assert all(text in row.text for text in ("2 commits", "demo.daily/take", "in 4 d 2"))
    assert _timeless(twin(client, "/tables")) == _timeless(rest(client, "/tables?include=numbers"))
    everything = page_of(client, "/tables?all=true")
    assert [one.text for one in everything.all("b")] == ["db.events", "db.other"]
    assert "no consumer" in everything.all("tr")[2].text
    assert [one.text for one in page_of(client, "/tables?all=true&search=OTHER").all("b")] == ["db.other"]
    assert "No table has" in page_of(client, "/tables?search=%3Cb%3E").one("main").text


@pytest.mark.parametrize("name", ["sla/sh", "with space", "ünï", "q?#&+;\"'"])
def test_a_table_of_any_name_has_its_pages(client: TestClient, table_lake: TableLake, name: str) -> None:
    """The link in the list leads to it, and it to its tabs."""
    append(table_lake.create(f"db.{name}"), 0)
    (row,) = (link for link in page_of(client, "/tables?all=true").links if link.startswith("/tables/db"))
    for address in (row, *(link for link in page_of(client, row).links if link.startswith(f"{row}/"))):
        assert page_of(client, address).one("h1").text == f"db.{name}"


def test_lists_without_tables_teach_the_next_command(client: TestClient) -> None:
    """In use, or in the catalogs."""
    for path in ("/tables", "/tables?all=true"):
        assert "calve capture db.events --consumer demo.daily" in page_of(client, path).one("main").text


@pytest.mark.parametrize(("tab", "path"), TABS.items())
def test_each_tab_of_a_table_is_a_page_and_a_document(
    client: TestClient, table_lake: TableLake, tab: str, path: str
) -> None:
    """Its links lead somewhere, and its JSON is that of REST."""
    write_history(table_lake)
    page = page_of(client, EVENTS + tab)
    assert page.one("h1").text == "db.events"
    assert len(page.all("a", href=EVENTS + tab, **{"aria-current": "page"})) == 1
    for link in page.links:
        if link.startswith(("/tables", "/actions/set_checkpoint")):
            assert client.get(link).status_code == 200, link
    assert _timeless(twin(client, EVENTS + tab)) == _timeless(rest(client, EVENTS + path))


def _timeless(document: Any) -> Any:
    """Return a document without what depends on when it is asked for."""
    if isinstance(document, dict):
        return {key: _timeless(one) for key, one in document.items() if not key.endswith(("_seconds", "_in"))}
    return [_timeless(one) for one in document] if isinstance(document, list) else document


def test_the_map_shows_what_a_consumer_has_processed(client: TestClient, table_lake: TableLake) -> None:
    """A letter for each commit and partition, the checkpoint, and where a cell leads; without scripts, a table."""
    write_history(table_lake)
    page = page_of(client, f"{EVENTS}?consumer=demo.daily/take")
    grid = page.one("grid-map")
    names = [day(ago).removeprefix("day=") for ago in range(4)]
    lines = [line.split("\t") for line in page.one("pre").text.splitlines()]
    assert [line[:2] for line in lines] == [
        [name, cells] for name, cells in zip(names, ("cpp", "L..", ".l.", "L.."), strict=True)
    ]
    assert [line[2].partition(" · ")[0] for line in lines] == ["3 rows", "1 row", "1 row", "1 row"]
    assert grid.attributes["data-checkpoint"] == "1"
    legend = json.loads(grid.attributes["data-legend"])
    assert {letter: legend[letter]["tone"] for letter in "cLpl"} == {"c": "done", "L": "late", "p": "run", "l": "late"}
    columns = json.loads(grid.attributes["data-columns"])
    place = grid.attributes["data-href"].replace("{column}", columns[-1][0])
    assert page_of(client, place).all("h2")[0].text.strip().startswith(f"Snapshot {columns[-1][0]}")
    assert len(page.all("code")) == 3  # the newest commits, for those without scripts
    assert page.one("option", selected="").text == "demo.daily/take"


def test_the_consumer_in_most_need_is_shown_first(client: TestClient, table_lake: TableLake) -> None:
    """Who is behind comes before who is not."""
    write_history(table_lake)
    assert page_of(client, EVENTS).one("option", selected="").text == "demo.daily/take"


def test_the_letters_of_many_commits_are_loaded_by_the_page(
    client: TestClient, table_lake: TableLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page itself stays small; it names where the letters are."""
    write_history(table_lake)
    monkeypatch.setattr("calve.web.pages.tables._FEW_COMMITS", 2)
    page = page_of(client, f"{EVENTS}?consumer=demo.daily/take")
    source = page.one("grid-map").attributes["src"]
    assert source == f"{EVENTS}/changes?consumer=demo.daily%2Ftake"
    found = client.get(source).json()
    assert (found["checkpoint"], found["unread"], found["shown"], found["links"]) == (1, 0, "", [])
    assert [cells for _, cells, _ in found["rows"]] == ["cpp", "L..", ".l.", "L.."]
    assert page.all("pre") == []
    assert "not read yet" in page.one("main").text


def test_a_map_says_what_it_omits_and_leads_there(
    client: TestClient, table_lake: TableLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By links whose addresses say which part they show; each commit and partition is in one of them."""
    write_history(table_lake)
    for name in ("tables._FEW_COMMITS", "tables.COMMITS", "table_map.COMMITS"):
        monkeypatch.setattr(f"calve.web.pages.{name}", 2)
    for name in ("tables.PARTITIONS", "table_map.PARTITIONS"):
        monkeypatch.setattr(f"calve.web.pages.{name}", 1)
    parts = _walk(client, EVENTS)
    assert parts[EVENTS]["shown"] == (
        "commits 1 to 2 of 3, counted from the newest; partitions 1 to 1 of 2, counted from the newest"
    )
    assert [text for text, _ in parts[EVENTS]["links"]] == ["older commits", "older partitions"]
    shown = {(row[0], column[0]) for part in parts.values() for row in part["rows"] for column in part["columns"]}
    every = rest(client, f"{EVENTS}/changes")
    columns = [one["snapshot_id"] for one in every["columns"]]
    touched = {
        (row["partition"].removeprefix("day="), str(columns[place]))
        for row in every["partitions"]
        for place, letter in enumerate(row["cells"])
        if letter != "."
    }
    assert touched <= shown
    assert "none of the 3 commits" in client.get(f"{EVENTS}/changes?skip_commits=9").json()["shown"]


def _walk(client: TestClient, place: str) -> dict[str, Any]:
    """Return the parts of a map that its links lead to, by the address of the page."""
    parts: dict[str, Any] = {}
    todo = [place]
    while todo:
        place = todo.pop()
        if place not in parts:
            parts[place] = client.get(page_of(client, place).one("grid-map").attributes["src"]).json()
            todo += [href for _, href in parts[place]["links"]]
    return parts


def test_a_large_map_is_small_on_its_way(client: TestClient, table_lake: TableLake) -> None:
    """It is compressed for those who take that."""
    write_history(table_lake)
    answer = client.get(f"{EVENTS}/changes")
    assert answer.headers["content-encoding"] == "gzip"
    plain = client.get(f"{EVENTS}/changes", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == answer.json()


def test_a_page_does_not_wait_for_the_commits_of_its_map(
    client: TestClient, table_lake: TableLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read at once is loaded by the page; then it is known."""
    write_history(table_lake)
    monkeypatch.setattr("calve.web.pages.tables._FIRST", -1.0)
    source = page_of(client, EVENTS).one("grid-map").attributes["src"]
    assert client.get(source).json()["unread"] == 0
    assert page_of(client, EVENTS).all("pre") != []


def test_pages_over_all_workflows_do_not_ask_the_catalog_again(
    client: TestClient, table_lake: TableLake, playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often a table has commits is found out once, until a sample has seen another commit."""
    write_history(table_lake)
    tables_on(table_lake.lake, playground.store).take_samples()
    asked: list[TableName] = []
    load = MetadataCache.load

    def counted(self: MetadataCache, lake: Lake, name: TableName) -> TableHistory:
        asked.append(name)
        return load(self, lake, name)

    monkeypatch.setattr(MetadataCache, "load", counted)
    for path in ("/", "/workflows", "/"):
        assert client.get(path).status_code == 200
    assert len(asked) == 1


def test_a_snapshot_names_the_captures_that_hold_it(client: TestClient, table_lake: TableLake) -> None:
    """With whether it is in them, and why; one that is gone is said to be gone."""
    write_history(table_lake)
    oldest = rest(client, f"{EVENTS}/snapshots")["elements"][-1]["snapshot_id"]
    page = page_of(client, f"{EVENTS}/snapshots?snapshot={oldest}&consumer=demo.daily/take")
    (held,) = [one for one in page.links if one.startswith("/captures/")]
    capture = rest(client, held)
    assert capture["consumer"] == "demo.daily/take"
    assert "in it" in page.one("main").text
    assert "does not keep snapshot 7" in page_of(client, f"{EVENTS}/snapshots?snapshot=7").one("main").text


def test_lateness_is_a_sentence_first(client: TestClient, table_lake: TableLake) -> None:
    """What a lookback misses, what it would take to miss none, and what that costs."""
    append(table_lake.create("db.events"), *[0] * 90, *[1] * 6, *[5] * 4)
    sentence = page_of(client, f"{EVENTS}/lateness").all("p")[0].text
    assert sentence.startswith("A 3-day lookback misses 4 % of the rows (4 in 30 days); 5 days miss none and re-read")
    assert "misses none of the rows" in page_of(client, f"{EVENTS}/lateness?lookback=5").all("p")[0].text
    assert "A 3-day lookback misses 4 %" in page_of(client, EVENTS).one("main").text
    (again,) = [one for one in rest(client, f"{EVENTS}/lateness?lookback=4")["lookbacks"] if one["days"] == 5]
    page = page_of(client, f"{EVENTS}/lateness?lookback=20")
    assert page.one("input", name="lookback").attributes["value"] == "20"
    factor = rest(client, f"{EVENTS}/lateness?lookback=20")["lookback"]["times_re_read"]
    assert factor == round(again["times_re_read"] + 15, 2)
    assert f"misses none of the rows and reads the data {factor:g} times more" in page.all("p")[0].text
    assert "20 days: none missed" in page.one("svg", class_="chart").text


def test_a_lookback_may_miss_between_so_many_and_so_many(client: TestClient, table_lake: TableLake) -> None:
    """A file tells the time of its rows only as a period, which may begin before the lookback does, and end in it."""
    table = table_lake.create("db.events", PartitionSpec())
    append(table, 0, 0, 0)
    append(table, 2, 6)
    for lookback, share in ((1, "40 % of the rows (2 in"), (4, "up to 40 % of the rows (up to 2 in"), (6, "none of")):
        page = page_of(client, f"{EVENTS}/lateness?column=at&lookback={lookback}")
        assert f"A {lookback}-day lookback misses {share}" in page.all("p")[0].text
        assert "files tell the time of their rows as a period" in page.one("main").text


def test_lateness_falls_back_to_a_column_of_times(client: TestClient, table_lake: TableLake) -> None:
    """Where partitions tell no time, the first column that does is taken; without any, the tab says so."""
    append(table_lake.create("db.events", PartitionSpec()), 0, 2)
    answer = client.get(f"{EVENTS}/lateness")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{EVENTS}/lateness?column=at")
    assert "2-day" in page_of(client, f"{EVENTS}/lateness?column=at&lookback=2").one("main").text
    write_evil(table_lake)
    page = page_of(client, "/tables/db.evil/lateness")
    assert "nor is there a column of dates or timestamps" in page.one("main").text
    assert not [one for one in page.all("select") if one.attributes["name"] == "column"]
    assert client.get("/api/v3/tables/db.evil/lateness").status_code == 400
    assert client.get("/tables/db.evil/lateness?column=id").status_code == 400


@pytest.mark.parametrize(
    ("times", "missed", "sentence"),
    [
        (13.6, 4, "(4 in 30 days); 5 days miss none and re-read 13.6 times the data."),
        (0.67, 4, "(4 in 30 days); 5 days miss none."),
        (13.6, 0, "and reads the data 13.6 times more."),
        (0.67, 0, ""),
    ],
)
def test_a_lookback_that_reads_less_than_the_data_is_not_said_to_re_read_it(
    times: float, missed: int, sentence: str
) -> None:
    """As over a table that is younger than the lookback: "0.67 times the data" reads as if it saved something."""
    lookback = {"days": 5, "missed_rows": missed, "missed_rows_at_most": missed, "times_re_read": times}
    assert rest_of_sentence(lookback, lookback, 30) == sentence


def test_lag_over_time_says_who_will_be_too_late(
    client: TestClient, table_lake: TableLake, playground: Playground
) -> None:
    """One sentence, a chart, and the numbers; before the first sample, how to get one."""
    write_history(table_lake)
    assert "calve up" in page_of(client, f"{EVENTS}/lag").one("main").text
    tables_on(table_lake.lake, playground.store).take_samples()
    page = page_of(client, f"{EVENTS}/lag?days=1")
    assert "demo.daily/take loses history in 4 d" in page.all("p")[0].text
    assert "Run it, or keep snapshots longer." in page.all("p")[0].text
    assert len(page.all("svg", class_="chart")) == 1
    assert [one.text for one in page.all("table", hidden="")[0:1]] != []
    heads = [one.text for one in page.all("th") if "scope" not in one.attributes]
    assert heads == ["time (UTC)", "may be removed up to", "newest snapshot", "demo.daily/take", "other.hourly"]
    (history,) = rest(client, f"{EVENTS}/lag-history?consumer=other.hourly")["consumers"]
    (sample,) = history["samples"]
    row = [one.text for one in page.all("tr")[1:2]]
    assert f"{sample['current_at'] / 1_000:.0f}" in row[0]


@pytest.mark.parametrize(
    ("left", "begins", "is_soon"),
    [(None, "", False), (0, "Some of the history", True), (9, "At the pace", True), (10, "At the pace", False)],
)
def test_a_loss_that_is_far_away_is_no_warning(left: int | None, begins: str, is_soon: bool) -> None:  # noqa: FBT001
    """It is one while snapshots of today are still kept."""
    consumers = [{"consumer": "demo.daily/take", "unrecoverable_in": left}]
    told = forecast({"consumers": consumers, "max_snapshot_age_ms": 10})
    assert told["forecast"].startswith(begins)
    assert told["is_soon"] == is_soon


def test_a_table_without_commits_has_pages(client: TestClient, table_lake: TableLake) -> None:
    """They say what is missing."""
    table_lake.create("db.events")
    assert "no commits yet" in page_of(client, EVENTS).one("main").text
    for tab in TABS:
        page_of(client, EVENTS + tab)


def test_of_many_writers_the_first_are_shown(client: TestClient, table_lake: TableLake, playground: Playground) -> None:
    """A thousand would take the browser longer than a person reads; the lineage has them all."""
    table_lake.create("db.events")
    name = table_lake.lake.parse("db.events")
    edges = [Edge(f"demo.w{number}", "s", Direction.WRITE, name, 1_000, 1, "uuid") for number in range(60)]
    playground.store.lineage.keep(edges)
    page = page_of(client, f"{EVENTS}/about")
    assert len([one for one in page.all("b") if one.text.startswith("demo.w")]) == 50
    assert "10 more in the lineage" in page.one("main").text


def write_evil(table_lake: TableLake) -> None:
    """Write a table whose partitions and consumers have names that would break out of a page."""
    import pyarrow as pa

    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, EVIL, StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "who"))
    table = table_lake.lake.catalog("lake").pyiceberg().create_table("db.evil", schema, partition_spec=spec)
    table.append(pa.table({"id": [1], EVIL: [EVIL]}, schema=table.schema().as_arrow()))


def test_names_of_partitions_and_columns_are_text(client: TestClient, table_lake: TableLake) -> None:
    """Whatever they hold: no tag, no attribute, and no line or column of the map more."""
    table_lake.create("db.events")
    write_evil(table_lake)
    consumer = EVIL.replace("\t", "").replace("\n", "")
    table_lake.commit(consumer, "db.evil")
    for tab in ("", "/consumers", "/snapshots", "/about", "/lag", f"?consumer={quote(consumer)}"):
        answer = client.get(f"/tables/db.evil{tab}")
        page = answer_of(answer)
        assert page.all("img") == [], tab
        assert "<img" not in answer.text
    lines = page.one("pre").text.splitlines()
    assert len(lines) == 1
    assert lines[0].split("\t")[:2] == [" ".join(EVIL.split()), "c"]
    assert [one.text for one in page_of(client, "/tables/db.evil/about").all("b")] == ["id", EVIL, consumer]


def test_nobody_is_shown_a_button_that_is_refused(playground: Playground, table_lake: TableLake) -> None:
    """Checkpoints are moved by those who may edit the workflow of the consumer, not by editors of others."""
    write_history(table_lake)
    seen = {}
    for role in (Role.VIEWER, Role.EDITOR):
        with browser(playground, table_lake, viewer("demo", role)) as client:
            page = page_of(client, f"{EVENTS}/consumers")
            assert "other.hourly" not in page.one("main").text
            seen[role] = [one for one in page.links if one.startswith("/actions/") and "theme" not in one]
            for link in seen[role]:
                assert client.get(link).status_code == 200
    assert seen[Role.VIEWER] == []
    assert len(seen[Role.EDITOR]) == 2
    both = Principal("ann", PrincipalKind.USER, {"demo": Role.VIEWER, "other": Role.EDITOR})
    with browser(playground, table_lake, both) as client:
        links = [one for one in page_of(client, f"{EVENTS}/consumers").links if one.startswith("/actions/")]
        assert links != []
        assert all("consumer=other.hourly" in one for one in links)


def test_a_table_that_is_not_granted_has_no_page(playground: Playground, tmp_path: Path) -> None:
    """Neither in the list nor by its address; nor is a consumer of others chosen."""
    (tmp_path / "calve.toml").write_text(
        '[access.tables]\npolicy = "closed"\n[access.tables.read]\n"demo" = ["db.events"]\n'
    )
    with table_lake_on(playground, tmp_path) as table_lake:
        write_history(table_lake)
        append(table_lake.create("db.secret"), 0)
        with browser(playground, table_lake, viewer("demo")) as client:
            assert [one.text for one in page_of(client, "/tables?all=true").all("b")] == ["db.events"]
            for tab in TABS:
                assert client.get(f"/tables/db.secret{tab}").status_code == 404
            assert client.get(f"{EVENTS}?consumer=other.hourly").status_code == 403
        with browser(playground, table_lake, viewer("other")) as client:
            assert client.get(EVENTS).status_code == 404


def test_a_checkpoint_is_moved_from_the_page(client: TestClient, table_lake: TableLake) -> None:
    """The form asks for the place and the reason, names consumer and table, and comes back to the page."""
    write_history(table_lake)
    links = page_of(client, f"{EVENTS}/consumers").links
    (link,) = [one for one in links if one.startswith("/actions/set_") and "demo.daily" in one]
    form = page_of(client, link)
    assert "demo.daily/take · db.events" in form.one("main").text
    fields = {one.attributes["name"]: one.attributes.get("value", "") for one in form.all("input", type="hidden")}
    answer = client.post("/actions/set_checkpoint", data={**fields, "to": "latest", "reason": "seen"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{EVENTS}/consumers")
    page = page_of(client, f"{EVENTS}/consumers")
    assert page.one("main").text.count("up to date") == 2
