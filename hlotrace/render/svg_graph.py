"""A fusion's members as inline SVG: boxes laid out by Graphviz, bytes on the edges, memory told from registers."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hlotrace.render.graph_layout import LINE_HEIGHT, PlacedEdge, PlacedNode, place
from hlotrace.render.svg import element, number, picture, text

if TYPE_CHECKING:
    from hlotrace.views.blocks import Graph

MARGIN = 24.0


def graph(block: Graph) -> str:
    """The graph from top to bottom; an edge through memory is drawn strong, one that stays inside thin."""
    placed = place(block)
    inside = "".join([*(_edge(edge) for edge in placed.edges), *(_node(node, block) for node in placed.nodes)])
    marker = element(
        "marker", element("path", d="M0,0L7,3L0,6Z", class_="arrow"),
        id="arrow", orient="auto", markerUnits="userSpaceOnUse", markerWidth=8.0, markerHeight=8.0, refX=6.5, refY=3.0,
    )  # fmt: skip
    shifted = element("g", inside, transform=f"translate({number(MARGIN)},{number(MARGIN)})")
    width, height = placed.width + 2 * MARGIN + 40, placed.height + 2 * MARGIN
    return picture(height, block.title, [element("defs", marker), shifted], width, is_fixed=True)


def _edge(edge: PlacedEdge) -> str:
    (x, y), *rest = edge.path
    curve = f"M{number(x)},{number(y)}C" + " ".join(f"{number(a)},{number(b)}" for a, b in rest)
    kind = "memory" if edge.in_memory else "inside"
    line = element("path", d=curve, class_=f"edge {kind}", marker_end="url(#arrow)")
    at_x, at_y = edge.label_at
    return line + text(at_x, at_y + 3, edge.label, "middle", "value halo")


def _node(node: PlacedNode, block: Graph) -> str:
    x, y = node.x - node.width / 2, node.y - node.height / 2
    box = element("rect", x=x, y=y, width=node.width, height=node.height, rx=3.0, class_=f"node {node.kind}")
    first = node.y - (len(node.lines) - 1) * LINE_HEIGHT / 2 + 4
    lines = "".join(text(node.x, first + row * LINE_HEIGHT, line, "middle") for row, line in enumerate(node.lines))
    return element("g", element("title", escape(block.nodes[node.id][0])) + box + lines)
