"""Fusions: all of them as a treemap and a grid; the chosen one with its members as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from dash import Input, Output, State, dcc, html, no_update

from hlotrace.analyses.fusions import Members, joined_sources, members, without_passing
from hlotrace.analyses.modules import records
from hlotrace.app import blocks, figures
from hlotrace.app.chosen import choose, places_of
from hlotrace.app.grids import data_grid, first_columns, row_ids
from hlotrace.app.links import link, switch
from hlotrace.render.palette import colour
from hlotrace.units import format_bytes
from hlotrace.views import fusions as view
from hlotrace.views.blocks import Heading, Note
from hlotrace.views.common import title, with_source

if TYPE_CHECKING:
    import dash
    import pandas as pd
    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles, Module
    from hlotrace.app.state import State as AppState

FIRST = ("fusion", "category", "cycles_total", "internal_bytes", "sources", "launches_saved")
"""The columns that stand first in the grid: it is narrow, and figures are compared before names are read."""

MOST_DRAWN = 250
"""A graph of more members is laid out too slowly and read by nobody."""


def page(module: Module) -> Component:
    """The page's fixed parts: figures, treemap, grid; the chosen fusion comes by a callback."""
    groups = module.fusions
    head = blocks.heading(Heading(title(module.row), view.QUESTION))
    if groups.empty:
        missing = Note("Nothing is fused in this module.", "missing", "hlotrace capture MODEL.py --target v5e")
        return html.Div([head, blocks.note(missing)], className="page")
    areas = [(name, name) for name in view.areas_of(groups)]
    grid = view.fusions_grid(groups, 0)
    columns = first_columns(grid.columns, FIRST)
    left = html.Div(
        [
            html.Div(
                [
                    switch("area", areas, areas[0][0] if areas else "", "Area"),
                    html.Span(id="treemap-title", className="chart-title"),
                ],
                className="bar-line",
            ),
            html.Div(
                dcc.Graph(id="fusions-treemap", figure=empty_figure(), config=figures.CONFIG, style={"height": "100%"}),
                className="treemap-box",
            ),
            html.Div(
                data_grid(
                    "fusions-grid",
                    grid.frame,
                    columns,
                    row_ids(grid.frame, "fusion"),
                    file="fusions.csv",
                    title="Fusions",
                ),
                className="fill",
                title=grid.note,
            ),
        ],
        className="column half",
    )
    right = html.Div(
        [html.Div(id="fusion-head", className="detail-head"), html.Div(id="fusion-detail", className="fill detail")],
        className="column half",
    )
    return html.Div(
        [
            html.Div([head, blocks.headline(view.figures_of(groups, module.row))], className="top"),
            html.Div([left, right], className="columns stretch"),
            dcc.Store(id="fusion-shown"),
        ],
        className="page full fusions",
    )


def empty_figure() -> figures.Figure:
    """What stands in a chart's place until its data is there."""
    return {"data": [], "layout": figures.layout(xaxis={"visible": False}, yaxis={"visible": False})}


def treemap_parts(module: Module, area: str | None) -> tuple[figures.Figure, list[Any]]:
    """The treemap and its title."""
    block = view.treemap(module.fusions, area)
    return figures.treemap(block), [block.title, blocks.origin(block.origin)]


def shown_fusion(module: Module, state: AppState) -> tuple[dict[str, Any], str]:
    """The fusion to show, and why: the chosen one, the one that holds what was chosen, or the costliest."""
    groups = module.fusions
    chosen = choose(module, state.select)
    if chosen is not None and chosen.fusions:
        row = records(groups[groups["fusion"] == chosen.fusions[0]])[0]
        if len(chosen.fusions) == 1:
            return row, "" if str(state.select) == f"op:{row['fusion']}" else "holds what is selected"
        return row, f"the costliest of {len(chosen.fusions):,} fusions that hold what is selected"
    reason = (
        "the costliest; what is selected is in no fusion"
        if chosen is not None
        else "the costliest: choose another in the map or the table"
    )
    return records(groups.head(1))[0], reason


def detail_head(fusion: dict[str, Any], reason: str) -> list[Component]:
    """The name of the fusion that is shown, and why it is this one."""
    return [
        html.H2(link(fusion["fusion"], "Choose this fusion", select=f"op:{fusion['fusion']}")),
        html.Span(f"{fusion['category']}, {fusion['kind'] or 'kind not known'}", className="muted"),
        html.Span(reason, className="reason", title=reason),
    ]


def detail(module: Module, fusion: dict[str, Any]) -> list[Component]:
    """One fusion: figures, its graph, its members, its source lines."""
    name = fusion["fusion"]
    inside, passed = without_passing(members(rows_of_fusion(module, fusion), fusion, module.row["final_stage"]))
    parts: list[Component] = [blocks.headline(view.fusion_figures(fusion)), members_graph(name, inside, passed)]
    if inside.frame is not None:
        grid = view.members_grid(with_source(inside.frame))
        ids = row_ids(grid.frame, "instruction")
        file = blocks.file_name(name)
        made = data_grid("fusion-members", grid.frame, grid.columns, ids, file=file, title="Members")
        parts.append(html.Div(made, className="fill members"))
    sources = fusion["source_lines"] or []
    words = joined_sources(sources) or "not recorded"
    parts.append(html.Div(f"Sources: {words}", className="sources", title="\n".join(sources)))
    return parts


def rows_of_fusion(module: Module, fusion: dict[str, Any]) -> pd.DataFrame:
    """The instructions of a fusion's computation and of the fusions nested in it, and the fusion itself."""
    computations = module.lookup.groups("computation")
    rows, waiting = [module.lookup.groups("instruction").rows(fusion["fusion"])], [fusion["computation"]]
    while waiting:
        rows.append(computations.rows(waiting.pop()))
        inside = module.final.iloc[rows[-1]]
        waiting += [name for called in inside["called"][inside["opcode"] == "fusion"] for name in called]
    return module.final.iloc[np.unique(np.concatenate(rows))]


def members_graph(name: str, inside: Members, passed: int) -> Component:
    """The members as a graph, or why there is none."""
    if len(inside.nodes) > MOST_DRAWN:
        return blocks.note(Note(f"{len(inside.nodes):,} members are too many to draw; the table has them all.", "info"))
    if not inside.nodes:
        return blocks.note(
            Note("The members of this fusion are not among the files.", "missing", "hlotrace capture MODEL.py")
        )
    details = {key: node_details(row, kind) for key, (row, kind) in inside.nodes.items()}
    words = " ".join(filter(None, (view.passed_words(passed) if passed else "", view.nested_words(inside))))
    return blocks.graph(view.members_graph(name, inside), details, words)


def node_details(row: dict[str, Any], kind: str) -> dict[str, str]:
    """What a node's tooltip says, the colour of its category, and what a click on it selects."""
    name = row["operand"] if kind == "input" else row["instruction"]
    lines = [
        f"{name} = {row['opcode']}",
        row["shape"] or "",
        format_bytes(row["bytes"]),
        row["op_name"] or "",
        places_of(row),
    ]
    made = {"title": "\n".join(line for line in lines if line)}
    if kind != "output":
        made["select"] = f"op:{name}"
    if kind == "member" and row["category"]:
        made["colour"] = colour(row["category"])
    return made


def register(app: dash.Dash, bundles: Bundles) -> None:
    """The callbacks of this page."""

    @app.callback(
        Output("fusions-treemap", "figure"),
        Output("treemap-title", "children"),
        Input("area", "data"),
        State("view", "data"),
    )
    def _treemap(area: str | None, view_: dict[str, Any]) -> tuple[figures.Figure, list[Any]]:
        module, state = bundles.at(view_, area=area)
        return module.keep(("treemap", state.area), lambda: treemap_parts(module, state.area))

    @app.callback(
        Output("fusion-head", "children"),
        Output("fusion-detail", "children"),
        Output("fusion-shown", "data"),
        Input("select", "data"),
        State("view", "data"),
        State("fusion-shown", "data"),
    )
    def _detail(select: str | None, view_: dict[str, Any], shown: str | None) -> Any:
        module, state = bundles.at(view_, select=select)
        if module.fusions.empty:
            return no_update, no_update, no_update
        fusion, reason = shown_fusion(module, state)
        head = detail_head(fusion, reason)
        if fusion["fusion"] == shown:
            return head, no_update, no_update
        return head, detail(module, fusion), fusion["fusion"]
