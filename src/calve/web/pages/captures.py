"""Captures: the list, and for each its snapshots with reasons, its files, and the checkpoints that it moved."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from calve.api import Call, Paged
from calve.namespaces import workflow_of
from calve.operations import READ_SOMEWHERE, Operations, Page as ListPage
from calve.web.page import Page, Pages
from calve.web.pages.tables import place_of

pages = Pages("captures", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_MOST_FILES = 100
_MOVES = ListPage(limit=200)
TONES = {"writing": "wait", "open": "run", "committed": "ok", "abandoned": "off"}
"""How each status of a capture is shown."""


@pages.get("/captures", "captures_page", READ_SOMEWHERE)
def captures(call: Call, page: Paged, consumer: _Text = "") -> Page:
    """List captures, newest first: all, or those of a consumer."""
    document = Operations(call).list_captures(page, consumer=consumer or None)
    query = urlencode({"consumer": consumer} if consumer else {})
    values = {"consumer": consumer, "address": f"/captures?{query}", "tones": TONES, "place": place_of, "at": _at}
    return Page("captures/list.html", "Captures", document, values, here="tables")


@pages.get("/captures/{capture_id}", "capture_page", READ_SOMEWHERE)
def capture(call: Call, capture_id: str) -> Page:
    """Show the content of a capture, its snapshots with reasons, and its result."""
    operations = Operations(call)
    document = operations.capture(capture_id)
    values = {
        "tones": TONES,
        "place": place_of,
        "at": _at,
        "workflow_id": workflow_of(document["consumer"]),
        "key": _key(operations, document),
        "files": _files(operations, capture_id),
        "most_files": _MOST_FILES,
        "moves": _moves(operations, document),
    }
    return Page("captures/show.html", f"Capture {capture_id}", document, values, here="tables")


def _at(text: str | None) -> int | None:
    """Return a time that a document has as ISO 8601, in milliseconds."""
    return None if text is None else int(datetime.fromisoformat(text).timestamp() * 1_000)


def _key(operations: Operations, document: Document) -> Document:
    """Return the capture as lists have it: when it was taken, and what for."""
    found = operations.captures(consumer=document["consumer"])
    return next((one for one in found if one["capture_id"] == document["capture_id"]), {})


def _files(operations: Operations, capture_id: str) -> list[Document]:
    """Return the files that the tables of a capture reference."""
    found = operations.capture_files(capture_id)
    return [{"table": table, **file} for table, files in found.items() for file in files]


def _moves(operations: Operations, document: Document) -> list[Document]:
    """Return the moves of checkpoints that the commit of a capture made."""
    found = operations.list_checkpoint_moves(_MOVES, consumer=document["consumer"])["elements"]
    return [one for one in found if one["reason"] == document["capture_id"]]
