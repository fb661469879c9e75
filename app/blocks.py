"""Blocks as Dash components: every view looks the same in the app as in the report and the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from hlotrace.app import figures
from hlotrace.app.grids import ORIGIN_WORDS, ROW_HEIGHT, data_grid, row_ids
from hlotrace.app.wiring import aria, data
from hlotrace.app.words import meaning
from hlotrace.render.graph_layout import place
from hlotrace.units import format_percent, format_value, is_missing
from hlotrace.views.blocks import Bars, Figure, Figures, Graph, Grid, Heading, Note, Scatter, StackedArea, Treemap

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from hlotrace.views.blocks import Block

LEAST_GRID_ROWS, MOST_GRID_ROWS = 3, 14


def draw_all(blocks: Iterable[Block], prefix: str) -> list[Component]:
    """The blocks from top to bottom; ids of charts and grids begin with `prefix`."""
    return [draw(block, f"{prefix}-{number}") for number, block in enumerate(blocks)]


def draw(block: Block, name: str) -> Component:
    """One block; `name` becomes the id of its chart or grid."""
    match block:
        case Heading():
            return heading(block)
        case Note():
            return note(block)
        case Figures():
            return headline(block)
        case Grid():
            return grid(block, name)
        case Bars():
            return chart(
                figures.bars(block), name, block.title, 34 + 15 * len(block.series) * len(block.labels), block.origin
            )
        case StackedArea():
            return chart(figures.stacked_area(block), name, block.title, 260, block.origin)
        case Treemap():
            return chart(figures.treemap(block), name, block.title, 300, block.origin)
        case Graph():
            return section(block.title, graph(block, {}))
        case Scatter():
            return chart(figures.scatter(block), name, block.title, 340, block.origin)


def heading(block: Heading) -> Component:
    """A title with the question it answers."""
    return html.Div([html.H2(block.text), html.P(block.question, className="question")], className="heading")


def note(block: Note) -> Component:
    """A sentence, with the command to run next where there is one."""
    parts: list[Any] = [html.Span(block.text, className="note-text")]
    if block.command:
        parts.append(command(block.command))
    return html.Div(parts, className=f"note note-{block.kind}", role="note")


def command(text: str) -> Component:
    """A command line that a click copies."""
    return html.Button(
        [html.Code(text), html.Span("copy", className="copy-word")],
        className="command",
        title="Copy this command",
        **data(copy=text),
    )


def headline(block: Figures) -> Component:
    """Headline figures side by side."""
    return html.Div([figure(item) for item in block.items], className="figures")


def figure(item: Figure) -> Component:
    """One headline figure: label, value, origin, a bar where it is a part of something, detail."""
    missing = is_missing(item.value)
    value = html.Span(
        format_value(item.value, item.unit), className="figure-value missing" if missing else "figure-value"
    )
    parts: list[Any] = [
        html.Div(item.label, className="figure-label", title=meaning(item.label) or item.label),
        html.Div([value, origin(item.origin)], className="figure-line"),
    ]
    if item.capacity and not missing and not isinstance(item.value, str):
        parts.append(_capacity_bar(float(item.value or 0), float(item.capacity), item.origin))
    if item.detail:
        parts.append(html.Div(item.detail, className="figure-detail", title=item.detail))
    return html.Div(parts, className="figure")


def _capacity_bar(value: float, capacity: float, source: str) -> Component:
    share = value / capacity
    kind = f"fill origin-{source}" + (" over" if share > 1 else "")
    inside = html.Div(className=kind, style={"width": f"{100 * min(share, 1):.2f}%"})
    return html.Div(inside, className="capacity", role="meter", title=f"{format_percent(share)} of the capacity")


def origin(source: str) -> Component:
    """The mark that says where a figure is from."""
    words = html.Span(source, className="origin-word")
    return html.Span(words, className=f"origin origin-{source}", title=ORIGIN_WORDS[source])


def section(title: Any, *children: Any, extra: str = "") -> Component:
    """Something under a small title."""
    return html.Section([html.H3(title), *children], className=f"section {extra}".strip())


def chart(figure_: figures.Figure, name: str, title: str, height: int, source: str) -> Component:
    """A figure of a fixed height under its title and origin."""
    drawn = dcc.Graph(
        id=name, figure=figure_, config=figures.CONFIG, style={"height": f"{height}px"}, className="chart"
    )
    return section([title, origin(source)], drawn)


def grid(block: Grid, name: str) -> Component:
    """A table as high as its rows need, within limits."""
    ids = row_ids(block.frame, block.selects)
    shown = min(max(len(block.frame), LEAST_GRID_ROWS), MOST_GRID_ROWS)
    made = data_grid(name, block.frame, block.columns, ids, file=file_name(block.title), title=block.title)
    children: list[Any] = [html.Div(made, className="grid-box", style={"height": f"{ROW_HEIGHT * shown + 40 + 32}px"})]
    if block.note:
        children.append(html.P(block.note, className="grid-note"))
    return html.Div(children)


def file_name(title: str) -> str:
    """A title as the name of a CSV file."""
    return f"{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}.csv"


def graph(block: Graph, details: Mapping[str, Mapping[str, str]], words: str = "") -> Component:
    """A directed graph as SVG, laid out here and drawn by assets/graph.js, under a strip with its legend and buttons.

    Args:
        details: for a node's id what its tooltip says (`title`), its colour (`colour`), and the
            selection that a click makes (`select`).
        words: what to say beside the legend.
    """
    placed = place(block)
    nodes = [{**asdict(node), **details.get(node.id, {})} for node in placed.nodes]
    drawn = {
        "width": placed.width,
        "height": placed.height,
        "nodes": nodes,
        "edges": [asdict(edge) for edge in placed.edges],
    }
    picture = html.Div(
        className="graph", role="img", title="", **data(graph=json.dumps(drawn)), **aria(label=block.title)
    )
    return html.Div([_graph_strip(words), picture], className="graph-box")


def _graph_strip(words: str) -> Component:
    inside = "written and read within the fusion: never touches memory"
    legend = [
        html.Span("stays inside", className="edge-key inside", title=inside),
        html.Span("through memory", className="edge-key memory", title="read from or written to memory"),
        html.Span(words, className="graph-words", title=words),
    ]
    return html.Div([*legend, html.Div(className="graph-tools")], className="graph-strip")
