"""Ops: counts before and after optimisation, side by side; choosing a group filters the list of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Input, Output, State, dcc, html, no_update

from hlotrace.analyses import costs
from hlotrace.analyses.op_counts import op_counts
from hlotrace.app import blocks, figures
from hlotrace.app.chosen import matching
from hlotrace.app.grids import data_grid, endless_grid, row_data, unique
from hlotrace.app.links import switch
from hlotrace.app.rows import filtered, ordered
from hlotrace.views import ops
from hlotrace.views.blocks import Heading, ShownColumn
from hlotrace.views.common import title, with_source

if TYPE_CHECKING:
    import dash
    import pandas as pd
    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles, Module
    from hlotrace.app.state import State as AppState

DEFAULT_BY, DEFAULT_STAGE = "category", "after"
DEPTH = 4
FILTERING = ("opcode", "category", "source", "scope")
"""The kinds of selection that narrow the list; an op, a buffer are lit up in it."""

COLUMNS = (
    ShownColumn("instruction", "op", emphasis="code"),
    ShownColumn("opcode", "opcode"),
    ShownColumn("category", "category"),
    ShownColumn("bytes", "bytes", "bytes"),
    ShownColumn("cycles_total", "cycles", "cycles"),
    ShownColumn("flops_total", "FLOPs", "flop", "predicted"),
    ShownColumn("hbm_bytes_total", "HBM bytes", "bytes", "predicted"),
    ShownColumn("execution_count", "runs", "count", "predicted"),
    ShownColumn("shape", "shape", emphasis="code"),
    ShownColumn("computation", "computation", emphasis="code"),
    ShownColumn("source", "source", emphasis="path"),
    ShownColumn("op_name", "op name", emphasis="path"),
)
BEFORE_COLUMNS = tuple(column for column in COLUMNS if column.name not in ("cycles_total",))


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
    stage = switch("stage", [("after", "what runs"), ("before", "before optimisation")], DEFAULT_STAGE, "List")
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
    made = data_grid("ops-counts-grid", grid.frame, grid.columns, ids, file=f"ops-by-{by}.csv", title=grid.title)
    drawn = ops.bars(counts.head(8), by)
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


def listed(module: Module, stage: str | None) -> pd.DataFrame:
    """All instructions of a stage with the columns of the list."""
    frame = module.before if stage == "before" else module.final
    return module.keep(("listed", stage or DEFAULT_STAGE), lambda: with_source(costs.with_totals(frame)))


def columns_of(stage: str | None) -> tuple[ShownColumn, ...]:
    """The columns of the list: before optimisation the compiler has no cycles."""
    return BEFORE_COLUMNS if stage == "before" else COLUMNS


def list_grid(module: Module, stage: str | None) -> Component:
    """The list of instructions, its rows to come."""
    frame = listed(module, stage)
    columns = [column for column in columns_of(stage) if column.unit is None or frame[column.name].notna().any()]
    tools = [
        dcc.Input(id="ops-quick", type="text", placeholder="Filter rows", className="quick", debounce=False),
        html.Button("CSV", id="ops-export", className="tool", title="Save these ops with all columns as CSV"),
        dcc.Download(id="ops-download"),
        dcc.Store(id="ops-refreshed"),
    ]
    return endless_grid(
        "ops-grid", frame, columns, tools, ["Instructions", html.Span(id="ops-shown", className="count")]
    )


def chosen_rows(module: Module, state: AppState, quick: str | None) -> pd.DataFrame:
    """The listed instructions that the selection (where it is a group) and the filter's text leave."""
    frame = listed(module, state.stage)
    if state.select is not None and state.select.kind in FILTERING:
        frame = frame.iloc[matching(module, state.select, state.stage or DEFAULT_STAGE)]
    if quick and quick.strip():
        words = quick.strip().lower()
        found = None
        for name in ("instruction", "opcode", "op_name", "source", "shape"):
            here = frame[name].astype("string").str.lower().str.contains(words, regex=False).fillna(False).astype(bool)
            found = here if found is None else found | here
        frame = frame[found]
    return frame


def rows_response(module: Module, state: AppState, quick: str | None, request: dict[str, Any]) -> dict[str, Any]:
    """The rows of one request of the list: filtered, sorted, cut to the block asked for."""
    frame = ordered(
        filtered(chosen_rows(module, state, quick), request.get("filterModel") or {}), request.get("sortModel") or []
    )
    part = frame.iloc[int(request["startRow"]) : int(request["endRow"])]
    kind = "before" if state.stage == "before" else "op"
    return {
        "rowData": row_data(part, columns_of(state.stage), unique(f"{kind}:{name}" for name in part["instruction"])),
        "rowCount": len(frame),
    }


def filter_words(module: Module, state: AppState) -> str:
    """What the list is narrowed to, in words."""
    whole = listed(module, state.stage)
    if state.select is not None and state.select.kind in FILTERING:
        count = len(chosen_rows(module, state, None))
        return f"{count:,} of {len(whole):,}, of the {state.select.kind} chosen"
    return f"all {len(whole):,}"


def register(app: dash.Dash, bundles: Bundles) -> None:
    """The callbacks of this page."""

    @app.callback(
        Output("ops-bars", "children"), Output("ops-counts", "children"), Input("by", "data"), State("view", "data")
    )
    def _counts(by: str | None, view: dict[str, Any]) -> tuple[Component, Component]:
        module, state = bundles.at(view, by=by)
        return module.keep(("counts parts", state.by), lambda: counts_parts(module, state.by))

    @app.callback(Output("ops-list", "children"), Input("stage", "data"), State("view", "data"))
    def _list(stage: str | None, view: dict[str, Any]) -> Component:
        module, state = bundles.at(view, stage=stage)
        return module.keep(("list grid", state.stage), lambda: list_grid(module, state.stage))

    @app.callback(
        Output("ops-grid", "getRowsResponse"),
        Input("ops-grid", "getRowsRequest"),
        State("view", "data"),
        State("stage", "data"),
        State("select", "data"),
        State("ops-quick", "value"),
        prevent_initial_call=True,
    )
    def _rows(
        request: dict[str, Any] | None, view: dict[str, Any], stage: str | None, select: str | None, quick: str | None
    ) -> Any:
        if request is None:
            return no_update
        module, state = bundles.at(view, stage=stage, select=select)
        return rows_response(module, state, quick, request)

    @app.callback(
        Output("ops-filter", "children"), Input("stage", "data"), Input("select", "data"), State("view", "data")
    )
    def _words(stage: str | None, select: str | None, view: dict[str, Any]) -> str:
        module, state = bundles.at(view, stage=stage, select=select)
        return filter_words(module, state)

    @app.callback(
        Output("ops-download", "data"),
        Input("ops-export", "n_clicks"),
        State("view", "data"),
        State("stage", "data"),
        State("select", "data"),
        State("ops-quick", "value"),
        State("ops-grid", "filterModel"),
        prevent_initial_call=True,
    )
    def _export(
        clicks: int | None,
        view: dict[str, Any],
        stage: str | None,
        select: str | None,
        quick: str | None,
        model: dict[str, Any] | None,
    ) -> Any:
        if not clicks:
            return no_update
        module, state = bundles.at(view, stage=stage, select=select)
        frame = filtered(chosen_rows(module, state, quick), model or {})
        return {
            "content": frame.to_csv(index=False),
            "filename": f"instructions-{state.stage or DEFAULT_STAGE}.csv",
            "type": "text/csv",
            "base64": False,
        }

    app.clientside_callback(
        ClientsideFunction("hlotrace", "refresh_ops"),
        Output("ops-refreshed", "data"),
        Input("select", "data"),
        Input("ops-quick", "value"),
        prevent_initial_call=True,
    )
