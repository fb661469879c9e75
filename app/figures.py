"""Plotly figures of the chart blocks, as plain dicts.

Colours of text and lines come from the style sheet, so that a figure need not be drawn again when light turns to dark.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.render.palette import UNKNOWN, colour, has_colour
from hlotrace.units import column_scale, end_of, format_amount, format_value

if TYPE_CHECKING:
    from hlotrace.views.blocks import Bars, Scatter, StackedArea, Treemap

Figure = dict[str, Any]

CONFIG: Any = {
    "displayModeBar": False,
    "responsive": True,
    "scrollZoom": False,
    "doubleClick": "reset",
    "showTips": False,
}
"""Of every chart: no toolbar, no logo, no link to anywhere."""

FONT = {"family": "system-ui, sans-serif", "size": 11}


CAPACITY_COLOUR = "#D55E00"
NEAR_CAPACITY = 0.4
"""From this share of the capacity on the axis reaches up to it."""


def text(value: object) -> str:
    """Untrusted text inside a figure: Plotly reads some tags, so none may be left."""
    return str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def axis_title(words: str, standoff: int = 4) -> dict[str, Any]:
    """An axis' title, no larger than its ticks."""
    return {"text": words, "standoff": standoff, "font": FONT}


def packed(values: Sequence[float] | np.ndarray[Any, Any], dtype: str = "f8") -> dict[str, str]:
    """Numbers as Plotly's typed arrays: a tenth of the bytes, and nothing to parse."""
    array = np.asarray(values, dtype=dtype)
    return {"dtype": dtype, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}


def layout(**more: Any) -> dict[str, Any]:
    """What all figures share."""
    shared: dict[str, Any] = {
        "font": FONT,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 16, "t": 8, "b": 36},
        "showlegend": False,
        "hoverlabel": {"font": FONT, "namelength": -1, "align": "left"},
        "dragmode": "zoom",
        "uirevision": "keep",
    }
    return {**shared, **more}


def fill(name: str) -> dict[str, Any]:
    """The fill of a series: its colour, or hatched grey where its name has none."""
    if has_colour(name):
        return {"color": colour(name)}
    return {"color": UNKNOWN, "pattern": {"shape": "/", "size": 5, "solidity": 0.4, "fgcolor": "#555"}}


def bars(block: Bars) -> Figure:
    """Horizontal bars, the first label on top."""
    scale = column_scale([value for values in block.series.values() for value in values], block.unit)
    labels = [text(label) for label in block.labels]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": list(range(len(labels))),
            "x": [value / scale.divisor for value in values],
            "marker": fill(name),
            "customdata": list(block.labels),
            "hovertext": [
                f"{label} · {name}: {format_value(value, block.unit)}"
                for label, value in zip(labels, values, strict=True)
            ],
            "hoverinfo": "text",
        }
        for name, values in block.series.items()
    ]
    return {
        "data": traces,
        "layout": layout(
            barmode="stack" if block.stacked else "group",
            bargap=0.28,
            bargroupgap=0.05,
            margin={"l": 8, "r": 12, "t": 4, "b": 30},
            yaxis={
                "autorange": "reversed",
                "tickmode": "array",
                "tickvals": list(range(len(labels))),
                "ticktext": [text(end_of(label, 30)) for label in block.labels],
                "automargin": True,
                "fixedrange": True,
                "ticks": "",
            },
            xaxis={
                "title": axis_title(scale.suffix),
                "fixedrange": True,
                "rangemode": "tozero",
                "zeroline": False,
            },
            showlegend=len(traces) > 1,
            legend={
                "orientation": "h",
                "x": 1,
                "xanchor": "right",
                "y": 1.0,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
        ),
    }


def stacked_area(block: StackedArea) -> Figure:
    """Areas stacked over positions as steps, the capacity as a line, the marked position as a line across."""
    heights = np.sum([np.asarray(values) for values in block.series.values()], axis=0) if block.series else np.zeros(0)
    highest = float(np.max(heights, initial=0.0))
    near = block.capacity is not None and highest > NEAR_CAPACITY * block.capacity
    scale = column_scale([highest, block.capacity if near else None], block.unit)
    x = np.asarray(block.x)
    total = np.zeros(len(x))
    traces: list[dict[str, Any]] = []
    for name, values in block.series.items():
        total = total + np.asarray(values) / scale.divisor
        traces.append(
            {
                **_steps(x, total),
                "name": name,
                "fill": "tozeroy",
                "fillcolor": fill(name)["color"],
                # A line of the fill's colour: a step narrower than a pixel is seen up to its height.
                "line": {"width": 1.5, "shape": "hv", "color": fill(name)["color"]},
            }
        )
    return {
        # From the top down to the axis: each covers the line of a layer above it that holds nothing there.
        "data": traces[::-1],
        "layout": layout(
            hovermode=False,
            shapes=_lines(block, scale.divisor) if near else [],
            annotations=_marks(block, scale.divisor, near),
            xaxis={
                "title": axis_title(block.x_label),
                "zeroline": False,
                "showspikes": False,
                "showgrid": False,
                "range": [block.x[0], block.x[-1] + 1] if block.x else None,
            },
            yaxis={
                "title": axis_title(scale.suffix, 6),
                "rangemode": "tozero",
                "fixedrange": True,
                "zeroline": False,
                "range": [0, max(1.12 * highest, 1.06 * (block.capacity or 0) if near else 0.0) / scale.divisor or 1.0],
            },
            margin={"l": 64, "r": 16, "t": 18, "b": 36},
        ),
        "scale": {"divisor": scale.divisor, "suffix": scale.suffix},
    }


def _steps(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, Any]:
    """A trace that holds each value until the next: only the positions where it changes, and the last."""
    kept = np.ones(len(x), dtype=bool)
    kept[1:-1] = y[1:-1] != y[:-2]
    # The last value holds for its own position too.
    ends = np.append(x[kept], x[-1] + 1) if len(x) else x
    heights = np.append(y[kept], y[-1]) if len(y) else y
    return {"type": "scatter", "mode": "lines", "x": packed(ends, "i4"), "y": packed(heights), "hoverinfo": "skip"}


def _lines(block: StackedArea, divisor: float) -> list[dict[str, Any]]:
    y = (block.capacity or 0.0) / divisor
    line = {"width": 1.5, "dash": "dash", "color": CAPACITY_COLOUR}
    return [{"type": "line", "name": "capacity", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}]


def _marks(block: StackedArea, divisor: float, near: bool) -> list[dict[str, Any]]:
    """Words at the capacity (at the top where that lies above the axis, and away from the peak) and at the peak."""
    notes: list[dict[str, Any]] = []
    shared = {"showarrow": False, "yanchor": "bottom"}
    if block.capacity is not None:
        words = f"capacity {format_value(block.capacity, block.unit)}{'' if near else ', above this axis'}"
        place = {"yref": "y", "y": block.capacity / divisor} if near else {"yref": "paper", "y": 1}
        font = {"color": CAPACITY_COLOUR, "size": 11}
        is_late = block.peak_x is not None and 2 * block.peak_x > block.x[0] + block.x[-1]
        side = {"x": 0, "xanchor": "left"} if is_late else {"x": 1, "xanchor": "right"}
        notes.append({"xref": "paper", **side, **place, **shared, "text": words, "font": font})
    if block.peak_x is not None:
        notes.append(
            {
                "x": block.peak_x,
                "yref": "paper",
                "y": 1,
                **shared,
                "text": "peak ▾",
                "font": {"size": 11, "color": GROUP_TEXT},
            }
        )
    return notes


GROUP_TEXT, GROUP_FILL = "#808890", "rgba(128,136,144,0.16)"


def ink(fill_colour: str) -> str:
    """Black or white, whichever reads better on a colour."""
    red, green, blue = (int(fill_colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#FFFFFF"


def treemap(block: Treemap) -> Figure:
    """Tiles by area within their groups; each tile's id is its label, its custom data the lines of its hover."""
    groups = list(dict.fromkeys(block.groups))
    totals = dict.fromkeys(groups, 0.0)
    for group, value in zip(block.groups, block.values, strict=True):
        totals[group] += value
    hover = block.hover or ("",) * len(block.labels)
    return {
        "data": [
            {
                "type": "treemap",
                "ids": [*(f"group:{group}" for group in groups), *(f"op:{label}" for label in block.labels)],
                "labels": [*(text(group) for group in groups), *(text(label) for label in block.labels)],
                "parents": [*("" for _ in groups), *(f"group:{group}" for group in block.groups)],
                "values": [*totals.values(), *block.values],
                "branchvalues": "total",
                "customdata": [
                    *([group, format_amount(totals[group], block.unit)] for group in groups),
                    *(
                        [label, format_amount(value, block.unit), *more.split("\n")]
                        for label, value, more in zip(block.labels, block.values, hover, strict=True)
                    ),
                ],
                "hoverinfo": "none",
                "textinfo": "label",
                "textfont": {
                    "size": 11,
                    "color": [*(GROUP_TEXT for _ in groups), *(ink(colour(g)) for g in block.groups)],
                },
                "marker": {
                    "colors": [*(GROUP_FILL for _ in groups), *(colour(group) for group in block.groups)],
                    "line": {"width": 1, "color": "rgba(255,255,255,0.75)"},
                    "pad": {"t": 17, "l": 2, "r": 2, "b": 2},
                },
                "tiling": {"pad": 1, "packing": "squarify"},
                "pathbar": {"visible": False},
                "sort": True,
            }
        ],
        "layout": layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False),
    }


def scatter(block: Scatter) -> Figure:
    """Points under roofs on logarithmic axes; each point's id is its label."""
    roofs = [
        {
            "type": "scatter",
            "mode": "lines+text",
            "name": text(name),
            "text": [*("" for _ in roof[1:]), text(name)],
            "textposition": "top left",
            "textfont": FONT,
            "x": [x for x, _ in roof],
            "y": [y for _, y in roof],
            "line": {"color": UNKNOWN, "width": 1.5},
            "hoverinfo": "name",
        }
        for name, roof in block.roofs.items()
    ]
    hover = block.hover or block.labels
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": list(block.x),
        "y": list(block.y),
        "customdata": list(block.labels),
        "hovertext": [text(words).replace("\n", "<br>") for words in hover],
        "hoverinfo": "text",
        "marker": {"color": [colour(group) for group in block.groups], "size": 9, "opacity": 0.85},
    }
    axis = {"type": "log", "fixedrange": True, "dtick": 1, "exponentformat": "power", "zeroline": False}
    return {
        "data": [*roofs, points],
        "layout": layout(
            xaxis={**axis, "title": axis_title(block.x_label)},
            yaxis={**axis, "title": axis_title(block.y_label)},
        ),
    }
