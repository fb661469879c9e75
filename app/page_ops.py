"""Ops: counts before and after optimisation, side by side; choosing a group filters the list of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Input, Output, State, dcc, html

from hlotrace.analyses.op_counts import op_counts
from hlotrace.app import blocks, figures, ops_list
from hlotrace.app.grids import data_grid, first_columns, unique
from hlotrace.app.links import switch
from hlotrace.views import ops
from hlotrace.views.blocks import Bars, Heading
from hlotrace.views.common import title

if TYPE_CHECKING:
    import dash
    import pandas as pd
    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles, Module

DEFAULT_BY = "category"
DEPTH = 4
"""Levels of a named scope that make one group."""

MOST_BARS = 8

FIRST = ("after", "launches_after", "cycles_total", "flops_total")
"""The figures that stand first in the table of counts: it is narrow, and what runs matters more than what was."""


def page(module: Module) -> Component:
    """The page's fixed parts; counts and list come by callbacks."""
    counts = counts_of(module, DEFAULT_BY)
    notes = ops.missing(module.row, module.final)
    by = switch(
        "by",
        [("category", "category"), ("opcode", "opcode"), ("source", "source line"), ("scope", "scope")],
        DEFAULT_BY,
        "Count by",
    )
    stage = switch("stage", [("after", "what runs"), ("before", "before optimisation")], ops_list.DEFAULT_STAGE, "List")
    left = html.Div(
        [by, html.Div(id="ops-bars", className="ops-bars"), html.Div(id="ops-counts", className="fill")],
        className="column narrow",
    )
    right = html.Div(
        [
            html.Div([stage, html.Div(id="ops-filter", className="filter-words")], className="bar-line"),
            html.Div(id="ops-list", className="fill"),
        ],
        className="column wide",
    )
    return html.Div(
        [
            html.Div(
                [
                    blocks.heading(Heading(title(module.row), ops.QUESTION)),
                    blocks.headline(ops.figures_of(module.tables, module.row, counts)),
                ],
                className="top",
            ),
            *blocks.draw_all(notes, "ops-missing"),
            html.Div([left, right], className="columns stretch"),
        ],
        className="page full ops",
    )


def counts_parts(module: Module, by: str | None) -> tuple[Component, Component]:
    """Bars and grid of the counts in groups."""
    by = by or DEFAULT_BY
    counts = counts_of(module, by)
    grid = ops.counts_grid(counts, by, 0)
    ids = unique(f"{by}:{name}" if isinstance(name, str) else "none" for name in counts[by].tolist())
    columns = first_columns(grid.columns, (by, *FIRST))
    made = data_grid("ops-counts-grid", grid.frame, columns, ids, file=f"ops-by-{by}.csv", title=grid.title)
    drawn = [block for block in ops.bars(counts.head(MOST_BARS), by) if isinstance(block, Bars)]
    bars: Component = html.Div("No counts to draw", className="nothing")
    if drawn:
        chart = dcc.Graph(
            id="ops-bars-chart",
            figure=figures.bars(drawn[0]),
            config=figures.CONFIG,
            className="chart",
            style={"height": "100%"},
        )
        bars = html.Div(chart, className="chart-box")
    return bars, made


def counts_of(module: Module, by: str) -> pd.DataFrame:
    """Counts in groups before and after optimisation."""

    def make() -> pd.DataFrame:
        after = module.row["final_stage"]
        return op_counts(module.instructions, module.computations, after=after, by=by, depth=DEPTH)

    return module.keep(("counts", by), make)


def register(app: dash.Dash, bundles: Bundles) -> None:
    """The callbacks of this page."""

    @app.callback(
        Output("ops-bars", "children"), Output("ops-counts", "children"), Input("by", "data"), State("view", "data")
    )
    def _counts(by: str | None, view: dict[str, Any]) -> tuple[Component, Component]:
        module, state = bundles.at(view, by=by)
        return module.keep(("counts parts", state.by), lambda: counts_parts(module, state.by))

    ops_list.register(app, bundles)
