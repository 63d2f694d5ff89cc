"""The pages about captures and lineage, on a real lake: what they show, in which forms, and to whom."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.table_lake import (
    NOW,
    TableLake,
    append,
    browser,
    keep_chain,
    page_of,
    rest,
    rows,
    table_lake_on,
    twin,
    viewer,
    write_history,
)

from calve.access import Role
from calve.app import tables_on
from calve.capture import CaptureLimits, Wanted
from calve.delivery import Delivery, StagedTarget, Staging
from calve.lake import TableName
from calve.lineage import Direction, Edge

EVIL = "<img src=x onerror=alert(1)>\"'&x"


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


def open_capture(table_lake: TableLake) -> str:
    """Take a capture of one file of two commits, and leave it open; return its id."""
    write_history(table_lake)
    wanted = Wanted(ranges=("at",), limits=CaptureLimits(max_files=1))
    report = table_lake.captures.capture(["db.events"], "demo.daily/take", wanted, key="demo.daily/7")
    return report.capture_id or ""


def test_captures_are_listed_newest_first(client: TestClient, table_lake: TableLake) -> None:
    """All, or those of one consumer; where there are none, how to take one."""
    assert "calve capture" in page_of(client, "/captures").one("main").text
    capture_id = open_capture(table_lake)
    page = page_of(client, "/captures")
    assert page.all("b")[0].text == capture_id
    assert len(page.all("tr")) == 4
    assert twin(client, "/captures") == rest(client, "/captures")
    chosen = page_of(client, "/captures?consumer=other.hourly")
    assert [one.text for one in chosen.all("span", class_="status tone-ok")] == ["committed"]
    assert "demo.new has no captures" in page_of(client, "/captures?consumer=demo.new").one("main").text


def test_a_capture_says_what_is_in_it_and_why(client: TestClient, table_lake: TableLake) -> None:
    """Snapshots with reasons, ranges, partitions and files; its links lead somewhere."""
    capture_id = open_capture(table_lake)
    page = page_of(client, f"/captures/{capture_id}")
    text = page.one("main").text
    parts = ("1 of 2 snapshots", "in part: the rest is pending", "left for the next capture", "exact", ".parquet")
    for part in (*parts, "taken for demo.daily/7", f"calve commit {capture_id}"):
        assert part in text, part
    for link in page.links:
        if link.startswith(("/tables", "/captures", "/actions/")):
            assert client.get(link).status_code == 200, link
    assert twin(client, f"/captures/{capture_id}") == rest(client, f"/captures/{capture_id}")
    assert client.get("/captures/nothing").status_code == 404


def test_a_capture_is_committed_from_its_page(client: TestClient, table_lake: TableLake) -> None:
    """After a question that names it; then the page shows the move of the checkpoint, and no more buttons."""
    capture_id = open_capture(table_lake)
    place = f"/captures/{capture_id}"
    (link,) = [one for one in page_of(client, place).links if one.startswith("/actions/commit_capture")]
    assert f"Capture {capture_id}" in page_of(client, link).one("main").text
    answer = client.post("/actions/commit_capture", data={"capture_id": capture_id, "next": place})
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    page = page_of(client, place)
    assert [one for one in page.links if one.startswith("/actions/")] == []
    assert "to snapshot" in page.all("table")[-1].text


def test_an_old_capture_shows_its_moves(client: TestClient, table_lake: TableLake) -> None:
    """However often the checkpoint has moved since; one that was given up has none."""
    table = table_lake.create("db.events")
    append(table, 0)
    first = table_lake.captures.capture(["db.events"], "demo.daily").capture_id or ""
    table_lake.captures.commit(first)
    for number in range(210):
        table_lake.captures.set_checkpoint("db.events", "demo.daily", "latest", f"again {number}")
    page = page_of(client, f"/captures/{first}")
    assert "not committed" not in page.one("main").text
    assert len(page.all("table")[-1].text.split("db.events")) == 2
    append(table, 0)
    given_up = table_lake.captures.capture(["db.events"], "demo.daily").capture_id or ""
    table_lake.captures.abandon(given_up)
    assert "None: it was not committed." in page_of(client, f"/captures/{given_up}").one("main").text


def test_a_capture_names_the_instance_that_took_it_and_where_it_was_delivered(
    client: TestClient, table_lake: TableLake, playground: Playground
) -> None:
    """With a link to the step, and for each table the snapshot, or that main never saw it."""
    table = table_lake.create("db.events")
    append(table, 0)
    playground.push("id: demo.daily\nsteps:\n  - id: load\n    type: NoOp\n")
    playground.start("demo.daily")
    report = table_lake.captures.capture(["db.events"], "demo.daily/load", key="demo.daily/1/load")
    capture_id = report.capture_id or ""
    target = table_lake.create("db.sums")
    name, now = TableName("lake", ("db",), "sums"), datetime(2026, 3, 1, tzinfo=UTC)
    delivery = Delivery("demo.daily/load", capture_id, "demo.daily/1/1")
    target.append(rows(target, NOW), snapshot_properties={"calve.attempt": "a2"})
    for attempt in ("a1", "a2"):
        playground.store.deliveries.stage(f"branch_{attempt}", delivery, attempt, [name], now)
    playground.store.deliveries.discard("branch_a1", now)
    staged = StagedTarget(name, "", None, None)
    playground.store.deliveries.note(Staging(delivery, "a2", "branch_a2", (staged,)), name, "uuid", now)
    snapshot = target.refresh().current_snapshot()
    assert snapshot is not None
    page = page_of(client, f"/captures/{capture_id}")
    assert f"/tables/db.sums/snapshots?snapshot={snapshot.snapshot_id}" in page.links
    assert "/workflows/demo.daily/instances/1?step=load" in page.links
    assert "thrown away" in page.one("main").text
    assert client.get(f"/tables/db.sums/snapshots?snapshot={snapshot.snapshot_id}").status_code == 200
    with browser(playground, table_lake, viewer("other")) as stranger:
        assert stranger.get(f"/api/v3/captures/{capture_id}/history").status_code == 404


def test_captures_are_read_page_by_page(
    client: TestClient, table_lake: TableLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page does not read those that it does not show."""
    append(table_lake.create("db.events"), 0)
    taken = []
    for number in range(5):
        report = table_lake.captures.capture(["db.events"], "demo.daily", key=f"{number}", supersede=True)
        taken.append(report.capture_id)
    monkeypatch.setattr("calve.store.captures.captures.SqlCaptureState.captures", None)
    first = rest(client, "/captures?limit=2")
    cursor = first["page_info"]["end_cursor"]
    second = rest(client, f"/captures?limit=2&cursor={cursor}&consumer=demo.daily")
    found = [one["capture_id"] for page in (first, second) for one in page["elements"]]
    assert found == taken[:0:-1]
    assert "Next page" not in page_of(client, "/captures").one("main").text
    assert page_of(client, f"/captures/{taken[0]}").one("h1").text == f"Capture {taken[0]}"


def test_captures_of_others_have_no_page(playground: Playground, table_lake: TableLake) -> None:
    """Neither in the list nor by id; a viewer has no button, someone who may run the workflow has two."""
    capture_id = open_capture(table_lake)
    with browser(playground, table_lake, viewer("other")) as client:
        assert capture_id not in client.get("/captures").text
        assert client.get(f"/captures/{capture_id}").status_code in {403, 404}
    for role, buttons in ((Role.VIEWER, 0), (Role.RUNNER, 2)):
        with browser(playground, table_lake, viewer("demo", role)) as client:
            links = [one for one in page_of(client, f"/captures/{capture_id}").links if one.startswith("/actions/")]
            assert len(links) == buttons
            assert all(client.get(one).status_code == 200 for one in links)


def test_lineage_is_a_picture_and_a_list(client: TestClient, table_lake: TableLake, playground: Playground) -> None:
    """Both have a link for each table and workflow; who is behind is said; depth and centre are in the address."""
    assert "calve demo" in page_of(client, "/lineage").one("main").text
    keep_chain(playground, table_lake)
    table_lake.commit("demo.daily/step", "db.raw")
    append(table_lake.lake.catalog("lake").pyiceberg().load_table("db.raw"), 0)
    tables_on(table_lake.lake, playground.store).take_samples()
    page = page_of(client, "/lineage")
    nodes = {one.attributes["href"] for one in page.elements if "node" in one.attributes.get("class", "")}
    assert nodes == {f"/tables/db.{name}" for name in ("raw", "events", "sums")} | {
        f"/workflows/{name}" for name in ("demo.load", "demo.daily", "other.agg")
    }
    assert "1 behind" in page.one("svg", class_="graph").text
    hints = dict(one.text.split(" · ")[:2] for one in page.all("title")[1:] if " · " in one.text)
    assert {hints[f"db.{name}"] for name in ("raw", "events", "sums")} == {"table"}
    assert (hints["demo.daily"], hints["other.agg"]) == ("workflow, behind", "workflow, up to date")
    assert len(page.all("tr")) == 6
    near = page_of(client, "/lineage?table=db.sums&depth=1")
    assert len(near.all("tr")) == 2
    for query in ("", "?table=db.sums&depth=1", "?workflow=demo.daily"):
        assert twin(client, f"/lineage{query}") == rest(client, f"/lineage{query}")
    assert client.get("/lineage?table=db.nothing").status_code == 404


def test_a_long_list_of_lineage_has_pages(client: TestClient, table_lake: TableLake, playground: Playground) -> None:
    """The address of each says what it is around; the picture shows all of it."""
    keep_chain(playground, table_lake)
    first = page_of(client, "/lineage?table=db.raw&depth=5&limit=2")
    assert len(first.all("tr")) == 3
    (onward,) = [one for one in first.links if "cursor=" in one]
    assert onward.startswith("/lineage?table=db.raw&depth=5&")
    second = page_of(client, onward)
    shown = [[row.text for row in page.all("tr")[1:]] for page in (first, second)]
    assert len(first.all("svg", class_="graph")) == len(second.all("svg", class_="graph")) == 1
    assert not set(shown[0]) & set(shown[1])
    assert sum(map(len, shown)) == 5


def test_lineage_of_others_is_not_shown(playground: Playground, table_lake: TableLake) -> None:
    """Neither in the picture nor in the list."""
    keep_chain(playground, table_lake)
    with browser(playground, table_lake, viewer("other")) as client:
        answer = client.get("/lineage")
        assert "other.agg" in answer.text
        assert "demo.daily" not in answer.text


def test_names_are_text_on_pages_of_captures_and_lineage(
    client: TestClient, table_lake: TableLake, playground: Playground
) -> None:
    """Of consumers, keys, steps, workflows and tables."""
    append(table_lake.create("db.events"), 0)
    report = table_lake.captures.capture(["db.events"], EVIL, key=EVIL)
    evil = TableName("lake", ("db",), EVIL)
    playground.store.lineage.keep([Edge(EVIL, EVIL, Direction.WRITE, evil, 1_000, 1, "uuid")])
    paths = ("/captures", f"/captures/{report.capture_id}", "/lineage", f"/lineage?workflow={quote(EVIL)}")
    for path in (*paths, f"/captures?consumer={quote(EVIL)}"):
        page = page_of(client, path)
        assert page.all("img") == []
        assert EVIL in page.one("main").text
