"""Workers and their queue, tag permits, alerts, and job templates."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query

from calve.api import Call, Paged
from calve.definition import to_yaml
from calve.operations import READ_EVERYWHERE, READ_SOMEWHERE, Operations
from calve.web.highlight import yaml_html
from calve.web.page import Page, Pages
from calve.web.pages.parts import part_of

pages = Pages("workers", is_slow=True)
_EVERY = 3.0
_ALERTS = 1_000
"""Maximum number of alerts that the pages of the list contain: the newest ones."""
_Status = Annotated[Literal["", "waiting", "sent", "given_up"], Query()]
_Text = Annotated[str, Query(max_length=128)]


@pages.get("/workers", "workers_page", READ_SOMEWHERE, live=True, every=_EVERY)
def workers(call: Call) -> Page:
    """Show the workers, the tasks that they run, the queue, and the instances that were set aside."""
    operations = Operations(call)
    values = {"queue": operations.queue()}
    return Page("workers/workers.html", "Workers", operations.workers(), values, here="more", regions=("workers",))


@pages.get("/tag-permits", "tag_permits_page", READ_SOMEWHERE, live=True, every=_EVERY)
def tag_permits(call: Call, page: Paged) -> Page:
    """List how many steps with a tag may run at once, and how many are running."""
    document = Operations(call).permits()
    values = {"part": part_of(document, page, "tag")}
    return Page("workers/permits.html", "Tag permits", document, values, here="more", regions=("permits",))


@pages.get("/alerts", "alerts_page", READ_EVERYWHERE, live=True, every=_EVERY)
def alerts(call: Call, page: Paged, status: _Status = "") -> Page:
    """List alerts, sent, waiting and failed, newest first."""
    document = Operations(call).alerts(status or None, _ALERTS)
    values = {
        "status": status,
        "part": part_of(document, page, "id"),
        "address": f"/alerts?{urlencode({'status': status} if status else {})}",
    }
    return Page("workers/alerts.html", "Alerts", document, values, here="more", regions=("alerts",))


@pages.get("/job-templates", "job_templates_page", READ_SOMEWHERE)
def job_templates(call: Call) -> Page:
    """List all versions of all job templates."""
    return Page("workers/templates.html", "Job templates", Operations(call).list_job_templates("*"), here="more")


@pages.get("/job-templates/{name}", "job_template_page", READ_SOMEWHERE)
def job_template(call: Call, name: str, version: _Text = "default") -> Page:
    """Show a job template."""
    document = Operations(call).template(name, version)
    values = {"version": version, "code": yaml_html(to_yaml(document["definition"]))}
    return Page("workers/template.html", name, document, values, here="more")
