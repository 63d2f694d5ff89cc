"""A graph of steps, or of tables and workflows, as SVG: readable, searchable and linked without JavaScript. Pure.

Colours come from classes and ``data-status`` only, because the Content-Security-Policy of the pages forbids ``style``.
Every text goes through ``Markup``, which escapes it; for texts of nodes and edges with ``%``, because ``format`` takes
three times as long.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from re import compile as pattern

from markupsafe import Markup

from calve.web.formats import words
from calve.web.graph import Box, Edge, Layout, Node, Point, lay_out
from calve.web.legend import Tone, mark, tone_of

_HEIGHT = 44.0
_NARROWEST, _WIDER, _WIDEST = 168.0, 17.0, 253.0
_TEXT_LEFT = 32.0
_TEXT_RIGHT = 10.0
_MARGIN = 8.0
_TITLE, _DETAIL, _CONDITION = 12.0, 11.0, 10.5
_LONGEST_CONDITION = 150.0
_NARROW = frozenset("fijlrtI.,:;'!|()[]{} -")
_WIDE = frozenset("mwMW@%–—…=<>+~&")
_NO_XML = pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SPACES = pattern(r"\s+")

_SVG = Markup(
    '<svg class="graph" viewBox="{left:g} {top:g} {width:g} {height:g}" width="{width:g}" height="{height:g}" '
    'role="group" aria-label="{label}">{edges}{nodes}</svg>'
)
_NODE = Markup(
    '<a id="step-%(id)s" class="node tone-%(tone)s%(more)s" href="%(href)s" data-id="%(name)s" '
    'data-status="%(status)s"%(current)s><title>%(hint)s</title>%(behind)s'
    '<rect class="box" x="%(x)g" y="%(y)g" width="%(width)g" height="%(height)g" rx="7"/>%(mark)s'
    '<text class="title" x="%(text_x)g" y="%(title_y)g">%(title)s</text>%(detail)s</a>'
)
_DETAIL_TEXT = Markup('<text class="detail" x="%g" y="%g">%s</text>')
_BEHIND = Markup('<rect class="box behind" x="%g" y="%g" width="%g" height="%g" rx="7"/>')
_EDGE = Markup('<path class="edge%s" data-from="%s" data-to="%s" d="%s"/>')
_CONDITION_TEXT = Markup('<text class="condition" x="{:g}" y="{:g}"><title>{}</title>{}</text>')


@dataclass(frozen=True, slots=True)
class NodeText:
    """The texts and the link of a node.

    Args:
        id: the id of the node; the HTML id of its link is ``step-…``.
        title: the first line; the id if empty.
        detail: the second line, such as ``2.06 M rows · 19 s``.
        status: the status, which is part of the tooltip; that of a step also defines the tone.
        href: the address that the node links to.
        members: how many nodes a closed group has; 0 for other nodes.
        is_selected: whether the node is the one that the page shows.
        tone: the tone, if the status is not that of a step.
    """

    id: str
    title: str = ""
    detail: str = ""
    status: str = ""
    href: str = ""
    members: int = 0
    is_selected: bool = False
    tone: Tone | None = None


def box_width(texts: Iterable[NodeText]) -> float:
    """Return the width of all boxes of a graph: enough for the longest text, within limits.

    It grows in large steps, so that the graph does not move whenever a number in its texts gets another digit.
    """
    longest = max((_longest(text) for text in texts), default=0.0)
    steps = ceil((longest + _TEXT_LEFT + _TEXT_RIGHT - _NARROWEST) / _WIDER)
    return min(_NARROWEST + max(0, steps) * _WIDER, _WIDEST)


def _longest(text: NodeText) -> float:
    return max(_text_width(text.title or text.id, _TITLE), _text_width(text.detail, _DETAIL))


def arrange(texts: Sequence[NodeText], edges: Sequence[Edge]) -> Layout:
    """Return the layout of a graph with these texts; it is cached, because only ids, edges and the width matter."""
    return _arranged(tuple(text.id for text in texts), box_width(texts), tuple(edges))


@lru_cache(maxsize=200)
def _arranged(ids: tuple[str, ...], width: float, edges: tuple[Edge, ...]) -> Layout:
    return lay_out([Node(one, width, _HEIGHT) for one in ids], edges)


def graph_svg(texts: Sequence[NodeText], layout: Layout, *, label: str = "Steps") -> Markup:
    """Return a graph as SVG.

    Args:
        texts: the texts of the nodes in the layout.
        layout: the positions of the nodes, from ``arrange``.
        label: the description for screen readers.
    """
    edges = Markup("").join(_edge(edge, points) for edge, points in layout.lines)
    conditions = Markup("").join(_condition(edge, points) for edge, points in layout.lines if edge.label)
    nodes = Markup("").join(_node(text, layout.boxes[text.id]) for text in texts)
    return _SVG.format(
        left=-_MARGIN,
        top=-_MARGIN,
        width=layout.width + 2 * _MARGIN,
        height=layout.height + 2 * _MARGIN,
        label=clean(label),
        edges=edges + conditions,
        nodes=nodes,
    )


def clean(text: str) -> str:
    """Return a text in which the characters that XML cannot contain are replaced."""
    return _NO_XML.sub("\ufffd", text)


def clipped(text: str, width: float, size: float) -> str:
    """Return a text, truncated with an ellipsis if it is wider than a number of pixels."""
    text = _SPACES.sub(" ", clean(text)).strip()
    if _text_width(text, size) <= width:
        return text
    room, kept = width - _text_width("…", size), 0
    for character in text:
        room -= _character_width(character) * size
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def _text_width(text: str, size: float) -> float:
    return sum(map(_character_width, text)) * size


def _character_width(character: str) -> float:
    """Return the estimated maximum width of a character relative to the font size: the server has no fonts."""
    if character in _NARROW:
        return 0.4
    if character in _WIDE or ord(character) >= 0x1100:
        return 1.0
    return 0.74 if character.isupper() else 0.62


def _node(text: NodeText, box: Box) -> Markup:
    title = text.title or text.id
    room = box.width - _TEXT_LEFT - _TEXT_RIGHT
    x = box.x + _TEXT_LEFT
    middle = box.y + box.height / 2
    tone = text.tone or tone_of(text.status)
    detail = clipped(text.detail, room, _DETAIL)
    return _NODE % {
        "id": _SPACES.sub("_", clean(text.id)),
        "name": clean(text.id),
        "tone": tone,
        "more": (" group" if text.members else "") + (" selected" if text.is_selected else ""),
        "current": Markup(' aria-current="true"') if text.is_selected else "",
        "href": clean(text.href),
        "status": clean(text.status),
        "hint": clean(" · ".join(part for part in (title, words(text.status), text.detail) if part)),
        "behind": _BEHIND % (box.x + 4, box.y + 4, box.width, box.height) if text.members else "",
        "x": box.x,
        "y": box.y,
        "width": box.width,
        "height": box.height,
        "mark": mark(tone, box.x + 16, middle),
        "text_x": x,
        "title_y": middle - 3 if detail else middle + 4,
        "title": clipped(title, room, _TITLE),
        "detail": _DETAIL_TEXT % (x, middle + 12, detail) if detail else "",
    }


def _edge(edge: Edge, points: Sequence[Point]) -> Markup:
    """Return an edge: curved between ranks, straight where it passes through one."""
    path = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for place, ((x, y), (then_x, then_y)) in enumerate(pairwise(points)):
        middle = (y + then_y) / 2
        if place % 2 or x == then_x:
            path.append(f"L{then_x:g} {then_y:g}")
        else:
            path.append(f"C{x:g} {middle:g} {then_x:g} {middle:g} {then_x:g} {then_y:g}")
    back = " back" if points[-1][1] < points[0][1] else ""
    return _EDGE % (back, clean(edge.source), clean(edge.target), "".join(path))


def _condition(edge: Edge, points: Sequence[Point]) -> Markup:
    """Return the condition of an edge, just above its target, where edges from the same source are already apart."""
    (x, y), (end_x, end_y) = points[-2:]
    place = 0.62
    text = clipped(edge.label, _LONGEST_CONDITION, _CONDITION)
    return _CONDITION_TEXT.format(x + (end_x - x) * place, y + (end_y - y) * place + 3, clean(edge.label), text)
