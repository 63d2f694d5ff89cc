"""Tables: the list of tables; and for one table, its changes, consumers, lag, late rows, snapshots and columns."""

import gzip
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from calve.addresses import table_page
from calve.api import Call, Document as JsonAnswer, Paged
from calve.capture.inspection import SECONDS
from calve.errors import CalveError, RequestInvalid
from calve.namespaces import workflow_of
from calve.operations import LOOKBACK, READ_SOMEWHERE, Operations, Page as ListPage
from calve.web.charts import Series, band_of, lag_against_expiry, lateness
from calve.web.formats import duration, number
from calve.web.live import SELDOM
from calve.web.page import Page, Pages
from calve.web.pages.table_map import COMMITS, PARTITIONS, Part, grid_of, map_of

pages = Pages("tables", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_Skip = Annotated[int, Query(ge=0, lt=2**31)]
_DAY = 86_400_000
_FEW_COMMITS, _FEW_PARTITIONS = 150, 100
"""The browser loads a larger map after the page, so that the page itself appears at once."""
_FIRST = 0.15
"""Seconds to read the commits of a map before the page; a map that takes longer is loaded after the page."""
_NEWEST = 8
_EVERY = ListPage(limit=1_000_000)
_SEARCHED = ListPage(limit=30)


@pages.get("/tables", "tables_page", READ_SOMEWHERE, live=True, every=SELDOM)
def tables(
    call: Call,
    page: Paged,
    search: _Text = "",
    is_all: Annotated[bool, Query(alias="all")] = False,  # noqa: FBT002 - FastAPI passes it by name
    *,
    is_live: bool = False,
) -> Page:
    """List the tables that are in use, or all tables, with the lag of their consumers."""
    listed = partial(Operations(call).list_tables, page, is_all=is_all, search=search or None, include="numbers")
    document = _read_on(listed) if is_live else listed()
    filters = {"search": search, "all": "true" if is_all else ""}
    query = urlencode({name: value for name, value in filters.items() if value})
    values = {"search": search, "is_all": is_all, "address": f"/tables?{query}", "worst": _worst, "place": table_page}
    return Page("tables/list.html", "Tables", document, values, here="tables", regions=("tables",))


def _read_on(listed: Callable[[], Document]) -> Document:
    """Read the list until all tables have their numbers, no numbers are added, or some seconds have passed."""
    until, known, document = time.monotonic() + SECONDS, -1, listed()
    while known < (read := sum(one["numbers"] is not None for one in document["elements"])) < len(document["elements"]):
        if time.monotonic() > until:
            break
        known, document = read, listed()
    return document


def _worst(lag: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the most urgent consumer of a table: one with an error, else the one whose history expires first."""
    behind = [one for one in lag if one["error"] or one["pending_commits"]]
    return min(behind, key=_urgency, default=None)


def _urgency(lag: Mapping[str, Any]) -> tuple[bool, float]:
    expires_in = lag["expires_in_seconds"]
    return lag["error"] is None, float("inf") if expires_in is None else expires_in


def _shown(about: Document, tab: str, document: Any, **values: Any) -> Page:
    """Return the page of a tab; ``about`` is the document of the table, which all tabs share."""
    common = {"about": about, "tab": tab, "place": table_page(about["table"]), "workflow_of": workflow_of}
    return Page(f"tables/{tab}.html", about["table"], document, common | values, here="tables", regions=("tab",))


def _most_behind(about: Document) -> str:
    """Return the consumer whose map is shown by default: the most urgent one, else the first."""
    worst = _worst(about["lag"])
    if worst is not None:
        return str(worst["consumer"])
    return str(about["consumers"][0]) if about["consumers"] else ""


def _few_changes(operations: Operations, about: Document, consumer: str) -> Document | None:
    """Return the map of a table if it is small enough to be part of the page and can be read at once; else None."""
    if not 0 < about["commits"] <= _FEW_COMMITS:
        return None
    drawn = operations.changes_within(
        about["table"], consumer or None, slice(0, _FEW_COMMITS), slice(0, _FEW_PARTITIONS), _FIRST
    )
    return drawn if drawn["partition_count"] <= _FEW_PARTITIONS and not drawn["unread"] else None


@pages.get("/tables/{table:path}/changes", "table_map", READ_SOMEWHERE)
def table_map(
    call: Call, request: Request, table: str, consumer: _Text = "", skip_commits: _Skip = 0, skip_partitions: _Skip = 0
) -> Response:
    """Return a part of a map that is too large to be part of the page."""
    part = Part(table, consumer, skip_commits, skip_partitions)
    drawn = Operations(call).table_changes(
        table, consumer or None, COMMITS, PARTITIONS, skip_commits=skip_commits, skip_partitions=skip_partitions
    )
    return _packed(request, map_of(part, drawn))


def _packed(request: Request, document: Document) -> Response:
    """Return JSON, compressed if the browser accepts it: rows of letters shrink to a fiftieth of their size."""
    content, headers = JsonAnswer(document).body, {"Vary": "Accept-Encoding, Cookie"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = gzip.compress(content, 5, mtime=0), {**headers, "Content-Encoding": "gzip"}
    return Response(content, media_type="application/json", headers=headers)


@pages.get("/tables/{table:path}/consumers", "table_consumers_page", READ_SOMEWHERE, live=True, every=SELDOM)
def consumers(call: Call, table: str) -> Page:
    """Show the lag of each consumer and when its history expires, and let users move checkpoints."""
    about = Operations(call).table(table)
    return _shown(about, "consumers", about)


@pages.get("/tables/{table:path}/lag", "table_lag_page", READ_SOMEWHERE, live=True, every=SELDOM)
def lag(call: Call, table: str, days: Annotated[int, Query(ge=1, le=90)] = 7) -> Page:
    """Show the lag of consumers against the expiry of snapshots over time, and when history would be lost."""
    operations = Operations(call)
    about, history = operations.table(table), operations.table_lag_history(table, days=days)
    return _shown(about, "lag", history, days=days, chart=_lag_chart(history), **forecast(history))


def _lag_chart(history: Document) -> Document | None:
    """Return the chart as SVG, and its data as a table for ``<metric-chart>``; None without samples."""
    age = history["max_snapshot_age_ms"]
    series = [
        Series(one["consumer"], tuple((float(each["at"]), _come(each, age)) for each in one["samples"]))
        for one in history["consumers"]
    ]
    newest = {each["at"]: each["current_at"] for one in history["consumers"] for each in one["samples"]}
    current = [(float(at), float(time)) for at, time in sorted(newest.items()) if time is not None]
    if not newest:
        return None
    lines = [band_of(current, age), current, *(one.points for one in series)]
    return {
        "picture": lag_against_expiry(series, current, expires_after=age),
        "names": [one.name for one in series],
        "rows": _rows(sorted(newest), [dict(line) for line in lines]),
    }


def _come(sample: Mapping[str, Any], max_age: int) -> float:
    """Return the position of a consumer: the time of its oldest unprocessed commit, else of the newest commit."""
    expires_at = sample["expires_at"]
    return float(sample["current_at"] or sample["checkpoint_at"] if expires_at is None else expires_at - max_age)


def _rows(times: Sequence[int], lines: Sequence[Mapping[float, float]]) -> list[list[str]]:
    """Return a row for each time: the time, and the value of each line, all in seconds."""
    found = ([at, *(line.get(at) for line in lines)] for at in times)
    return [["" if one is None else f"{one / 1_000:.0f}" for one in row] for row in found]


def forecast(history: Document) -> Document:
    """Return a sentence about the consumer that will lose history first, and whether that is soon; empty if none will.

    Soon is before all snapshots of today have expired.
    """
    found = [(one["unrecoverable_in"], one["consumer"]) for one in history["consumers"]]
    soon = min(((left, name) for left, name in found if left is not None), default=None)
    if soon is None:
        return {"forecast": "", "is_soon": False}
    left, name = soon
    if left <= 0:
        return {"forecast": f"Some of the history that {name} needs may be gone already.", "is_soon": True}
    sentence = f"At the pace of the last 7 days, {name} loses history in {duration(left)}."
    return {"forecast": sentence, "is_soon": left < history["max_snapshot_age_ms"]}


@pages.get("/tables/{table:path}/lateness", "table_lateness_page", READ_SOMEWHERE)
def late(
    call: Call,
    table: str,
    column: _Text = "",
    window: Annotated[int, Query(ge=1, le=3_650)] = 30,
    lookback: Annotated[int, Query(ge=0, le=3_650)] = LOOKBACK,
) -> Page | Response:
    """Show how late rows arrive, and what a lookback of some days would miss and read again."""
    operations = Operations(call)
    about = operations.table(table)
    times = [one["name"] for one in about["columns"] if str(one["type"]).startswith(("date", "timestamp"))]
    try:
        document = operations.table_lateness(table, column or None, window, lookback)
    except RequestInvalid as error:
        if column:
            raise
        if not times:
            return _shown(about, "lateness", error.as_json(), late=None, is_untold=True)
        return RedirectResponse(f"{table_page(about['table'])}/lateness?{urlencode({'column': times[0]})}", 303)
    asked = {"column": column, "window": window, "lookback": lookback, "times": times}
    return _shown(about, "lateness", document, **asked, late=_lateness(document), is_untold=False)


def _late(operations: Operations, about: Document) -> Document | None:
    """Return how late the rows of a table arrive; None if that is unknown."""
    try:
        return _lateness(operations.table_lateness(about["table"]))
    except CalveError:
        return None


def _lateness(document: Document) -> Document | None:
    """Return the parts of the sentence about the selected lookback, and the chart."""
    asked = document["lookback"]
    if asked is None:
        return None
    enough = next(one for one in document["lookbacks"] if one["days"] == document["misses_none_days"])
    curve = [(one["within_ms"] / _DAY, one["share_at_least"], one["share_at_most"]) for one in document["curve"]]
    share = _between(_percent(asked["missed_rows"], document), _percent(asked["missed_rows_at_most"], document))
    return {
        "days": asked["days"],
        "share": share,
        "enough": enough["days"],
        "rest": rest_of_sentence(asked, enough, document["window_days"]),
        "chart": lateness(curve, lookback=asked["days"], missed=share),
        "is_band": any(least != most for _, least, most in curve),
    }


def _percent(rows: int, document: Document) -> str:
    share = rows / document["rows"]
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %".replace(".0 %", " %") if rows else ""


def _between(least: str, most: str) -> str:
    """Return an amount as text: a range, if only the partitions of rows are known, not their exact times."""
    if not most:
        return "none"
    return most if least == most else f"{least} to {most}" if least else f"up to {most}"


def rest_of_sentence(asked: Mapping[str, Any], enough: Mapping[str, Any], window: int) -> str:
    """Return the rest of the sentence: how many rows a lookback misses, and which lookback would miss none.

    How often data is read again is left out if it is less than once, as for a table that is younger than the lookback.
    """
    if not asked["missed_rows_at_most"]:
        return f"and reads the data {asked['times_re_read']:g} times more." if asked["times_re_read"] >= 1 else ""
    least, most = ((number(rows) if rows else "") for rows in (asked["missed_rows"], asked["missed_rows_at_most"]))
    missed = f"({_between(least, most)} in {window} days)"
    again = f" and re-read {enough['times_re_read']:g} times the data" if enough["times_re_read"] >= 1 else ""
    return f"{missed}; {enough['days']} days miss none{again}."


@pages.get("/tables/{table:path}/snapshots", "table_snapshots_page", READ_SOMEWHERE, live=True, every=SELDOM)
def snapshots(call: Call, table: str, page: Paged, snapshot: _Text = "", consumer: _Text = "") -> Page:
    """List the snapshots, newest first; and for the selected one, the captures that considered it."""
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


@pages.get("/tables/{table:path}/about", "table_about_page", READ_SOMEWHERE)
def about(call: Call, table: str) -> Page:
    """Show who reads and writes a table, its columns, and how long its history is kept."""
    found = Operations(call).table(table)
    return _shown(found, "about", found)


# After those below it: the name of a table may have slashes.
@pages.get("/tables/{table:path}", "table_page", READ_SOMEWHERE, live=True, every=SELDOM)
def changes(call: Call, table: str, consumer: _Text = "", skip_commits: _Skip = 0, skip_partitions: _Skip = 0) -> Page:
    """Show which commits changed which partitions, and which of them a consumer has processed."""
    operations = Operations(call)
    about = operations.table(table)
    chosen = consumer or _most_behind(about)
    part = Part(about["table"], chosen, skip_commits, skip_partitions)
    drawn = _few_changes(operations, about, chosen) if part.is_newest else None
    newest = operations.table_snapshots(table, ListPage(limit=_NEWEST))["elements"]
    values = {
        "consumer": chosen,
        "consumers": sorted({*about["consumers"], *([chosen] if chosen else [])}),
        "grid": grid_of(part, drawn),
        "newest": newest,
        "late": _late(operations, about) if drawn is not None else None,
    }
    return _shown(about, "changes", about, **values)
