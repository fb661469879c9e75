"""Charts in characters: bars, an area over the schedule, a treemap and a graph as lists."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotrace.units import column_scale, format_value

if TYPE_CHECKING:
    from hlotrace.views.blocks import Bars, Graph, Scatter, StackedArea, Treemap

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"
AREA_HEIGHT = 4
AREA_WIDTH = 80
TREEMAP_GROUPS = 8
TREEMAP_ITEMS = 4
SCATTER_POINTS = 12


def bar(share: float, width: int) -> str:
    """A bar of `width` columns filled to `share`, in eighths of a column."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def meter(share: float, width: int = 12) -> str:
    """A bar whose empty part shows too."""
    full = round(max(0.0, min(share, 1.0)) * width)
    return "█" * full + "░" * (width - full)


def _title(title: str, suffix: str) -> Text:
    return Text.assemble((title, "bold cyan"), (f"  {suffix}" if suffix else "", "dim"))


def draw_bars(block: Bars, width: int) -> RenderableType:
    """A line a label: each series' number and its bar, all to one scale."""
    scale = column_scale((value for values in block.series.values() for value in values), block.unit)
    largest = max((value for values in block.series.values() for value in values), default=0.0)
    label_width = min(max(map(len, block.labels), default=0), width // 3)
    length = max(4, min(24, (width - label_width) // max(len(block.series), 1) - 14))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=label_width, no_wrap=True, overflow="ellipsis")
    headers = [""]
    for name in block.series:
        table.add_column(justify="right", no_wrap=True)
        table.add_column(width=length, no_wrap=True, style="cyan")
        headers += [Text(name, style="dim"), ""]  # type: ignore[list-item]
    table.add_row(*headers)
    for row, label in enumerate(block.labels):
        cells = [label]
        for values in block.series.values():
            cells += [scale.format(values[row]), bar(values[row] / largest if largest else 0.0, length)]
        table.add_row(*cells)
    return Group(_title(block.title, scale.words(block.unit)), table)


def draw_area(block: StackedArea, width: int) -> RenderableType:
    """The sum of all series over x, its peak marked, and what the peak is made of."""
    totals = block.totals()
    if not totals:
        return Group(_title(block.title, ""), Text("nothing to show", style="dim"))
    largest = max(totals)
    label = format_value(largest, block.unit)
    columns = max(10, min(width - len(label) - 1, AREA_WIDTH))
    binned = _binned(totals, columns)
    parts: list[RenderableType] = [_title(block.title, "")]
    for row in range(AREA_HEIGHT - 1, -1, -1):
        fill = (8 * AREA_HEIGHT * value / largest - 8 * row if largest else 0.0 for value in binned)
        line = "".join(_LEVELS[max(0, min(8, round(level)))] for level in fill)
        margin = label if row == AREA_HEIGHT - 1 else "0" if row == 0 else ""
        parts.append(Text.assemble((f"{margin:>{len(label)}} ", "dim"), (line, "cyan")))
    parts.append(Text(" " * (len(label) + 1) + _axis(block, columns), style="dim"))
    parts.append(Text(_at_peak(block, totals)))
    return Group(*parts)


def _binned(values: list[float], columns: int) -> list[float]:
    """The largest of each of `columns` equal stretches: a peak is never smoothed away."""
    edges = [column * len(values) // columns for column in range(columns + 1)]
    return [max(values[left : max(right, left + 1)]) for left, right in pairwise(edges)]


def _axis(block: StackedArea, columns: int) -> str:
    first, last = str(block.x[0]), f"{block.x[-1]} {block.x_label}"
    line = list(first + last.rjust(max(columns - len(first), len(last) + 1)))
    if block.peak_x is not None and block.peak_x in block.x:
        at = block.x.index(block.peak_x) * columns // len(block.x)
        if at < len(line) and line[at] == " ":
            line[at] = "▲"
    return "".join(line)


def _at_peak(block: StackedArea, totals: list[float]) -> str:
    at = block.peak_at(totals)
    parts = sorted(((values[at], name) for name, values in block.series.items() if values[at]), reverse=True)
    made_of = ", ".join(f"{name} {format_value(value, block.unit)}" for value, name in parts)
    where = f" {block.hover[at]}" if at < len(block.hover) and block.hover[at] else ""
    capacity = f" of {format_value(block.capacity, block.unit)}" if block.capacity else ""
    return f"Peak at {block.x[at]}{where}: {format_value(totals[at], block.unit)}{capacity} ({made_of})"


def draw_treemap(block: Treemap, width: int) -> RenderableType:
    """The largest groups, and under each its largest members."""
    groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for label, group, value in zip(block.labels, block.groups, block.values, strict=True):
        groups[group].append((value, label))
    ranked = sorted(groups.items(), key=lambda item: -sum(value for value, _ in item[1]))
    scale = column_scale(block.values, block.unit)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=width - 16)
    table.add_column(justify="right", no_wrap=True)
    for group, members in ranked[:TREEMAP_GROUPS]:
        table.add_row(Text(group, style="bold"), scale.format(sum(value for value, _ in members)))
        members.sort(reverse=True)
        for value, label in members[:TREEMAP_ITEMS]:
            table.add_row(f"  {label}", scale.format(value))
        rest = members[TREEMAP_ITEMS:]
        if rest:
            table.add_row(Text(f"  {len(rest):,} more", style="dim"), scale.format(sum(value for value, _ in rest)))
    if len(ranked) > TREEMAP_GROUPS:
        rest = [member for _, members in ranked[TREEMAP_GROUPS:] for member in members]
        label = f"{len(ranked) - TREEMAP_GROUPS:,} more groups"
        table.add_row(Text(label, style="dim"), scale.format(sum(value for value, _ in rest)))
    return Group(_title(block.title, scale.words(block.unit)), table)


def draw_graph(block: Graph) -> RenderableType:
    """Each node with what flows into it, and whether that goes through memory."""
    incoming: dict[str, list[str]] = defaultdict(list)
    for source, target, label, in_memory in block.edges:
        how = "through memory" if in_memory else "kept inside"
        incoming[target].append(f"  ← {_node_name(block, source)}  {label}  {how}")
    lines: list[RenderableType] = [_title(block.title, "")]
    for node, (label, kind) in block.nodes.items():
        if kind == "input" and not incoming[node]:
            continue
        detail = label.split("\n")[1:] if kind != "member" else label.split("\n")
        lines.append(Text.assemble(_node_name(block, node), ("  " + "  ".join(detail), "dim")))
        lines += [Text(line, style="dim") for line in incoming[node]]
    return Group(*lines)


def _node_name(block: Graph, node: str) -> str:
    """A member by its own name; what comes in and goes out by the first line of its label."""
    label, kind = block.nodes.get(node, (node, "member"))
    return node if kind == "member" else label.split("\n")[0]


def draw_scatter(block: Scatter) -> RenderableType:
    """The points as a list, those furthest up first."""
    points = sorted(zip(block.y, block.x, block.labels, strict=True), reverse=True)[:SCATTER_POINTS]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", Text(block.x_label, style="dim"), Text(block.y_label, style="dim"))
    for y, x, label in points:
        table.add_row(label, f"{x:,.3g}", f"{y:,.3g}")
    return Group(_title(block.title, f"{len(block.labels)} points"), table)
