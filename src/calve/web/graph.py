"""Layered layout of a graph: the positions of boxes, and the routes of edges. Pure.

The rank of a node is the length of its longest path. An edge that passes ranks gets a virtual node in each of them.
The nodes of a rank are sorted so that few edges cross. Least squares give the x coordinates, so that chains are
straight and a box is centred between its neighbours. The layout does not depend on the names of nodes. Edges that close
a cycle (in lineage: a workflow that reads what it writes) run upwards.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from re import compile as pattern

LARGE = 300  # nodes: in a larger graph, ``fold`` makes each group one box
_SWEEPS = 8
_VIRTUAL_PER_NODE = 4  # without a limit, a chain of 1,000 steps that all wait for the first has half a million
_SIDE = 20.0
_BELOW = 36.0
_VIRTUAL_SIDE = 8.0
_STRAIGHT = 8.0  # weight of virtual nodes: straight long edges matter more than boxes centred on their neighbours
_FIXED = 1_000.0
_ALMOST = 48.0
_PREFIX = pattern(r"^(.+?)[._/:-]")
_FEWEST = 3  # minimum number of nodes with the same prefix that form a group

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Node:
    """A box to place."""

    id: str
    width: float = 168.0
    height: float = 44.0
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency: the target comes after the source."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """The upper left corner and the size of a node."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of a graph's boxes and lines."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    lines: tuple[tuple[Edge, tuple[Point, ...]], ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph in which each closed group is one node, whose id is the name of the group."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    members: Mapping[str, tuple[str, ...]]


def fold(nodes: Sequence[Node], edges: Sequence[Edge], *, opened: frozenset[str] = frozenset()) -> Folded:
    """Close the groups of a graph, except those in ``opened``; a graph of at most 300 nodes stays as it is.

    A node without a group belongs to the group of its prefix (``load`` of ``load_orders``), if at least three nodes
    have that prefix.
    """
    if len(nodes) <= LARGE:
        return Folded(tuple(nodes), tuple(edges), {})
    members = {name: ids for name, ids in _groups(nodes).items() if name not in opened}
    owner = {id_: name for name, ids in members.items() for id_ in ids}
    merged = {owner.get(node.id, node.id): node for node in reversed(nodes)}
    kept = tuple(replace(node, id=name, group=None) for name, node in reversed(merged.items()))
    moved = dict.fromkeys((owner.get(e.source, e.source), owner.get(e.target, e.target), e.label) for e in edges)
    return Folded(kept, tuple(Edge(a, b, label) for a, b, label in moved if a != b), members)


def _groups(nodes: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    named = {node.group for node in nodes}
    for node in nodes:
        prefix = _PREFIX.match(node.id)
        name = node.group or (prefix.group(1) if prefix else None)
        if name is not None:
            found.setdefault(name, []).append(node.id)
    alone = {node.id for node in nodes}
    return {
        name: tuple(ids)
        for name, ids in found.items()
        if name in named or (len(ids) >= _FEWEST and (name not in alone or name in ids))
    }


def lay_out(nodes: Sequence[Node], edges: Sequence[Edge]) -> Layout:
    """Return the layout of a graph. Edges to unknown nodes, and from a node to itself, are left out."""
    index = {node.id: place for place, node in enumerate(nodes)}
    drawn = [edge for edge in edges if edge.source in index and edge.target in index and edge.source != edge.target]
    pairs = [(index[edge.source], index[edge.target]) for edge in drawn]
    graph = _Ranked(nodes, pairs)
    graph.reduce_crossings()
    centres = graph.place()
    left = min((centres[i] - node.width / 2 for i, node in enumerate(nodes)), default=0.0)
    left = min(left, *centres[len(nodes) :], left)
    tops, height = graph.tops()
    middles = [tops[rank] + graph.heights[rank] / 2 for rank in graph.ranks]
    boxes = {
        node.id: Box(centres[i] - left - node.width / 2, middles[i] - node.height / 2, node.width, node.height)
        for i, node in enumerate(nodes)
    }
    lines = tuple((edge, tuple(graph.line(n, centres, tops, left))) for n, edge in enumerate(drawn))
    ends = [box.x + box.width for box in boxes.values()] + [x - left for x in centres[len(nodes) :]]
    return Layout(max(ends, default=0.0), height, boxes, lines)


class _Ranked:
    """A graph with a rank for each node. Nodes are numbers from 0; virtual nodes come after the others."""

    def __init__(self, nodes: Sequence[Node], pairs: Sequence[tuple[int, int]]) -> None:
        self.nodes = nodes
        self.pairs = pairs
        order, down = _without_cycles(len(nodes), pairs)
        self.ranks = _ranks(order, down)
        self.above: list[list[int]] = [[] for _ in nodes]
        self.below: list[list[int]] = [[] for _ in nodes]
        self.chains: list[list[int]] = [[] for _ in pairs]
        self._add_chains(down)
        self.layers: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for node in [*order, *range(len(nodes), len(self.ranks))]:
            self.layers[self.ranks[node]].append(node)
        self.heights = [max((nodes[n].height for n in layer if n < len(nodes)), default=0.0) for layer in self.layers]

    def _add_chains(self, down: Sequence[tuple[int, int]]) -> None:
        """Add virtual nodes to edges, the shortest first; edges beyond the budget get none, and run behind boxes."""
        budget = _VIRTUAL_PER_NODE * len(self.nodes)
        spans = [self.ranks[b] - self.ranks[a] for a, b in down]
        for number in sorted(range(len(down)), key=spans.__getitem__):
            source, target = down[number]
            budget -= spans[number] - 1
            chain = self._chain(source, target) if budget >= 0 else []
            if chain or spans[number] == 1:
                for upper, lower in pairwise([source, *chain, target]):
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)
            self.chains[number] = chain

    def _chain(self, source: int, target: int) -> list[int]:
        between = range(self.ranks[source] + 1, self.ranks[target])
        first = len(self.ranks)
        self.ranks.extend(between)
        self.above.extend([] for _ in between)
        self.below.extend([] for _ in between)
        return list(range(first, first + len(between)))

    def reduce_crossings(self) -> None:
        """Sort each rank by the mean place of its neighbours, downwards and upwards in turn; keep the best order."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        places = self._places()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            layers = self.layers if sweep % 2 == 0 else self.layers[::-1]
            neighbours = self.above if sweep % 2 == 0 else self.below
            for layer in layers:
                wanted = {n: _mean([places[m] for m in neighbours[n]], places[n]) for n in layer}
                layer.sort(key=wanted.__getitem__)
                for place, node in enumerate(layer):
                    places[node] = float(place)
            if (count := self._crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], count
        self.layers = best

    def _places(self) -> list[float]:
        places = [0.0] * len(self.ranks)
        for layer in self.layers:
            for place, node in enumerate(layer):
                places[node] = float(place)
        return places

    def _crossings(self) -> int:
        places, count = self._places(), 0
        for layer in self.layers:
            seen: list[float] = []
            for node in layer:
                ends = [places[m] for m in self.below[node]]
                count += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return count

    def place(self) -> list[float]:
        """Return the x coordinate of the centre of each node."""
        centres = [0.0] * len(self.ranks)
        for layer in self.layers:
            self._settle(layer, [0.0] * len(layer), [1.0] * len(layer), centres)
        for sweep in range(_SWEEPS):
            sides = (self.above,) if sweep % 2 == 0 else (self.below,)
            self._sweep(sides if sweep < _SWEEPS - 2 else (self.above, self.below), centres, is_down=sweep % 2 == 0)
        for layer in self.layers:
            snapped = [self._snapped(node, centres) for node in layer]
            weights = [_FIXED if x is not None else 1.0 for x in snapped]
            wanted = [centres[n] if x is None else x for n, x in zip(layer, snapped, strict=True)]
            self._settle(layer, wanted, weights, centres)
        return centres

    def _sweep(self, sides: Sequence[list[list[int]]], centres: list[float], *, is_down: bool) -> None:
        for layer in self.layers if is_down else reversed(self.layers):
            near = [[m for side in sides for m in side[n]] for n in layer]
            wanted = [self._wanted(n, others, centres) for n, others in zip(layer, near, strict=True)]
            weights = [
                1.0 + len(others) if n < len(self.nodes) else _STRAIGHT for n, others in zip(layer, near, strict=True)
            ]
            self._settle(layer, wanted, weights, centres)

    def _snapped(self, node: int, centres: Sequence[float]) -> float | None:
        """Return the x of the nearest neighbour above, if it is almost that of the node: a small bend looks wrong."""
        nearest = min((centres[m] for m in self.above[node]), key=lambda x: abs(x - centres[node]), default=None)
        return nearest if nearest is not None and abs(nearest - centres[node]) < _ALMOST else None

    def _wanted(self, node: int, neighbours: Sequence[int], centres: Sequence[float]) -> float:
        """Return the mean x of the neighbours; for a virtual node, virtual neighbours count more than boxes."""
        first = len(self.nodes)
        if node < first:
            return _mean([centres[m] for m in neighbours], centres[node])
        weights = [_STRAIGHT if m >= first else 1.0 for m in neighbours]
        return sum(centres[m] * weight for m, weight in zip(neighbours, weights, strict=True)) / sum(weights)

    def _settle(self, layer: list[int], wanted: list[float], weights: list[float], centres: list[float]) -> None:
        """Place the nodes of a rank as close as possible to where they are wanted, in order and without overlaps.

        Minus the space that the nodes to its left need, no coordinate may be less than the one before. Least squares
        under that condition is isotonic regression: it pools neighbours that are in the wrong order.
        """
        offsets = [0.0]
        for left, right in pairwise(layer):
            offsets.append(offsets[-1] + self._reach(left) + self._reach(right))
        pools: list[tuple[float, float, int]] = []
        for want, offset, weight in zip(wanted, offsets, weights, strict=True):
            mean, total, size = want - offset, weight, 1
            while pools and pools[-1][0] >= mean:
                other, heavy, many = pools.pop()
                mean, total, size = (mean * total + other * heavy) / (total + heavy), total + heavy, size + many
            pools.append((mean, total, size))
        settled = (mean for mean, _, size in pools for _ in range(size))
        for node, offset, mean in zip(layer, offsets, settled, strict=True):
            centres[node] = mean + offset

    def _reach(self, node: int) -> float:
        return (self.nodes[node].width + _SIDE) / 2 if node < len(self.nodes) else _VIRTUAL_SIDE

    def tops(self) -> tuple[list[float], float]:
        """Return the y coordinate at which each rank starts, and the one at which the last rank ends."""
        tops, y = [], 0.0
        for height in self.heights:
            tops.append(y)
            y += height + _BELOW
        return tops, max(0.0, y - _BELOW)

    def line(self, number: int, centres: Sequence[float], tops: Sequence[float], left: float) -> Iterator[Point]:
        """Yield the points of an edge, from its source to its target, with two points in each rank that it passes."""
        source, target = self.pairs[number]
        chain = self.chains[number]
        upward = self.ranks[source] > self.ranks[target]
        yield centres[source] - left, self._edge_of(source, tops, is_top=upward)
        for node in reversed(chain) if upward else chain:
            top = tops[self.ranks[node]]
            ends = (top, top + self.heights[self.ranks[node]])
            for y in reversed(ends) if upward else ends:
                yield centres[node] - left, y
        yield centres[target] - left, self._edge_of(target, tops, is_top=not upward)

    def _edge_of(self, node: int, tops: Sequence[float], *, is_top: bool) -> float:
        middle = tops[self.ranks[node]] + self.heights[self.ranks[node]] / 2
        half = self.nodes[node].height / 2
        return middle - half if is_top else middle + half


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _without_cycles(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the nodes in topological order, and the edges, of which those that close a cycle are reversed."""
    after: list[list[int]] = [[] for _ in range(count)]
    is_target = [False] * count
    for source, target in pairs:
        after[source].append(target)
        is_target[target] = True
    finished: list[int] = []
    state = [0] * count
    for root in sorted(range(count), key=is_target.__getitem__):
        _visit(root, after, state, finished)
    order = finished[::-1]
    places = {node: place for place, node in enumerate(order)}
    return order, [(a, b) if places[a] < places[b] else (b, a) for a, b in pairs]


def _visit(root: int, after: Sequence[Sequence[int]], state: list[int], finished: list[int]) -> None:
    """Append the nodes reachable from ``root`` to ``finished``, depth first.

    It uses no recursion, because a chain can be longer than Python's recursion limit.
    """
    stack = [] if state[root] else [(root, iter(reversed(after[root])))]
    state[root] = 1
    while stack:
        node, rest = stack[-1]
        following = next((n for n in rest if not state[n]), None)
        if following is None:
            finished.append(node)
            stack.pop()
        else:
            state[following] = 1
            stack.append((following, iter(reversed(after[following]))))


def _ranks(order: Sequence[int], down: Iterable[tuple[int, int]]) -> list[int]:
    """Return the rank of each node: its longest path, or closer to its targets if that shortens more edges."""
    ranks = [0] * len(order)
    before: dict[int, list[int]] = {node: [] for node in order}
    after: dict[int, list[int]] = {node: [] for node in order}
    for source, target in down:
        before[target].append(source)
        after[source].append(target)
    for node in order:
        ranks[node] = max((ranks[n] + 1 for n in before[node]), default=0)
    for node in reversed(order):
        if len(after[node]) > len(before[node]):
            ranks[node] = min(ranks[n] for n in after[node]) - 1
    lowest = min(ranks, default=0)
    return [rank - lowest for rank in ranks]
