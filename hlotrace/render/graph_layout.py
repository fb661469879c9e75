"""Where a Graph block's nodes and edges stand: pydot builds it, the Graphviz in pygraphviz's wheel lays it out.

Graphviz gets sizes and numbers only. Names, which come from dumps and are not to be trusted, never pass through DOT.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotrace.units import end_of

if TYPE_CHECKING:
    import pydot

    from hlotrace.views.blocks import Graph

POINTS_PER_INCH = 72.0
LINE_HEIGHT = 14.0
CHARACTER_WIDTH = 6.6
PADDING = 10.0
LONGEST_LINE = 34

Point = tuple[float, float]

# Graphviz keeps global state: one layout at a time.
_GRAPHVIZ = threading.Lock()


@dataclass(frozen=True)
class PlacedNode:
    """A node: its centre and size in points, y downwards; `lines` are its label, each cut to what fits."""

    id: str
    lines: tuple[str, ...]
    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class PlacedEdge:
    """An edge: `path` is a start point and then triples of cubic Bézier points; the arrow's tip is the last."""

    source: str
    target: str
    label: str
    in_memory: bool
    path: tuple[Point, ...]
    label_at: Point


@dataclass(frozen=True)
class Placed:
    """A laid-out graph; its size in points."""

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]


def place(graph: Graph) -> Placed:
    """Lay a Graph block out from top to bottom, in points.

    Edges that name no node are left out. Takes about 0.2 s for 400 nodes.
    """
    import pygraphviz

    ids = list(graph.nodes)
    lines = [tuple(end_of(line, LONGEST_LINE) for line in graph.nodes[node][0].split("\n")) for node in ids]
    number = {node: index for index, node in enumerate(ids)}
    edges = [edge for edge in graph.edges if edge[0] in number and edge[1] in number]
    with _GRAPHVIZ:
        laid_out = pygraphviz.AGraph(string=_dot(lines, [(number[a], number[b]) for a, b, *_ in edges]).to_string())
        laid_out.layout(prog="dot")
        width, height = (float(value) for value in laid_out.graph_attr["bb"].split(",")[2:])
        nodes = tuple(
            PlacedNode(
                node, lines[index], graph.nodes[node][1], *_centre(laid_out, index, height), *_size(lines[index])
            )
            for index, node in enumerate(ids)
        )
        splines = [
            laid_out.get_edge(f"n{number[a]}", f"n{number[b]}", str(key)) for key, (a, b, *_) in enumerate(edges)
        ]
        paths = [_path(spline.attr["pos"], height) for spline in splines]
    placed = tuple(PlacedEdge(*edge, path, _middle(path)) for edge, path in zip(edges, paths, strict=True))
    return Placed(width, height, nodes, placed)


def _dot(lines: list[tuple[str, ...]], edges: list[tuple[int, int]]) -> pydot.Dot:
    import pydot

    graph = pydot.Dot("g", graph_type="digraph", rankdir="TB", nodesep="0.25", ranksep="0.42", strict=False)
    for index, texts in enumerate(lines):
        width, height = (f"{size / POINTS_PER_INCH:.3f}" for size in _size(texts))
        graph.add_node(pydot.Node(f"n{index}", shape="box", fixedsize="true", width=width, height=height, label='""'))
    for key, (source, target) in enumerate(edges):
        graph.add_edge(pydot.Edge(f"n{source}", f"n{target}", key=str(key), arrowsize="0.7"))
    return graph


def _size(lines: tuple[str, ...]) -> Point:
    width = max((len(line) for line in lines), default=0) * CHARACTER_WIDTH + 2 * PADDING
    return width, len(lines) * LINE_HEIGHT + PADDING


def _centre(laid_out: object, index: int, height: float) -> Point:
    x, y = laid_out.get_node(f"n{index}").attr["pos"].split(",")  # type: ignore[attr-defined]
    return float(x), height - float(y)


def _path(position: str, height: float) -> tuple[Point, ...]:
    """The control points of Graphviz's `pos`: `e,x,y` (the arrow's tip) and then the spline's own."""
    tip: list[Point] = []
    points: list[Point] = []
    for part in position.split():
        fields = part.split(",")
        point = (float(fields[-2]), height - float(fields[-1]))
        (tip if fields[0] == "e" else points).append(point)
    # The arrow is drawn by the drawer: the last curve ends where Graphviz would put the tip.
    return (*points[:-1], *(tip or points[-1:]))


def _middle(path: tuple[Point, ...]) -> Point:
    """A point near the middle of the spline: where an edge's label stands."""
    curves = (len(path) - 1) // 3
    first = 3 * ((curves - 1) // 2)
    a, b, c, d = path[first : first + 4]
    t = 0.5 if curves % 2 else 1.0
    weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    return (
        sum(weight * point[0] for weight, point in zip(weights, (a, b, c, d), strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, (a, b, c, d), strict=True)),
    )
