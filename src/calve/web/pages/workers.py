"""What runs a project: workers and their queue, limits of tags, alerts, job templates."""

from typing import Annotated, Literal

from fastapi import Query

from calve.api import Call
from calve.operations import READ_EVERYWHERE, READ_SOMEWHERE, Operations
from calve.web.page import Page, Pages

pages = Pages("workers", is_slow=True)
_EVERY = 3.0
_Status = Annotated[Literal["", "waiting", "sent", "given_up"], Query()]
_Text = Annotated[str, Query(max_length=128)]


@pages.get("/workers", "workers_page", READ_SOMEWHERE, live=True, every=_EVERY)
def workers(call: Call) -> Page:
    """Show the workers, what they run, what waits for them, and what was set aside."""
    operations = Operations(call)
    values = {"queue": operations.queue()}
    return Page("workers/workers.html", "Workers", operations.workers(), values, here="more", regions=("workers",))


@pages.get("/tag-permits", "tag_permits_page", READ_SOMEWHERE)
def tag_permits(call: Call) -> Page:
    """List how many steps with a tag may run at once, and how many do."""
    return Page("workers/permits.html", "Tag permits", Operations(call).permits(), here="more")


@pages.get("/alerts", "alerts_page", READ_EVERYWHERE)
def alerts(call: Call, status: _Status = "") -> Page:
    """List alerts, sent, waiting and failed, newest first."""
    document = Operations(call).alerts(status or None)
    values = {"status": status, "channels": sorted({one["channel"] for one in document})}
    return Page("workers/alerts.html", "Alerts", document, values, here="more")


@pages.get("/job-templates", "job_templates_page", READ_SOMEWHERE)
def job_templates(call: Call) -> Page:
    """List the job templates, in all of their versions."""
    return Page("workers/templates.html", "Job templates", Operations(call).list_job_templates("*"), here="more")


@pages.get("/job-templates/{name}", "job_template_page", READ_SOMEWHERE)
def job_template(call: Call, name: str, version: _Text = "default") -> Page:
    """Show a job template."""
    document = Operations(call).template(name, version)
    return Page("workers/template.html", name, document, {"version": version}, here="more")
