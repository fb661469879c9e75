"""A report as one HTML file: nothing is fetched, tables read without scripts, charts are inline SVG."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from hlotrace.render import svg
from hlotrace.render.cells import Column, columns_of
from hlotrace.render.palette import colour, has_colour
from hlotrace.render.svg_graph import graph
from hlotrace.render.svg_scatter import scatter
from hlotrace.render.svg_treemap import treemap
from hlotrace.units import column_scale, format_percent, format_value, is_missing
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
    import jinja2

    from hlotrace.render.report import Report

LONG_TEXT = 24
"""Text of more characters than this keeps to two lines; the whole stands in its tooltip."""

ORIGINS = {
    "measured": "measured: by a clock or a counter",
    "compiler": "compiler: the compiler's own figure or estimate",
    "predicted": "predicted: by our model",
}


def render_report(report: Report) -> str:
    """The page, whole: style and script inside, under a policy that lets nothing else in."""
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html.j2").render(
        report=report,
        drawn=[[Markup(draw(block)) for block in section.blocks] for section in report.sections],
        style=Markup(_asset("report.css")),
        script=Markup(script),
        hatches=Markup(svg.hatches()),
        digest=digest,
        origins=ORIGINS,
    )  # fmt: skip


def draw(block: Block) -> str:
    """One block as HTML; every text in it is escaped."""
    match block:
        case Heading():
            return _filled("heading", block)
        case Note():
            return _filled("note", block)
        case Figures():
            return _filled("figures", [_figure(item) for item in block.items])
        case Grid():
            return _filled("grid", block, [_Head(column) for column in columns_of(block)], _rows(block))
        case Bars():
            values = [value for series in block.series.values() for value in series]
            unit = _unit(values, block.unit)
            title = f"{block.title} ({unit})" if unit else block.title
            return _chart(title, svg.bars(block), block.origin, legend=list(block.series))
        case StackedArea():
            note = svg.capacity_in_words(block)
            return _chart(block.title, svg.stacked_area(block), block.origin, note, list(block.series))
        case Treemap():
            unit = _unit(block.values, block.unit) or block.unit
            return _chart(block.title, treemap(block), block.origin, f"Area: {unit}")
        case Graph():
            return _chart(block.title, graph(block), "compiler", _GRAPH_NOTE)
        case Scatter():
            note = f"{block.y_label} over {block.x_label}, both logarithmic."
            return _chart(block.title, scatter(block), block.origin, note, list(dict.fromkeys(block.groups)))


def _unit(values: Iterable[float], unit: str) -> str:
    return column_scale(values, unit).words(unit)


_GRAPH_NOTE = "Strong edges go through memory; thin ones stay inside the fusion. On them: the bytes of the value."


def _filled(macro: str, *values: object) -> str:
    return str(getattr(_environment().get_template("blocks.html.j2").module, macro)(*values))


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def _asset(name: str) -> str:
    return (files("hlotrace.render") / "assets" / name).read_text(encoding="utf-8")


def _figure(figure: Figure) -> dict[str, Any]:
    known = isinstance(figure.value, int | float) and not is_missing(figure.value)
    value = format_value(figure.value, figure.unit)
    shown = {"figure": figure, "value": value, "known": known, "share": None, "part": 0.0}
    if known and figure.capacity:
        share = float(figure.value or 0) / figure.capacity
        shown |= {
            "share": f"{format_percent(share)} of {format_value(figure.capacity, figure.unit)}",
            "part": share,
        }
    return shown


class _Head:
    """A column's heading and classes for the template."""

    def __init__(self, column: Column) -> None:
        self.text = column.heading
        self.origin = column.shown.origin if column.is_number else ""
        self.number = column.is_number


def _rows(grid: Grid) -> list[list[Markup]]:
    return list(zip(*(list(_cells(column)) for column in columns_of(grid)), strict=True)) if grid.columns else []  # type: ignore[arg-type]


def _cells(column: Column) -> Iterator[Markup]:
    """The `<td>` of each row; a number carries its value for sorting, a path keeps its end in sight."""
    for index, text in enumerate(column.texts):
        value = column.values[index]
        if column.is_number:
            sort = "" if value is None else f' data-v="{value}"'
            bar = _bar(column, index)
            yield Markup(f'<td class="n{" b" if column.parts else ""}"{sort}>{Markup.escape(text)}{bar}</td>')
        elif column.shown.emphasis == "path":
            detail = column.details[index]
            yield Markup('<td class="p"><span title="{}"><bdi>{}</bdi></span></td>').format(detail, text)
        elif column.shown.emphasis == "code" and ", " in text:
            yield Markup('<td class="c t"><span title="{0}">{0}</span></td>').format(text)
        elif column.is_code:
            yield Markup('<td class="c"><span title="{0}">{0}</span></td>').format(text)
        elif len(text) > LONG_TEXT:
            yield Markup('<td class="t"><span title="{0}">{0}</span></td>').format(text)
        else:
            yield Markup('<td class="w">{}</td>').format(text)


def _bar(column: Column, index: int) -> str:
    if not column.parts:
        return ""
    return f'<i class="{column.shown.origin}" style="width:{svg.number(100 * column.parts[index])}%"></i>'


def _chart(title: str, picture: str, origin: str, note: str = "", legend: list[str] | None = None) -> str:
    if not picture:
        return ""
    entries = [{"name": name, "colour": colour(name), "known": has_colour(name)} for name in legend or []]
    return _filled("chart", title, Markup(picture), origin, note, entries)
