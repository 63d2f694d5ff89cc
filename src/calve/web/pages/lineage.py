"""Lineage: which workflows read and wrote which tables, as a graph and as a list."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query
from markupsafe import Markup

from calve.addresses import table_page, workflow_page
from calve.api import Call
from calve.operations import READ_SOMEWHERE, Operations
from calve.web.formats import number, since
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.legend import Tone
from calve.web.live import SELDOM
from calve.web.page import Page, Pages

pages = Pages("lineage", is_slow=True)

Document = dict[str, Any]
_Text = Annotated[str, Query(max_length=512)]
_MOST_NODES = 300
"""With more, a graph can no longer be read: the list remains."""


@pages.get("/lineage", "lineage_page", READ_SOMEWHERE, live=True, every=SELDOM)
def lineage(call: Call, table: _Text = "", workflow: _Text = "", depth: Annotated[int, Query(ge=1, le=20)] = 4) -> Page:
    """Show the tables and workflows around one of them, or the newest."""
    document = Operations(call).table_lineage(table or None, workflow or None, depth)
    chosen = {f"table:{table}", f"workflow:{workflow}"}
    names = {one["id"]: one["name"] for one in document["nodes"]}
    now = call.engine.tools.clock()
    values = {
        "table": table,
        "workflow": workflow,
        "depth": depth,
        "picture": _picture(document, chosen, now) if 0 < len(names) <= _MOST_NODES else None,
        "edges": sorted(document["edges"], key=lambda one: (one["workflow_id"], one["direction"], one["table"])),
        "place": table_page,
        "workflow_place": workflow_page,
        "tones": _WORDS,
    }
    return Page("lineage/lineage.html", "Lineage", document, values, here="lineage", regions=("lineage",))


def _picture(document: Document, chosen: set[str], now: int) -> Markup:
    tones = {node["id"]: _tone(node, document["edges"]) for node in document["nodes"]}
    texts = [
        NodeText(
            node["id"],
            node["name"],
            _freshness(node, document["edges"], now),
            status=_WORDS[tones[node["id"]]],
            tone=tones[node["id"]],
            href=table_page(node["name"]) if node["kind"] == "table" else workflow_page(node["name"]),
            is_selected=node["id"] in chosen,
        )
        for node in document["nodes"]
    ]
    return graph_svg(texts, arrange(texts, _edges(document["edges"])), label="Tables, and the workflows between them")


def _edges(edges: Sequence[Mapping[str, Any]]) -> list[Edge]:
    """Return one edge for each pair of a table and a workflow; those that wait are labelled with what waits."""
    labels: dict[tuple[str, str], str] = {}
    for one in edges:
        pending = one["pending_commits"]
        label = f"{number(pending)} behind" if pending else ""
        labels[one["from"], one["to"]] = label or labels.get((one["from"], one["to"]), "")
    return [Edge(source, target, label) for (source, target), label in labels.items()]


def _freshness(node: Mapping[str, Any], edges: Sequence[Mapping[str, Any]], now: int) -> str:
    """Return when a table changed, or a workflow last read or wrote one."""
    if node["kind"] == "table":
        return "changed " + since(node["changed_at"], now) if node["changed_at"] else ""
    return "ran " + since(max(one["at"] for one in edges if one["workflow_id"] == node["name"]), now)


def _tone(node: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> Tone:
    if node["kind"] == "table":
        return Tone.RUN
    is_behind = any(one["pending_commits"] for one in edges if one["workflow_id"] == node["name"])
    return Tone.LATE if is_behind else Tone.OK


_WORDS = {Tone.RUN: "table", Tone.LATE: "workflow, behind", Tone.OK: "workflow, up to date"}
"""What the tone of a node says, in the legend and in its tooltip."""
