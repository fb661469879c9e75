"""The memory page's chart: bytes alive over the schedule and, under it, the map of addresses against the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from dash import html

from hlotrace.app import figures
from hlotrace.app.words import meaning
from hlotrace.render.palette import colour
from hlotrace.units import column_scale, format_bytes
from hlotrace.views.memory import roles_of

if TYPE_CHECKING:
    import pandas as pd
    from dash.development.base_component import Component
    from numpy.typing import NDArray

    from hlotrace.app.data import Module
    from hlotrace.views.blocks import StackedArea

MOST_RECTANGLES = 1000
"""The map draws the largest values: the rest is thinner than a pixel and costs most of the drawing time."""

OUTLINED_SHARE = 0.012
"""Rectangles lower than this share of the map have no outline: it would be all that is seen of them."""

TIMELINE_SHARE = (0.46, 1.0)
MAP_SHARE = (0.0, 0.36)


def figure(module: Module, block: StackedArea, space: int) -> tuple[figures.Figure, dict[str, Any]]:
    """The figure, and what the pointer reads from it: names and bytes by position, the map's rectangles."""
    made = figures.stacked_area(block)
    rectangles = map_of(module.buffers, space, block.x[-1])
    drawn = rectangles.head(MOST_RECTANGLES)
    scale = column_scale([float(drawn["high"].max()) if len(drawn) else 0.0], "bytes")
    made["data"] += map_traces(drawn, scale.divisor)
    layout = made["layout"]
    left_out = len(rectangles) - len(drawn)
    note = f"; the {len(drawn):,} largest of {len(rectangles):,} values" if left_out else ""
    layout["xaxis"] |= {"anchor": "y2", "domain": [0, 1], "title": figures.axis_title(f"{block.x_label}{note}")}
    layout["yaxis"] |= {"domain": list(TIMELINE_SHARE)}
    layout["yaxis2"] = {
        "domain": list(MAP_SHARE),
        "anchor": "x",
        "title": figures.axis_title(f"address, {scale.suffix}", 6),
        "fixedrange": True,
        "zeroline": False,
        "range": [0, (float(drawn["high"].max()) / scale.divisor if len(drawn) else 1.0)],
    }
    layout |= {"hovermode": False, "margin": {"l": 64, "r": 16, "t": 34, "b": 36}}
    return made, {**reading(block, drawn), "divisor": made["scale"]["divisor"]}


def map_of(buffers: pd.DataFrame, space: int, end: int) -> pd.DataFrame:
    """The values of a memory space as rectangles, the largest first.

    Args:
        end: the schedule's last position: what outlives it ends one later in XLA's live ranges, at the program's end.

    Returns:
        Columns value, role, bytes, first, last (schedule positions), live_to (as XLA gives it), low, high (addresses,
        the allocations of the space laid end to end, as only offsets within an allocation are known).
    """
    rows = buffers[(buffers["memory_space"] == space).fillna(False).astype(bool)]
    rows = rows.dropna(subset=["allocation", "bytes", "live_from", "live_to"])
    sizes = rows.drop_duplicates("allocation").set_index("allocation")["allocation_bytes"].fillna(0).sort_index()
    bases = sizes.cumsum() - sizes
    low = rows["allocation"].map(bases).astype("float64") + rows["offset_bytes"].fillna(0).astype("float64")
    made = rows[["value", "bytes"]].assign(
        role=roles_of(rows),
        first=rows["live_from"].astype("int64"),
        last=rows["live_to"].astype("int64").clip(upper=end),
        live_to=rows["live_to"].astype("int64"),
        low=low,
        high=low + rows["bytes"].astype("float64"),
    )
    return made.sort_values("bytes", ascending=False, kind="stable").reset_index(drop=True)


def map_traces(rectangles: pd.DataFrame, divisor: float) -> list[dict[str, Any]]:
    """The rectangles as closed paths: a trace a role, and one more for those too thin to have an outline."""
    top = float(rectangles["high"].max()) if len(rectangles) else 0.0
    thin = (rectangles["high"] - rectangles["low"]) < OUTLINED_SHARE * top
    return [
        _paths(str(role), rows, divisor, outlined=not is_thin)
        for (role, is_thin), rows in rectangles.groupby([rectangles["role"], thin], sort=False)
    ]


def _paths(role: str, rows: pd.DataFrame, divisor: float, *, outlined: bool) -> dict[str, Any]:
    first, last = rows["first"].to_numpy(float), rows["last"].to_numpy(float) + 1
    low, high = rows["low"].to_numpy(float) / divisor, rows["high"].to_numpy(float) / divisor
    gap = np.full(len(rows), np.nan)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": role,
        "xaxis": "x",
        "yaxis": "y2",
        "x": figures.packed(np.column_stack([first, last, last, first, first, gap]).ravel(), "f4"),
        "y": figures.packed(np.column_stack([low, low, high, high, low, gap]).ravel(), "f4"),
        "fill": "toself",
        "fillcolor": figures.fill(role)["color"],
        "line": {"width": 0.6 if outlined else 0, "color": "rgba(0,0,0,0.45)", "simplify": False},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def reading(block: StackedArea, drawn: pd.DataFrame) -> dict[str, Any]:
    """What the browser needs to say what is under the pointer."""
    total: NDArray[np.float64] = np.sum([np.asarray(values) for values in block.series.values()], axis=0)
    return {
        "x": list(block.x),
        "names": list(block.hover),
        "total": [int(value) for value in np.atleast_1d(total)] if block.series else [0] * len(block.x),
        "peak": block.peak_x,
        "rectangles": {
            "value": drawn["value"].tolist(),
            "role": drawn["role"].tolist(),
            "size": [format_bytes(size) for size in drawn["bytes"].tolist()],
            **{name: drawn[name].astype("int64").tolist() for name in ("first", "last", "live_to", "low", "high")},
        },
    }


def legend(block: StackedArea) -> list[Component]:
    """The roles with their colours, in the order they stack."""
    return [
        html.Span(
            [html.Span(className="swatch", style={"backgroundColor": colour(name)}), name],
            className="legend-item",
            title=meaning(name),
        )
        for name in block.series
    ]
