"""Make the app: the frame, the pages, and the callbacks that join them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dash
from dash import Input, Output, State, html

from hlotrace import units
from hlotrace.app import blocks, frame, page_fusions, page_memory, page_ops, page_overview, page_view
from hlotrace.app.chosen import choose
from hlotrace.app.data import Bundles
from hlotrace.app.links import going
from hlotrace.app.search import search
from hlotrace.app.selection_bar import bar
from hlotrace.app.state import HOME
from hlotrace.app.state import State as AppState
from hlotrace.app.wiring import in_browser
from hlotrace.errors import HlotraceError
from hlotrace.views.blocks import Note
from hlotrace.views.registry import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dash.development.base_component import Component

    from hlotrace.app.data import Module
    from hlotrace.load import Tables

logger = logging.getLogger(__name__)

PAGES: dict[str, tuple[str, Callable[[Module], Component]]] = {
    HOME: ("Overview", page_overview.page),
    "ops": ("Ops", page_ops.page),
    "fusions": ("Fusions", page_fusions.page),
    "memory": ("Memory", page_memory.page),
}
"""The pages with interaction of their own, by their path; other views get a plain page each."""

ANSWERED = {"summary": HOME}
"""Views that a page of another name answers."""


def create_app(tables_by_name: Mapping[str, Tables]) -> dash.Dash:
    """The app over opened bundles, by the names that its picker shows.

    Raises:
        HlotraceError: there is no module in any of them.
    """
    bundles = Bundles(tables_by_name)
    if not any(bundles.module_names(name) for name in bundles.names):
        bundles.module(None, None)
    pages = all_pages()
    app = dash.Dash(
        __name__,
        title="hlotrace",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        assets_folder="assets",
        compress=False,
        on_error=_apologise,
    )
    app.enable_dev_tools(debug=False)
    app.layout = frame.layout(bundles, [(path, title) for path, (title, _) in pages.items()])
    _harden(app)
    _frame_callbacks(app, bundles, pages)
    for module in (page_ops, page_fusions, page_memory):
        module.register(app, bundles)
    return app


def all_pages() -> dict[str, tuple[str, Callable[[Module], Component]]]:
    """Every page by its path: those with interaction first, then the views that have no page yet."""
    plain = {
        view.name: (view.title, page_view.page_of(view))
        for view in VIEWS
        if view.name not in PAGES and view.name not in ANSWERED
    }
    return {**PAGES, **plain}


def _frame_callbacks(
    app: dash.Dash, bundles: Bundles, pages: dict[str, tuple[str, Callable[[Module], Component]]]
) -> None:
    """The URL into the stores, the stores into the page, the selection bar and the search results."""
    stores = [Output(name, "data") for name in frame.STORES]
    in_browser(
        app,
        "route",
        *stores,
        Input("url", "pathname"),
        Input("url", "search"),
        State("catalogue", "data"),
        *[State(name, "data") for name in frame.STORES],
        at_once=True,
    )
    in_browser(
        app,
        "pickers",
        Output("bundle-picker", "options"),
        Output("bundle-picker", "value"),
        Output("module-picker", "options"),
        Output("module-picker", "value"),
        Input("view", "data"),
        State("catalogue", "data"),
    )
    for name in ("bundle", "module"):
        in_browser(app, f"pick_{name}", Input(f"{name}-picker", "value"))
    in_browser(app, "light", Input("chosen", "data"))

    @app.callback(
        Output("page", "children"), Output("chip", "children"), Input("view", "data"), prevent_initial_call=True
    )
    def _show_page(view: dict[str, Any]) -> tuple[Component, Component]:
        return show_page(bundles, pages, view)

    @app.callback(
        Output("chosen", "data"),
        Output("selection-bar", "children"),
        Input("view", "data"),
        Input("select", "data"),
        prevent_initial_call=True,
    )
    def _show_selection(view: dict[str, Any], select: str | None) -> tuple[dict[str, Any] | None, Component]:
        return show_selection(bundles, view, select)

    @app.callback(Output("search-results", "children"), Input("search", "value"), State("view", "data"))
    def _show_hits(text: str | None, view: dict[str, Any] | None) -> list[Component]:
        return show_hits(bundles, view, text)


def show_page(
    bundles: Bundles, pages: Mapping[str, tuple[str, Callable[[Module], Component]]], view: dict[str, Any] | None
) -> tuple[Component, Component]:
    """The page of a view and the chip's words; a note where the URL names something that is not there."""
    state = AppState.of(view or {})
    if state.page not in pages:
        known = ", ".join(title for title, _ in pages.values())
        return lone_note(f"There is no page {state.page!r}. There are: {known}."), html.Span()
    try:
        module = bundles.module(state.bundle, state.module)
        page = module.keep(("page", state.page), lambda: pages[state.page][1](module))
        return page, chip(module)
    except HlotraceError as error:
        return lone_note(str(error)), html.Span()


def lone_note(text: str) -> Component:
    """A page that has nothing but a sentence to show."""
    return html.Div(blocks.note(Note(text, "missing")), className="page")


def chip(module: Module) -> Component:
    """What the module was compiled for, in a few words."""
    row = module.row
    words = [row["target"], row["device_kind"]]
    if row["hbm_capacity_bytes"]:
        words.append(f"{units.format_bytes(row['hbm_capacity_bytes'])} HBM")
    named = list(dict.fromkeys(word for word in words if word)) or [row["platform"] or "device not known"]
    return html.Span(" · ".join(named), title="What it was compiled for")


def show_selection(
    bundles: Bundles, view: dict[str, Any] | None, select: str | None
) -> tuple[dict[str, Any] | None, Component]:
    """What the selection reaches, for the browser to light up, and the bar that describes it."""
    state = AppState.of({**(view or {}), "select": select})
    try:
        module = bundles.module(state.bundle, state.module)
    except HlotraceError:
        return None, html.Span()
    chosen = choose(module, state.select)
    return (chosen.as_dict() if chosen else None), bar(module, state.select, chosen)


def show_hits(bundles: Bundles, view: dict[str, Any] | None, text: str | None) -> list[Component]:
    """Search results under their kinds; each goes to its selection."""
    state = AppState.of(view or {})
    try:
        hits = search(bundles.module(state.bundle, state.module), text or "")
    except HlotraceError:
        return []
    if not hits:
        return [html.Div("Nothing found in this module", className="no-hit")] if (text or "").strip() else []
    rows: list[Component] = []
    title = ""
    for hit in hits:
        if hit.title != title:
            title = hit.title
            rows.append(html.Div(title, className="hit-title"))
        inside = [html.Span(hit.selection.name, className="hit-name"), html.Span(hit.detail, className="hit-detail")]
        rows.append(
            html.Div(inside, className="hit", role="option", title=hit.selection.name, **going(select=hit.selection))
        )
    return rows


def _apologise(error: Exception) -> Any:
    """A callback that fails says so at the foot of the page and leaves what is shown as it was."""
    logger.error("%s", error, exc_info=not isinstance(error, HlotraceError))
    dash.set_props("said-error", {"children": f"{type(error).__name__}: {error}"})
    return dash.no_update


def _harden(app: dash.Dash) -> None:
    """Nothing leaves the machine, and no page from elsewhere reads what is shown here."""
    server = app.server
    server.config["TRUSTED_HOSTS"] = ["127.0.0.1", "localhost"]
    policy = (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        f"script-src 'self' {' '.join(app.csp_hashes())}; connect-src 'self'; frame-ancestors 'self'; "
        "form-action 'none'; base-uri 'self'"
    )

    def add_headers(response: Any) -> Any:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    server.after_request(add_headers)
