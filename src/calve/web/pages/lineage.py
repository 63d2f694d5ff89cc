"""Lineage: which workflows read and wrote which tables, as a graph and as a list."""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from markupsafe import Markup

from calve.addresses import table_page, workflow_page
from calve.api import Call, Paged
from calve.operations import READ_SOMEWHERE, Operations
from calve.web.formats import number, since
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.legend import Tone
from calve.web.live import SELDOM
from calve.web.page import Page, Pages
from calve.web.pages.parts import part_of

pages = Pages("lineage", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_DEPTH = 4
_MOST_NODES = 300
"""Larger graphs cannot be read any more: the page only has the list."""


@pages.get("/lineage", "lineage_page", READ_SOMEWHERE, live=True, every=SELDOM)
def lineage(
    call: Call,
    page: Paged,
    table: _Text = "",
    workflow: _Text = "",
    depth: Annotated[int, Query(ge=1, le=20)] = _DEPTH,
) -> Page:
    """Show the tables and workflows around one of them, or the newest, as a graph and as a list in pages."""
    document = Operations(call).table_lineage(table or None, workflow or None, depth)
    chosen = {f"table:{table}", f"workflow:{workflow}"}
    names = {one["id"]: one["name"] for one in document["nodes"]}
    now = call.engine.tools.clock()
    edges = sorted(document["edges"], key=itemgetter("workflow_id", "direction", "table", "step_id"))
    given = {"table": table, "workflow": workflow, "depth": "" if depth == _DEPTH else depth}
    values = {
        "table": table,
        "workflow": workflow,
        "depth": depth,
        "picture": _picture(document, chosen, now) if 0 < len(names) <= _MOST_NODES else None,
        # The cursor is the position in the list: the columns that identify an edge are too long for an address.
        "part": part_of([{"place": place, **one} for place, one in enumerate(edges)], page, "place"),
        "address": f"/lineage?{urlencode({name: value for name, value in given.items() if value})}",
        "place": table_page,
        "workflow_place": workflow_page,
        "tones": _WORDS,
    }
    return Page("lineage/lineage.html", "Lineage", document, values, here="lineage", regions=("lineage",))


def _picture(document: Document, chosen: set[str], now: int) -> Markup:
    behind = {one["workflow_id"] for one in document["edges"] if one["pending_commits"]}
    tones = {node["id"]: _tone(node, behind) for node in document["nodes"]}
    ran = {one["workflow_id"]: one["at"] for one in sorted(document["edges"], key=itemgetter("at"))}
    texts = [
        NodeText(
            node["id"],
            node["name"],
            _freshness(node, ran, now),
            status=_WORDS[tones[node["id"]]],
            tone=tones[node["id"]],
            href=table_page(node["name"]) if node["kind"] == "table" else workflow_page(node["name"]),
            is_selected=node["id"] in chosen,
        )
        for node in document["nodes"]
    ]
    return graph_svg(texts, arrange(texts, _edges(document["edges"])), label="Tables, and the workflows between them")


def _edges(edges: Sequence[Mapping[str, Any]]) -> list[Edge]:
    """Return one edge for each pair of a table and a workflow, with the number of pending commits as its label."""
    labels: dict[tuple[str, str], str] = {}
    for one in edges:
        pending = one["pending_commits"]
        label = f"{number(pending)} behind" if pending else ""
        labels[one["from"], one["to"]] = label or labels.get((one["from"], one["to"]), "")
    return [Edge(source, target, label) for (source, target), label in labels.items()]


def _freshness(node: Mapping[str, Any], ran: Mapping[str, int], now: int) -> str:
    """Return when a table last changed, or when a workflow last read or wrote a table."""
    if node["kind"] == "table":
        return "changed " + since(node["changed_at"], now) if node["changed_at"] else ""
    return "ran " + since(ran[node["name"]], now)


def _tone(node: Mapping[str, Any], behind: Collection[str]) -> Tone:
    if node["kind"] == "table":
        return Tone.RUN
    return Tone.LATE if node["name"] in behind else Tone.OK


_WORDS = {Tone.RUN: "table", Tone.LATE: "workflow, behind", Tone.OK: "workflow, up to date"}
"""The meaning of each tone of a node, for the legend and the tooltip."""
