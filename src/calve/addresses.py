"""The paths of pages of the web UI, without the address of the server. Pure."""

from functools import lru_cache
from urllib.parse import quote


def workflow_page(workflow_id: str) -> str:
    """Return the path of the page of a workflow."""
    return f"/workflows/{_quoted(workflow_id)}"


def instance_page(workflow_id: str, instance_id: int, step: str | None = None) -> str:
    """Return the path of the page of an instance, or of a step in it, such as ``job`` or ``loop/3/job``."""
    page = f"{workflow_page(workflow_id)}/instances/{instance_id}"
    return f"{page}?step={_quoted(step)}" if step else page


def table_page(table: str) -> str:
    """Return the path of the page of a table."""
    return f"/tables/{_quoted(table)}"


@lru_cache(maxsize=1_000)  # a list of workflows has a link for each of their last runs
def _quoted(text: str) -> str:
    return quote(text, safe="")
