"""Tables: which there are; and of one, what changed and who has processed it, how far behind and how late that is."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Query
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from calve.api import Call, Paged
from calve.capture.inspection import LEGEND
from calve.errors import CalveError, RequestInvalid
from calve.namespaces import workflow_of
from calve.operations import PREFIX, READ_SOMEWHERE, Operations, Page as ListPage
from calve.web.charts import Series, lag_against_expiry, lateness
from calve.web.formats import clock, duration, number
from calve.web.legend import change_legend, legend_json, legend_list
from calve.web.page import Page, Pages

pages = Pages("tables", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_DAY = 86_400_000
_FEW_COMMITS, _FEW_PARTITIONS = 150, 100
"""The map of a table with more is loaded by the page, so that the page itself comes at once."""
_NEWEST = 8
_LOOKBACK = 3
_EVERY = ListPage(limit=1_000_000)
_SEARCHED = ListPage(limit=30)


@pages.get("/tables", "tables_page", READ_SOMEWHERE)
def tables(
    call: Call,
    page: Paged,
    search: _Text = "",
    is_all: Annotated[bool, Query(alias="all")] = False,  # noqa: FBT002 - FastAPI gives it by name
) -> Page:
    """List the tables that are in use, or all, with how far their consumers are behind."""
    document = Operations(call).list_tables(page, is_all=is_all, search=search or None, include="numbers")
    filters = {"search": search, "all": "true" if is_all else ""}
    query = urlencode({name: value for name, value in filters.items() if value})
    values = {"search": search, "is_all": is_all, "address": f"/tables?{query}", "worst": _worst, "place": place_of}
    return Page("tables/list.html", "Tables", document, values, here="tables")


def _worst(lag: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the consumer of a table that is in most need: an error, then whose history ends first."""
    behind = [one for one in lag if one["error"] or one["pending_commits"]]
    return min(behind, key=_urgency, default=None)


def _urgency(lag: Mapping[str, Any]) -> tuple[bool, float]:
    expires_in = lag["expires_in_seconds"]
    return lag["error"] is None, float("inf") if expires_in is None else expires_in


def place_of(table: str) -> str:
    """Return the address of the page of a table."""
    return f"/tables/{quote(table, safe='')}"


def _shown(about: Document, tab: str, document: Any, **values: Any) -> Page:
    """Return one tab of a table; ``about`` is the table, which all tabs share."""
    common = {"about": about, "tab": tab, "place": place_of(about["table"]), "workflow_of": workflow_of}
    return Page(f"tables/{tab}.html", about["table"], document, common | values, here="tables")


@pages.get("/tables/{table}", "table_page", READ_SOMEWHERE)
def changes(call: Call, table: str, consumer: _Text = "") -> Page:
    """Show which commits touched which partitions, and what a consumer has done with them."""
    operations = Operations(call)
    about = operations.table(table)
    chosen = consumer or _most_behind(about)
    drawn = _few_changes(operations, about, chosen)
    newest = operations.table_snapshots(table, ListPage(limit=_NEWEST))["elements"]
    values = {
        "consumer": chosen,
        "consumers": sorted({*about["consumers"], *([chosen] if chosen else [])}),
        "grid": _grid(about, chosen, drawn),
        "newest": newest,
        "late": _late(operations, about, _LOOKBACK) if drawn is not None else None,
    }
    return _shown(about, "changes", about, **values)


def _most_behind(about: Document) -> str:
    """Return the consumer whose map is shown first: the one that is behind, and whose history ends first."""
    worst = _worst(about["lag"])
    if worst is not None:
        return str(worst["consumer"])
    return str(about["consumers"][0]) if about["consumers"] else ""


def _few_changes(operations: Operations, about: Document, consumer: str) -> Document | None:
    """Return the map of a table if it is small enough to be part of the page."""
    if not 0 < about["commits"] <= _FEW_COMMITS:
        return None
    drawn = operations.table_changes(about["table"], consumer or None, _FEW_COMMITS, _FEW_PARTITIONS)
    return drawn if drawn["partition_count"] <= _FEW_PARTITIONS and not drawn["unread"] else None


def _grid(about: Document, consumer: str, drawn: Document | None) -> Document:
    """Return what ``<grid-map>`` is given: the letters, or where to get them."""
    query = f"?{urlencode({'consumer': consumer})}" if consumer else ""
    place = place_of(about["table"])
    onward = f"&{urlencode({'consumer': consumer})}" if consumer else ""
    grid = {"href": f"{place}/snapshots?snapshot={{column}}{onward}", "prefix": _prefix(about)}
    if drawn is None:
        legend = change_legend(LEGEND)
        return {
            **grid,
            "src": f"{PREFIX}{place}/changes{query}",
            "legend": legend_json(legend),
            "key": legend_list(legend),
        }
    legend = change_legend(drawn["legend"])
    occurring = "".join(row["cells"] for row in drawn["partitions"])
    checkpoint = drawn["checkpoint_column"]
    return {
        **grid,
        "legend": legend_json(legend),
        "key": legend_list(legend, occurring),
        "columns": [[str(one["snapshot_id"]), _column_label(one)] for one in drawn["columns"]],
        "checkpoint": -1 if checkpoint is None else checkpoint + 1,
        "lines": [f"{_label(one['partition'], grid['prefix'])}\t{one['cells']}" for one in drawn["partitions"]],
    }


def _prefix(about: Document) -> str:
    """Return the common prefix of the names of partitions with a single field; rows omit it."""
    fields = about["partition_spec"]
    return f"{fields[0]['name']}=" if len(fields) == 1 else ""


def _label(partition: str, prefix: str) -> str:
    return " ".join(partition.removeprefix(prefix).split())  # tabs and line ends would be those of the grid


def _column_label(column: Mapping[str, Any]) -> str:
    who = column["written_by"].get("attempt", "")
    return f"{clock(column['at'])} {column['operation']}" + (f" by {who}" if who else "")


@pages.get("/tables/{table}/consumers", "table_consumers_page", READ_SOMEWHERE)
def consumers(call: Call, table: str) -> Page:
    """Show how far each consumer is behind, and how long it can stay so; checkpoints are moved here."""
    about = Operations(call).table(table)
    return _shown(about, "consumers", about)


@pages.get("/tables/{table}/lag", "table_lag_page", READ_SOMEWHERE)
def lag(call: Call, table: str, days: Annotated[int, Query(ge=1, le=90)] = 7) -> Page:
    """Show how near consumers came to the end of the history over time, and when they would be too late."""
    operations = Operations(call)
    about, history = operations.table(table), operations.table_lag_history(table, days=days)
    return _shown(about, "lag", history, days=days, chart=_lag_chart(history), forecast=_forecast(history))


def _lag_chart(history: Document) -> Markup | None:
    age = history["max_snapshot_age_ms"]
    series = [
        Series(one["consumer"], tuple((float(each["at"]), float(_age(each, age))) for each in one["samples"]))
        for one in history["consumers"]
    ]
    times = [x for one in series for x, _ in one.points]
    if not times:
        return None
    return lag_against_expiry(series, expires_after=age, begin=clock(int(min(times))), end=clock(int(max(times))))


def _age(sample: Mapping[str, Any], max_age: int) -> int:
    """Return how old the oldest commit was that a consumer had not processed; 0 if there was none."""
    expires_at = sample["expires_at"]
    return 0 if expires_at is None else max(0, max_age - (expires_at - sample["at"]))


def _forecast(history: Document) -> str:
    """Return the sentence about the consumer that will be too late first; empty if none will."""
    found = [(one["unrecoverable_in"], one["consumer"]) for one in history["consumers"]]
    soon = min(((left, name) for left, name in found if left is not None), default=None)
    if soon is None:
        return ""
    if soon[0] <= 0:
        return f"Some of the history that {soon[1]} needs may be gone already."
    return f"At the pace of the last 7 days, {soon[1]} loses history in {duration(soon[0])}."


@pages.get("/tables/{table}/lateness", "table_lateness_page", READ_SOMEWHERE)
def late(
    call: Call,
    table: str,
    column: _Text = "",
    window: Annotated[int, Query(ge=1, le=3_650)] = 30,
    lookback: Annotated[int, Query(ge=0, le=3_650)] = _LOOKBACK,
) -> Page | Response:
    """Show how late rows come, and what a lookback of some days would miss and read again."""
    operations = Operations(call)
    about = operations.table(table)
    times = [one["name"] for one in about["columns"] if str(one["type"]).startswith(("date", "timestamp"))]
    try:
        document = operations.table_lateness(table, column or None, window)
    except RequestInvalid:
        if column or not times:
            raise
        return RedirectResponse(f"{place_of(about['table'])}/lateness?{urlencode({'column': times[0]})}", 303)
    asked = {"column": column, "window": window, "lookback": lookback, "times": times}
    return _shown(about, "lateness", document, **asked, late=_lateness(document, lookback))


def _late(operations: Operations, about: Document, lookback: int) -> Document | None:
    """Return how late the rows of a table come; None if it cannot be told."""
    try:
        return _lateness(operations.table_lateness(about["table"]), lookback)
    except CalveError:
        return None


def _lateness(document: Document, lookback: int) -> Document | None:
    """Return the sentence about a lookback, and the curve."""
    lookbacks = document["lookbacks"]
    if not lookbacks:
        return None
    chosen = max((one for one in lookbacks if one["days"] <= lookback), key=lambda one: int(one["days"]))
    enough = next(one for one in lookbacks if one["days"] == document["misses_none_days"])
    points = [(float(one["days"]), 1.0 - one["missed_share"]) for one in lookbacks]
    return {
        "days": lookback,
        "missed": chosen,
        "share": _percent(chosen["missed_share"]),
        "enough": enough,
        "rest": _rest(chosen, enough, document["window_days"]),
        "chart": lateness(points, window=float(lookback)),
    }


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %".replace(".0 %", " %")


def _rest(chosen: Mapping[str, Any], enough: Mapping[str, Any], window: int) -> str:
    """Return the rest of the sentence: how many rows, and what it would take to miss none."""
    if not chosen["missed_rows"]:
        return f"and reads the data {chosen['times_re_read']:g} times more."
    missed = f"({number(chosen['missed_rows'])} in {window} days)"
    return f"{missed}; {enough['days']} days miss none and re-read {enough['times_re_read']:g} times the data."


@pages.get("/tables/{table}/snapshots", "table_snapshots_page", READ_SOMEWHERE)
def snapshots(call: Call, table: str, page: Paged, snapshot: _Text = "", consumer: _Text = "") -> Page:
    """List the snapshots, newest first; one that is chosen with the captures that hold it."""
    operations = Operations(call)
    about = operations.table(table)
    document = operations.table_snapshots(table, page)
    chosen = _chosen(operations, about, snapshot) if snapshot else None
    values = {
        "snapshot": snapshot,
        "chosen": chosen,
        "consumer": consumer,
        "captures": _captures_of(operations, about["table"], chosen, consumer) if chosen else [],
    }
    return _shown(about, "snapshots", document, **values)


def _chosen(operations: Operations, about: Document, snapshot_id: str) -> Document | None:
    every = operations.table_snapshots(about["table"], _EVERY)["elements"]
    return next((one for one in every if str(one["snapshot_id"]) == snapshot_id), None)


def _captures_of(operations: Operations, table: str, snapshot: Document, consumer: str) -> list[Document]:
    """Return the newest captures that considered a snapshot, with whether they contain it, and why."""
    found = operations.list_captures(_SEARCHED, consumer=consumer or None)["elements"]
    reports = (operations.capture(one["capture_id"]) for one in found if table in one["tables"])
    return [
        {**step, "capture_id": report["capture_id"], "consumer": report["consumer"], "status": report["status"]}
        for report in reports
        for each in report["tables"]
        for step in each["snapshots"]
        if each["source_table"] == table and step["snapshot_id"] == snapshot["snapshot_id"]
    ]


@pages.get("/tables/{table}/about", "table_about_page", READ_SOMEWHERE)
def about(call: Call, table: str) -> Page:
    """Show who reads and writes a table, its columns, and how long its history is kept."""
    found = Operations(call).table(table)
    return _shown(found, "about", found)
