"""Steps that wait for people: approvals, breakpoints, and what they pause."""

from calve.api import Call, Paged
from calve.operations import READ_SOMEWHERE, Operations
from calve.web.page import Page, Pages
from calve.web.pages.parts import part_of

pages = Pages("steps")
_EVERY = 1.0
_PLACE = ("workflow_id", "step_id", "workflow_version_id", "workflow_instance_id", "workflow_run_id", "step_attempt_id")
"""The fields that identify a breakpoint."""


@pages.get("/approvals", "approvals_page", READ_SOMEWHERE, live=True, every=_EVERY)
def approvals(call: Call, page: Paged) -> Page:
    """List the Approval steps that wait for a decision, oldest first."""
    document = Operations(call).list_approvals(page)
    return Page("steps/approvals.html", "Approvals", document, here="more", regions=("approvals",))


@pages.get("/breakpoints", "breakpoints_page", READ_SOMEWHERE, live=True, every=_EVERY)
def breakpoints(call: Call, page: Paged) -> Page:
    """List breakpoints, and the attempts that are paused at them."""
    document = Operations(call).all_breakpoints()
    values = {"part": part_of(document["breakpoints"], page, *_PLACE)}
    return Page("steps/breakpoints.html", "Breakpoints", document, values, here="more", regions=("breakpoints",))
