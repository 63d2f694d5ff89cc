"""The style guide: every part of the pages in every state, for authors of pages and for tests."""

from calve.api import Call
from calve.engine import RunStatus, StepStatus
from calve.operations import SIGNED_IN
from calve.web.page import Page, Pages

pages = Pages("styleguide")
_MINUTE = 60_000


@pages.get("/styleguide", "styleguide_page", SIGNED_IN)
def styleguide(call: Call) -> Page:
    """Show every part."""
    now = call.engine.tools.clock()
    statuses = [str(one) for one in (*RunStatus, *StepStatus)]
    runs = [
        {"status": status, "ms": (1 + index * 7 % 11) * _MINUTE, "href": "#", "title": f"instance {index}"}
        for index, status in enumerate(["SUCCEEDED"] * 9 + ["FAILED", "SUCCEEDED", "STOPPED", "IN_PROGRESS", "PAUSED"])
    ]
    times = [now - 2_000, now - 7 * _MINUTE, now - 26 * 60 * _MINUTE, now + 23 * _MINUTE]
    values = {"statuses": list(dict.fromkeys(statuses)), "runs": runs, "times": times}
    return Page("styleguide.html", "Style guide", {"statuses": values["statuses"]}, values)
