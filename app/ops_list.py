"""The list of instructions on the page Ops: rows handed out as they are scrolled to, filtered and sorted here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from dash import Input, Output, State, dcc, html, no_update

from hlotrace.analyses import costs
from hlotrace.app.chosen import matching
from hlotrace.app.grids import endless_grid, row_data, unique
from hlotrace.app.rows import filtered, ordered
from hlotrace.app.selection_bar import KIND_WORDS
from hlotrace.app.wiring import in_browser
from hlotrace.views.blocks import ShownColumn
from hlotrace.views.common import with_source

if TYPE_CHECKING:
    import dash
    import pandas as pd
    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles, Module
    from hlotrace.app.state import SelectionKind
    from hlotrace.app.state import State as AppState

DEFAULT_STAGE = "after"
FILTERING = ("opcode", "category", "source", "scope")
"""The kinds of selection that narrow the list; an op, a buffer are lit up in it."""

SEARCHED = ("instruction", "opcode", "op_name", "source", "shape")
"""The columns that the filter's text is looked for in."""

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


def listed(module: Module, stage: str | None) -> pd.DataFrame:
    """All instructions of a stage with the columns of the list."""
    frame = module.before if stage == "before" else module.final
    return module.keep(("listed", stage or DEFAULT_STAGE), lambda: with_source(costs.with_totals(frame)))


def columns_of(stage: str | None) -> tuple[ShownColumn, ...]:
    """The columns of the list: before optimisation the compiler has no cycles."""
    return BEFORE_COLUMNS if stage == "before" else COLUMNS


def kind_of(stage: str | None) -> SelectionKind:
    """The kind of selection that a row of the list makes."""
    return "before" if stage == "before" else "op"


def list_grid(module: Module, stage: str | None) -> Component:
    """The list of instructions, its rows to come."""
    frame = listed(module, stage)
    columns = [column for column in columns_of(stage) if column.unit is None or frame[column.name].notna().any()]
    tools = [
        dcc.Input(id="ops-quick", type="text", placeholder="Filter rows", className="quick", debounce=False),
        html.Button("CSV", id="ops-export", className="tool", title="Save these ops with all columns as CSV"),
        dcc.Download(id="ops-download"),
        *(dcc.Store(id=f"ops-{name}") for name in ("refreshed", "narrowed", "place", "scrolled")),
    ]
    first = next((column.name for column in columns if column.name in ("cycles_total", "flops_total")), None)
    return endless_grid("ops-grid", frame, columns, first, tools, "Instructions")


def narrowing(state: AppState, quick: str | None) -> str:
    """What narrows the list, as assets/routes.js writes it too: the chosen group and the filter's text."""
    group = state.select if state.select is not None and state.select.kind in FILTERING else ""
    return f"{group}\n{quick or ''}"


def chosen_rows(module: Module, state: AppState, quick: str | None) -> pd.DataFrame:
    """The listed instructions that the selection (where it is a group) and the filter's text leave."""
    frame = listed(module, state.stage)
    if state.select is not None and state.select.kind in FILTERING:
        frame = frame.iloc[matching(module, state.select, state.stage or DEFAULT_STAGE)]
    if quick and quick.strip():
        words = quick.strip().lower()
        found = np.zeros(len(frame), dtype=bool)
        for name in SEARCHED:
            here = frame[name].astype("string").str.lower().str.contains(words, regex=False)
            found |= here.fillna(False).to_numpy(dtype=bool)
        frame = frame.loc[found]
    return frame


def arranged(module: Module, state: AppState, quick: str | None, request: dict[str, Any]) -> pd.DataFrame:
    """The rows that are left, in the order of a request's filters and sorting."""
    left = filtered(chosen_rows(module, state, quick), request.get("filterModel") or {})
    return ordered(left, request.get("sortModel") or [])


def rows_response(module: Module, state: AppState, quick: str | None, request: dict[str, Any]) -> dict[str, Any]:
    """The rows of one request of the list: filtered, sorted, cut to the block asked for."""
    frame = arranged(module, state, quick, request)
    part = frame.iloc[int(request["startRow"]) : int(request["endRow"])]
    kind = kind_of(state.stage)
    ids = unique(f"{kind}:{name}" for name in part["instruction"])
    return {"rowData": row_data(part, columns_of(state.stage), ids), "rowCount": len(frame)}


def place_of(module: Module, state: AppState, quick: str | None, request: dict[str, Any]) -> int | None:
    """Where in the list, as a request has it sorted and filtered, the chosen op stands; None where it does not."""
    if state.select is None or state.select.kind != kind_of(state.stage):
        return None
    frame = arranged(module, state, quick, request)
    found = np.flatnonzero((frame["instruction"] == state.select.name).fillna(False).to_numpy(dtype=bool))
    return int(found[0]) if len(found) else None


def filter_words(module: Module, state: AppState) -> str:
    """What the list is narrowed to, in words."""
    whole = listed(module, state.stage)
    if state.select is not None and state.select.kind in FILTERING:
        count = len(chosen_rows(module, state, None))
        return f"{count:,} of {len(whole):,}: those of the chosen {KIND_WORDS[state.select.kind]}"
    return f"all {len(whole):,}"


def register(app: dash.Dash, bundles: Bundles) -> None:
    """The callbacks of the list."""

    @app.callback(Output("ops-list", "children"), Input("stage", "data"), State("view", "data"))
    def _list(stage: str | None, view: dict[str, Any]) -> Component:
        module, state = bundles.at(view, stage=stage)
        return module.keep(("list grid", state.stage), lambda: list_grid(module, state.stage))

    @app.callback(
        Output("ops-grid", "getRowsResponse"),
        Output("ops-narrowed", "data"),
        Input("ops-grid", "getRowsRequest"),
        State("view", "data"),
        State("stage", "data"),
        State("select", "data"),
        State("ops-quick", "value"),
        State("ops-narrowed", "data"),
        prevent_initial_call=True,
    )
    def _rows(
        request: dict[str, Any] | None,
        view: dict[str, Any],
        stage: str | None,
        select: str | None,
        quick: str | None,
        known: str | None,
    ) -> Any:
        if request is None:
            return no_update, no_update
        module, state = bundles.at(view, stage=stage, select=select)
        now = narrowing(state, quick)
        return rows_response(module, state, quick, request), (no_update if now == known else now)

    @app.callback(
        Output("ops-place", "data"),
        Input("select", "data"),
        Input("ops-narrowed", "data"),
        State("ops-grid", "getRowsRequest"),
        State("view", "data"),
        State("stage", "data"),
        State("ops-quick", "value"),
        prevent_initial_call=True,
    )
    def _place(
        select: str | None,
        _narrowed: str | None,
        request: dict[str, Any] | None,
        view: dict[str, Any],
        stage: str | None,
        quick: str | None,
    ) -> int | None:
        module, state = bundles.at(view, stage=stage, select=select)
        return place_of(module, state, quick, request or {})

    in_browser(
        app,
        "scroll_ops",
        Output("ops-scrolled", "data"),
        Input("ops-place", "data"),
    )

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

    in_browser(
        app,
        "refresh_ops",
        Output("ops-refreshed", "data"),
        Input("select", "data"),
        Input("ops-quick", "value"),
        State("ops-narrowed", "data"),
    )
