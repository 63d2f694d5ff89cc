"""Home: what needs attention, and the workflows that ran last."""

from typing import Annotated

from fastapi import Query

from calve.api import Call
from calve.operations import READ_SOMEWHERE, Operations, Page as Part
from calve.web.page import Page, Pages
from calve.web.pages.workflows import EVERY, behind_of, lag_by_workflow, run_bars

pages = Pages("home", is_slow=True)
_SHOWN = Part(limit=12)
_CARDS = 6
"""Maximum number of entries in a column; further ones are only counted."""


@pages.get("/", "home_page", READ_SOMEWHERE, live=True, every=EVERY)
def home(call: Call, whole: Annotated[str, Query(alias="all", max_length=20)] = "") -> Page:
    """Show what failed, what is late or behind, what waits for a person, and the workflows that ran last.

    ``all`` is the name of a column to show completely.
    """
    operations = Operations(call)
    behind = behind_of(operations)
    document = {
        **operations.attention(),
        "behind": behind,
        "workers": operations.workers(),
        "project": operations.project(),
        "workflows": operations.list_workflows(page=_SHOWN, sort="last_run", include="runs,triggers"),
    }
    values = {
        "bars": run_bars(document["workflows"], call.engine.tools.clock()),
        "lag": lag_by_workflow(behind),
        "shown": _CARDS,
        "whole": whole,
    }
    regions = ("health", "attention", "workflows")
    return Page("home/home.html", "What needs you", document, values, here="home", regions=regions)
