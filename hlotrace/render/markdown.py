"""Blocks as Markdown that fits an issue comment: tables as GitHub draws them, long ones folded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from hlotrace.render.cells import Column, columns_of
from hlotrace.units import NOTHING, format_percent, format_value
from hlotrace.views.blocks import (
    Bars,
    Block,
    Figure,
    Figures,
    Graph,
    Grid,
    Heading,
    Note,
    Scatter,
    StackedArea,
    Treemap,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlotrace.render.report import Report

LONG = 12
"""Tables of more rows are folded."""
ROWS_OF_A_CHART = 10

_MARKS = {"info": "", "finding": "**Finding.** ", "warning": "**Warning.** ", "missing": "**Missing.** "}


def render(blocks: Iterable[Block], level: int = 2) -> str:
    """The blocks as Markdown; headings begin at `level`."""
    shown = list(blocks)
    # The grid before has the numbers of the bars that follow it.
    told = {id(bars) for grid, bars in pairwise(shown) if isinstance(grid, Grid) and isinstance(bars, Bars)}
    return "\n\n".join(part for block in shown if id(block) not in told for part in _draw(block, level)) + "\n"


def render_report(report: Report) -> str:
    """A whole report as Markdown."""
    parts = [f"# {escape(report.title)}\n\n{escape(report.subtitle)}\n"]
    for section in report.sections:
        parts.append(f"{'#' * (section.level + 1)} {escape(section.title)}\n\n*{escape(section.question)}*\n")
        if section.blocks:
            parts.append(render(section.blocks, section.level + 2))
    return "\n".join(parts)


def _draw(block: Block, level: int) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * level} {escape(block.text)}" + (f"\n\n*{escape(block.question)}*" if block.question else "")
        case Note():
            yield _MARKS[block.kind] + escape(block.text) + (f"\n\n{_fence(block.command)}" if block.command else "")
        case Figures():
            yield table(("figure", "value", "from", ""), (_figure(item) for item in block.items), (1,))
        case Grid():
            yield _grid(block)
        case Bars():
            yield _bars(block)
        case StackedArea():
            yield _area(block)
        case Treemap():
            yield _treemap(block)
        case Graph():
            yield _graph(block)
        case Scatter():
            yield _scatter(block)


def escape(text: str) -> str:
    """Text that Markdown and the HTML in it show as it is."""
    for character in "\\`*_{}[]<>#|~":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def code(text: str) -> str:
    """Text as a code span that nothing in it can end, fit for a table cell."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`" if text else ""


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sh\n{text}\n{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int]) -> str:
    """A table of cells that are Markdown already; the columns `right` are aligned so."""
    lines = [header, ["---:" if index in right else "---" for index in range(len(header))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(figure: Figure) -> Sequence[str]:
    detail = figure.detail
    if figure.capacity and isinstance(figure.value, int | float) and not detail:
        detail = f"{format_percent(figure.value / figure.capacity)} of {format_value(figure.capacity, figure.unit)}"
    return escape(figure.label), escape(format_value(figure.value, figure.unit)), figure.origin, escape(detail)


def _grid(grid: Grid) -> str:
    columns = columns_of(grid)
    rows = list(zip(*(_cells(column) for column in columns), strict=True))
    right = [index for index, column in enumerate(columns) if column.is_number]
    body = table([escape(column.heading) for column in columns], rows, right) if rows else "(no rows)"
    cut = f"{len(rows)} of {grid.total_rows:,} rows. " if len(rows) < grid.total_rows else ""
    return _folded(grid.title, len(rows), body, f"{cut}{grid.note}".strip())


def _cells(column: Column) -> list[str]:
    return [code(text) if column.is_code and text != NOTHING else escape(text) for text in column.texts]


def _folded(title: str, rows: int, body: str, note: str = "") -> str:
    tail = f"\n\n{escape(note)}" if note else ""
    if rows <= LONG:
        return f"**{escape(title)}**\n\n{body}{tail}"
    return f"<details><summary>{html.escape(title, quote=False)} ({rows} rows)</summary>\n\n{body}{tail}\n\n</details>"


def _bars(bars: Bars) -> str:
    rows = [
        (escape(label), *(format_value(values[index], bars.unit) for values in bars.series.values()))
        for index, label in enumerate(bars.labels)
    ]
    header = ["", *(escape(name) for name in bars.series)]
    return _folded(bars.title, len(rows), table(header, rows, range(1, len(header))))


def _area(area: StackedArea) -> str:
    """A timeline in words: its peak by series."""
    if not area.x:
        return f"**{escape(area.title)}**: nothing."
    totals = area.totals() or [0.0] * len(area.x)
    index = area.peak_at(totals)
    at = f"{area.x_label} {area.x[index]}" + (f" (`{area.hover[index]}`)" if area.hover and area.hover[index] else "")
    parts = ", ".join(f"{name} {format_value(values[index], area.unit)}" for name, values in area.series.items())
    limit = f" of {format_value(area.capacity, area.unit)}" if area.capacity else ""
    return f"**{escape(area.title)}**: {format_value(totals[index], area.unit)}{limit} at {at}: {escape(parts)}."


def _treemap(tree: Treemap) -> str:
    totals: dict[str, float] = {}
    for group, value in zip(tree.groups, tree.values, strict=True):
        totals[group] = totals.get(group, 0.0) + value
    everything = sum(totals.values())
    rows = [
        (escape(group), format_value(value, tree.unit), format_percent(value / everything))
        for group, value in sorted(totals.items(), key=lambda item: -item[1])[:ROWS_OF_A_CHART]
    ]
    return _folded(tree.title, len(rows), table(("group", tree.unit, "share"), rows, (1, 2)))


def _graph(graph: Graph) -> str:
    def name(node: str) -> str:
        return code(graph.nodes[node][0].replace("\n", " ")) if node in graph.nodes else code(node)

    lines = [
        f"- {name(start)} → {name(end)}: {escape(label)} {'through memory' if memory else 'inside'}"
        for start, end, label, memory in graph.edges
    ]
    return _folded(graph.title, len(lines), "\n".join(lines))


def _scatter(scatter: Scatter) -> str:
    points = zip(scatter.labels, scatter.x, scatter.y, strict=True)
    rows = [(code(label), f"{x:,.3g}", f"{y:,.3g}") for label, x, y in list(points)[:ROWS_OF_A_CHART]]
    return _folded(scatter.title, len(rows), table(("", scatter.x_label, scatter.y_label), rows, (1, 2)))
