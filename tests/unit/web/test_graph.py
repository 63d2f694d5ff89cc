"""Graphs: where boxes stand, how they are drawn, and that no text of theirs becomes markup."""

import sys
from collections.abc import Callable
from itertools import combinations
from types import FrameType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from calve.web import graph
from calve.web.graph import LARGE, Box, Edge, Layout, Node, fold, lay_out
from calve.web.graph_svg import NodeText, arrange, box_width, clipped, graph_svg

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</title></svg><script>alert(1)</script>",
    "{{7*7}}{}%s",
    "&lt;b&gt;",
    "\x00\x08\x1b[31m\ufffe",
    "\u202egnp.exe",
    "a b\tc\nd",
]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[Edge]]:
    """Draw a graph without cycles, its nodes of various sizes and in any order."""
    count = draw(st.integers(0, 24))
    sizes = st.floats(10, 300, allow_nan=False)
    nodes = [Node(f"n{i}", draw(sizes), draw(sizes)) for i in range(count)]
    pairs = st.lists(st.tuples(st.integers(0, 23), st.integers(0, 23)), max_size=50)
    edges = [Edge(f"n{a}", f"n{b}") for a, b in draw(pairs) if a < b < count]
    return draw(st.permutations(nodes)), edges


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width - 0.01
        and other.x < one.x + one.width - 0.01
        and one.y < other.y + other.height - 0.01
        and other.y < one.y + one.height - 0.01
    )


@given(graphs())
def test_every_edge_points_down(drawn: tuple[list[Node], list[Edge]]) -> None:
    """Each edge leaves its source at the bottom and reaches its target at the top, never going up on its way."""
    layout = lay_out(*drawn)
    assert len(layout.lines) == len(drawn[1])
    for edge, points in layout.lines:
        source, target = layout.boxes[edge.source], layout.boxes[edge.target]
        assert points[0] == pytest.approx((source.x + source.width / 2, source.y + source.height))
        assert points[-1] == pytest.approx((target.x + target.width / 2, target.y))
        heights = [y for _, y in points]
        assert heights == sorted(heights)
        assert heights[0] < heights[-1]


@given(graphs())
def test_no_two_boxes_overlap_and_all_are_in_the_picture(drawn: tuple[list[Node], list[Edge]]) -> None:
    """Boxes stand apart, and every box and line is within the size of the picture."""
    layout = lay_out(*drawn)
    assert list(layout.boxes) == [node.id for node in drawn[0]]
    assert not any(_overlap(one, other) for one, other in combinations(layout.boxes.values(), 2))
    corners = [point for box in layout.boxes.values() for point in _corners(box)]
    for x, y in [*corners, *(point for _, points in layout.lines for point in points)]:
        assert -0.01 <= x <= layout.width + 0.01
        assert -0.01 <= y <= layout.height + 0.01


def _corners(box: Box) -> list[tuple[float, float]]:
    return [(box.x, box.y), (box.x + box.width, box.y + box.height)]


@given(graphs())
def test_the_picture_does_not_depend_on_names(drawn: tuple[list[Node], list[Edge]]) -> None:
    """The same graph with other ids has its boxes in the same places: no order of a set or a hash is in it."""
    nodes, edges = drawn
    renamed = [Node(f"x{hash(n.id)}{n.id}", n.width, n.height) for n in nodes]
    names = {n.id: r.id for n, r in zip(nodes, renamed, strict=True)}
    again = lay_out(renamed, [Edge(names[e.source], names[e.target]) for e in edges])
    assert list(again.boxes.values()) == list(lay_out(nodes, edges).boxes.values())


def test_a_chain_is_straight() -> None:
    """Steps one after the other stand exactly below each other, with a long edge beside them."""
    nodes = [Node(str(i)) for i in range(6)]
    layout = lay_out(nodes, [*(Edge(str(i), str(i + 1)) for i in range(5))])
    assert {box.x for box in layout.boxes.values()} == {0.0}
    beside = lay_out(nodes, [*(Edge(str(i), str(i + 1)) for i in range(5)), Edge("0", "5")])
    passed = [x for x, _ in beside.lines[-1][1][1:-1]]
    assert max(passed) - min(passed) < 1


def test_edges_of_a_cycle_are_drawn_upwards() -> None:
    """A workflow that reads the table it writes is drawn with one edge back, and an edge to itself is left out."""
    nodes = [Node("table"), Node("workflow")]
    layout = lay_out(nodes, [Edge("table", "workflow"), Edge("workflow", "table"), Edge("table", "table")])
    (_, down), (_, up) = layout.lines
    assert down[0][1] < down[-1][1]
    assert up[0][1] > up[-1][1]
    texts = [NodeText("table"), NodeText("workflow")]
    assert 'class="edge back"' in graph_svg(texts, layout)


def test_edges_to_unknown_nodes_are_omitted() -> None:
    """An edge to a node that is not in the graph is not drawn."""
    layout = lay_out([Node("a")], [Edge("a", "b"), Edge("b", "a")])
    assert layout.lines == ()


def _lines_run(call: Callable[[], Any]) -> int:
    """Count the lines of the layout's module that a call executes."""
    count = 0

    def local(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def trace(frame: FrameType, _event: str, _arg: object) -> Any:
        return local if frame.f_code.co_filename == graph.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("reach", [7, 900])
def test_a_thousand_nodes_take_a_bounded_number_of_operations(reach: int) -> None:
    """A deep graph with long edges stays affordable, as only so many ranks are passed with care."""
    nodes = [Node(str(i)) for i in range(1_000)]
    tree = [Edge(str(i // 2), str(i)) for i in range(1, 1_000)]
    chain = [Edge(str(i), str(i + 1)) for i in range(999)]
    long = [Edge(str(max(0, i - reach)), str(i)) for i in range(8, 1_000)]
    most = 4_000_000  # lines; 2.6 million took 0.22 s of a CPU
    assert _lines_run(lambda: lay_out(nodes, [*tree, *chain, *long])) < most


def test_groups_of_a_large_graph_start_closed() -> None:
    """Above 300 nodes a group is one node, by its own name or by the prefix of its ids, until it is opened."""
    nodes = [
        Node("start"),
        *(Node(f"load_{i}") for i in range(200)),
        *(Node(f"x{i}", group="loop") for i in range(200)),
    ]
    edges = [Edge("start", node.id) for node in nodes[1:]] + [Edge(f"load_{i}", f"x{i}") for i in range(200)]
    closed = fold(nodes, edges)
    assert [node.id for node in closed.nodes] == ["start", "load", "loop"]
    assert [(e.source, e.target) for e in closed.edges] == [("start", "load"), ("start", "loop"), ("load", "loop")]
    assert len(closed.members["loop"]) == 200
    opened = fold(nodes, edges, opened=frozenset({"load"}))
    assert len(opened.nodes) == 202
    assert fold(nodes[:LARGE], edges).nodes == tuple(nodes[:LARGE])


def test_a_prefix_that_is_a_node_is_not_a_group() -> None:
    """A group never takes the id of a node that stands outside of it."""
    nodes = [Node("load"), *(Node(f"load_{i}") for i in range(400))]
    assert len(fold(nodes, []).nodes) == 401


def _drawn(texts: list[NodeText], edges: list[Edge]) -> ET.Element:
    return ET.fromstring(graph_svg(texts, arrange(texts, edges)))  # noqa: S314 - what we have just written


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(text: str) -> None:
    """Whatever a step is called, the picture is well-formed XML with exactly the elements that we draw."""
    texts = [NodeText(text, text, text, text, text), NodeText("next")]
    root = _drawn(texts, [Edge(text, "next", text)])
    assert {element.tag for element in root.iter()} <= {"svg", "a", "title", "rect", "path", "text"}
    allowed = {"id", "class", "href", "data-id", "data-status", "data-from", "data-to", "d", "x", "y"}
    allowed |= {"width", "height", "rx", "transform", "viewBox", "role", "aria-label"}
    assert {name for element in root.iter() for name in element.attrib} <= allowed
    assert not any(name.startswith("on") or name == "style" for e in root.iter() for name in e.attrib)


def test_a_node_is_a_link_with_its_status() -> None:
    """A node can be found by its id, followed, and told by its status in words, colour and shape."""
    texts = [NodeText("merge", detail="failed after 4.1 s", status="USER_FAILED", href="?step=merge", is_selected=True)]
    node = _drawn(texts, []).find("a")
    assert node is not None
    assert node.attrib["id"] == "step-merge"
    assert node.attrib["href"] == "?step=merge"
    assert node.attrib["data-status"] == "USER_FAILED"
    assert node.attrib["class"] == "node tone-bad selected"
    assert node.findtext("title") == "merge · user failed · failed after 4.1 s"
    assert [text.text for text in node.findall("text")] == ["merge", "failed after 4.1 s"]


def test_long_texts_end_with_an_ellipsis() -> None:
    """A text is cut where its box ends, and the whole of it stays in the title."""
    assert clipped("short", 100, 12) == "short"
    cut = clipped("a very long name of a step that does not fit", 126, 12)
    assert cut.endswith("…")
    assert len(cut) < 25
    text = NodeText("a" * 90)
    assert _drawn([text], []).findtext("a/title") == "a" * 90


def test_a_closed_group_looks_like_a_stack() -> None:
    """A group has a second box behind it."""
    node = _drawn([NodeText("load", members=31)], []).find("a")
    assert node is not None
    assert [box.attrib["class"] for box in node.findall("rect")] == ["box behind", "box"]


def test_an_empty_graph_is_an_empty_picture() -> None:
    """A workflow without steps gives a picture without anything in it."""
    assert lay_out([], []) == Layout(0.0, 0.0, {}, ())
    assert len(_drawn([], [])) == 0


def test_boxes_are_as_wide_as_what_is_written_in_them() -> None:
    """A detail is not cut off while there is room; by few steps, so that a live graph stays still."""
    detail = "774,988 rows · 18.2 s"
    texts = [NodeText("merge", detail=detail, status="SUCCEEDED")]
    assert detail in graph_svg(texts, arrange(texts, []))
    widths = {box_width([NodeText("merge", detail="9" * count)]) for count in range(60)}
    assert len(widths) < 8
    assert max(widths) == box_width([NodeText("m" * 200)])
