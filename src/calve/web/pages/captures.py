"""Captures: the list, and for each its snapshots with reasons, its files, and the checkpoints that it moved."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from calve.addresses import table_page
from calve.api import Call, Paged
from calve.namespaces import workflow_of
from calve.operations import READ_SOMEWHERE, Operations
from calve.web.live import SELDOM
from calve.web.page import Page, Pages

pages = Pages("captures", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_MOST_FILES = 100
TONES = {"writing": "wait", "open": "run", "committed": "ok", "abandoned": "off"}
"""The tone of each status of a capture."""
_CLOSED = frozenset({"committed", "abandoned"})
"""The final statuses of a capture."""
DELIVERY_TONES = {"staged": "run", "held": "wait", "published": "ok", "discarded": "off"}
DELIVERY_WORDS = {"staged": "being written", "held": "waits for the commit", "discarded": "thrown away"}
"""The tone and the text of each status of a delivery; other statuses are shown as they are."""


@pages.get("/captures", "captures_page", READ_SOMEWHERE, live=True, every=SELDOM)
def captures(call: Call, page: Paged, consumer: _Text = "") -> Page:
    """List captures, newest first: all, or those of a consumer."""
    document = Operations(call).list_captures(page, consumer=consumer or None)
    query = urlencode({"consumer": consumer} if consumer else {})
    values = {"consumer": consumer, "address": f"/captures?{query}", "tones": TONES, "place": table_page, "at": _at}
    return Page("captures/list.html", "Captures", document, values, here="tables", regions=("captures",))


@pages.get("/captures/{capture_id}", "capture_page", READ_SOMEWHERE, live=True, every=SELDOM)
def capture(call: Call, capture_id: str) -> Page:
    """Show the content of a capture, its snapshots with reasons, and its result."""
    operations = Operations(call)
    document = operations.capture(capture_id)
    values = {
        "tones": TONES,
        "place": table_page,
        "at": _at,
        "workflow_id": workflow_of(document["consumer"]),
        "workflow_of": workflow_of,
        "history": operations.capture_history(capture_id),
        "files": _files(operations, capture_id),
        "most_files": _MOST_FILES,
        "delivery_tones": DELIVERY_TONES,
        "delivery_words": DELIVERY_WORDS,
    }
    regions = () if document["status"] in _CLOSED else ("capture",)
    return Page("captures/show.html", f"Capture {capture_id}", document, values, here="tables", regions=regions)


def _at(text: str | None) -> int | None:
    """Convert a time in ISO 8601 to milliseconds since 1970."""
    return None if text is None else int(datetime.fromisoformat(text).timestamp() * 1_000)


def _files(operations: Operations, capture_id: str) -> list[Document]:
    """Return the files that the tables of a capture reference."""
    found = operations.capture_files(capture_id)
    return [{"table": table, **file} for table, files in found.items() for file in files]
