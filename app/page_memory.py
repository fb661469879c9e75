"""Memory: what is alive over the schedule, the map of addresses under it, and what is alive at a position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Input, Output, State, dcc, html, no_update

from hlotrace.analyses import alive as analysis
from hlotrace.app import blocks, figures, memory_figure
from hlotrace.app.grids import data_grid, row_ids
from hlotrace.app.links import link, switch
from hlotrace.app.wiring import in_browser
from hlotrace.units import format_bytes
from hlotrace.views import memory as view
from hlotrace.views.blocks import Heading
from hlotrace.views.common import title

if TYPE_CHECKING:
    import dash
    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles, Module
    from hlotrace.app.state import State as AppState


def page(module: Module) -> Component:
    """The page's fixed parts; chart and list come by callbacks."""
    head = blocks.heading(Heading(title(module.row), view.QUESTION))
    spaces = module.spaces
    if not spaces:
        parts = [
            head,
            blocks.headline(view.totals(module.row, None, view.main_name(module.row))),
            blocks.note(view.missing(module.row)),
        ]
        parts += [
            blocks.grid(
                view.allocations_grid(module.buffers, space, 0, view.buffers_origin(module.row)), f"allocations-{space}"
            )
            for space in analysis.spaces(module.buffers)
        ]
        return html.Div(parts, className="page")
    choices = [(str(number), f"{name} ({number})") for number, name in spaces.items()]
    chart = dcc.Graph(
        id="memory-chart",
        figure={"data": [], "layout": figures.layout()},
        config=figures.CONFIG,
        className="chart",
        style={"height": "100%"},
    )
    legend = html.Div(id="memory-legend", className="legend")
    return html.Div(
        [
            html.Div([head, html.Div(id="memory-figures", className="figures-row")], className="top"),
            html.Div([switch("space", choices, str(min(spaces)), "Memory space"), legend], className="bar-line apart"),
            html.Div([html.Div(id="memory-readout", className="readout"), chart], className="memory-chart"),
            html.Div(id="memory-alive", className="fill"),
            dcc.Store(id="memory-positions"),
            dcc.Store(id="memory-marked"),
        ],
        className="page full memory",
    )


def space_of(module: Module, state: AppState) -> int | None:
    """The memory space to show: the chosen one where this module has it, else the main memory."""
    spaces = module.spaces
    return state.space if state.space in spaces else min(spaces, default=None)


def chart_parts(module: Module, state: AppState) -> tuple[figures.Figure, dict[str, Any], Component, list[Component]]:
    """The figure, what the pointer reads from it, the headline, the legend."""
    space = space_of(module, state)
    assert space is not None
    peak = analysis.position(module.timeline, space)
    assert peak is not None
    capacity = module.row["hbm_capacity_bytes"] if space == 0 else None
    origin = view.alive_origin(module.row)
    block = view.timeline_area(module.timeline, space, module.spaces[space], peak.index, capacity, origin)
    figure, positions = memory_figure.figure(module, block, space)
    compiled = view.compiler_peak(module.tables.manifest, module.row)
    headline = blocks.headline(view.totals(module.row, peak, module.spaces[space], space, module.buffers, compiled))
    return figure, positions, headline, memory_figure.legend(block)


def alive_parts(module: Module, state: AppState) -> Component:
    """What is alive at the position asked for, else at the peak."""
    space = space_of(module, state)
    assert space is not None
    where = analysis.position(module.timeline, space, state.at)
    moved = ""
    if where is None and state.at is not None:
        where, moved = nearest(module, space, state.at), f"position {state.at} has no entry here; the nearest: "
    assert where is not None
    peak = analysis.position(module.timeline, space)
    at_peak = peak is not None and where.index == peak.index
    rows = analysis.alive(module.buffers, space, where.index)
    moment = "at the peak" if at_peak else f"at position {where.index}"
    grid = view.alive_grid(rows, moment, 0, view.buffers_origin(module.row))
    words: list[Any] = [
        f"{moved}{'Alive at the peak, ' if at_peak else 'Alive at '}position {where.index}",
        html.Span(f"{format_bytes(where.live_bytes)} in {module.spaces[space]}", className="count"),
    ]
    if where.instruction:
        words.append(link(where.instruction, "Choose this instruction", select=f"op:{where.instruction}"))
    if not at_peak and peak is not None:
        words.append(link("go to the peak", f"position {peak.index}", at=None))
    if grid.note:
        words.append(html.Span(grid.note, className="muted"))
    return data_grid(
        "memory-grid",
        grid.frame,
        grid.columns,
        row_ids(grid.frame, "buffer"),
        file=f"alive-at-{where.index}.csv",
        title=words,
    )


def nearest(module: Module, space: int, at: int) -> analysis.Position | None:
    """The timeline's position closest to one that it does not have."""
    known = module.timeline.loc[module.timeline["memory_space"] == space, "schedule_index"].dropna()
    if known.empty:
        return None
    distances = (known - at).abs().to_numpy(dtype="int64")
    return analysis.position(module.timeline, space, int(known.iloc[int(distances.argmin())]))


def register(app: dash.Dash, bundles: Bundles) -> None:
    """The callbacks of this page."""

    @app.callback(
        Output("memory-chart", "figure"),
        Output("memory-positions", "data"),
        Output("memory-figures", "children"),
        Output("memory-legend", "children"),
        Input("space", "data"),
        State("view", "data"),
    )
    def _chart(space: str | None, view_: dict[str, Any]) -> Any:
        module, state = bundles.at(view_, space=space)
        if not module.spaces:
            return (no_update,) * 4
        return module.keep(("memory chart", state.space), lambda: chart_parts(module, state))

    @app.callback(
        Output("memory-alive", "children"), Input("space", "data"), Input("at", "data"), State("view", "data")
    )
    def _alive(space: str | None, at: str | None, view_: dict[str, Any]) -> Any:
        module, state = bundles.at(view_, space=space, at=at)
        return alive_parts(module, state) if module.spaces else no_update

    in_browser(
        app,
        "mark_memory",
        Output("memory-marked", "data"),
        Input("memory-positions", "data"),
        Input("at", "data"),
        Input("chosen", "data"),
        at_once=True,
    )
