"""The iterations of a loop: all of them as a grid of letters, and a page of them with params and errors."""

from dataclasses import replace
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Query
from pydantic import BeforeValidator, Field

from calve.addresses import instance_page
from calve.api import Call, Paged
from calve.engine import RunStatus
from calve.operations import READ, Operations
from calve.web.legend import legend_json, legend_list, status_legend
from calve.web.page import Page, Pages
from calve.web.pages.parts import InstanceId

pages = Pages("iterations", is_slow=True)
_EVERY = 3.0
"""Minimum number of seconds between two messages of the stream: each contains the letters of all iterations."""
_Status = Annotated[RunStatus | None, BeforeValidator(lambda text: text or None), Query()]
_Param = Annotated[str, Query(max_length=1_000)]
_Number = Annotated[Annotated[int, Field(ge=1, lt=2**31)] | None, BeforeValidator(lambda text: text or None)]
"""As for the status, an empty field of a form is None."""


@pages.get(
    "/workflows/{workflow_id}/instances/{instance_id}/iterations/{loop:path}",
    "iterations_page",
    READ,
    live=True,
    every=_EVERY,
)
def iterations(
    call: Call,
    workflow_id: str,
    instance_id: InstanceId,
    loop: str,
    page: Paged,
    *,
    status: _Status = None,
    at: _Number = None,
    run: _Number = None,
    param: _Param = "",
) -> Page:
    """Show the iterations of a loop in a run, by default the latest: all, or those that match the filters."""
    operations = Operations(call)
    part = page if at is None else replace(page, cursor=str(at - 1))
    statuses, params = [status] if status else None, [param] if param else None
    document = operations.list_iterations(workflow_id, instance_id, loop, part, statuses, params, run)
    legend = status_legend(document["legend"])
    instance = instance_page(workflow_id, instance_id)
    filters = {name: str(value) for name, value in (("status", status), ("param", param), ("run", run)) if value}
    values = {
        "workflow_id": workflow_id,
        "instance_id": instance_id,
        "loop": loop,
        "status": status,
        "at": at,
        "param": param,
        "run": run,
        "instance": instance,
        "inner": f"{instance}?" + (f"run={run}&" if run else ""),
        "address": f"{instance}/iterations/{quote(loop)}?{urlencode(filters)}",
        "legend": legend_json(legend),
        "legend_list": legend_list(legend, document["letters"]),
        "inside": operations.first_inside(workflow_id, instance_id, loop),
    }
    title = f"Iterations of {loop}"
    return Page("iterations/list.html", title, document, values, here="workflows", regions=("iterations",))
