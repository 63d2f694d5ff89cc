"""The list of workflows, and the search."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Query

from calve.addresses import instance_page
from calve.api import Call, Paged
from calve.errors import RequestInvalid
from calve.operations import READ_SOMEWHERE, Operations, Page as Part
from calve.web.page import Page, Pages

pages = Pages("workflows", is_slow=True)
EVERY = 3.0
"""Seconds between two messages of the streams of pages that show all workflows."""
_INCLUDE = "runs,triggers"
_Filter = Annotated[str, Query(max_length=128)]


@pages.get("/workflows", "workflows_page", READ_SOMEWHERE, live=True, every=EVERY)
def workflows(
    call: Call,
    page: Paged,
    search: _Filter = "",
    tag: _Filter = "",
    owner: _Filter = "",
    sort: Literal["id", "last_run"] = "id",
) -> Page:
    """List workflows with their last runs and their next starts."""
    operations = Operations(call)
    document = operations.list_workflows(
        page=page, search=search, tag=tag or None, owner=owner or None, sort=sort, include=_INCLUDE
    )
    chosen = {"search": search, "tag": tag, "owner": owner, "sort": sort if sort != "id" else ""}
    filters = {name: value for name, value in chosen.items() if value}
    values = {
        "filters": {**chosen, "sort": sort},
        "address": f"/workflows?{urlencode(filters)}",
        "bars": run_bars(document, call.engine.tools.clock()),
        "lag": lag_by_workflow(behind_of(operations)),
    }
    return Page("workflows/list.html", "Workflows", document, values, here="workflows", regions=("workflows",))


def behind_of(operations: Operations) -> dict[str, Any]:
    """Return the consumers that are behind, the most urgent first; none if there is no lake."""
    try:
        return operations.list_behind(page=Part(limit=200))
    except RequestInvalid:
        return {"elements": [], "page_info": {"has_next_page": False}}


def lag_by_workflow(behind: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the lag of each workflow: that of its consumer whose history expires first."""
    return {one["workflow_id"]: one for one in reversed(behind["elements"]) if one["workflow_id"]}


def run_bars(document: Mapping[str, Any], now: int) -> dict[str, list[dict[str, Any]]]:
    """Return the bars of the last runs of each workflow of a list."""
    return {one["workflow_id"]: _bars(one, now) for one in document["elements"]}


def _bars(workflow: Mapping[str, Any], now: int) -> list[dict[str, Any]]:
    """Return the last runs of a workflow for its bars, oldest first."""
    return [
        {
            "status": run["status"],
            "ms": max(0, run.get("end_time", now) - run.get("start_time", run["create_time"])),
            "href": instance_page(workflow["workflow_id"], run["workflow_instance_id"]),
            "title": f"instance {run['workflow_instance_id']}: {run['status'].replace('_', ' ').lower()}",
        }
        for run in reversed(workflow["runs"])
    ]


@pages.get("/search", "search_page", READ_SOMEWHERE)
def search(call: Call, page: Paged, q: _Filter = "") -> Page:
    """Show the results of a search; with JavaScript, the palette in the header shows the same."""
    text = q.strip()
    found = Operations(call).search(text, page, include="jumps") if text else {"elements": [], "page_info": {}}
    address = f"/search?{urlencode({'q': text})}"
    return Page("workflows/search.html", "Search", found, {"q": text, "address": address})
