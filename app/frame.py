"""What stands around every page: pages on the left; bundle, module, chip, search and switches on top; the selection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from hlotrace.app.grids import swatches
from hlotrace.app.links import going
from hlotrace.app.wiring import aria, data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dash.development.base_component import Component

    from hlotrace.app.data import Bundles

STORES = ("view", "select", "space", "at", "by", "stage", "area")
"""Parts of the URL, each in a store of its own: what changes is all that is drawn again."""

KEYS = (
    ("/", "search ops, opcodes, source lines, scopes, buffers"),
    ("j  k", "next and previous row of the table under the pointer"),
    ("Esc", "close, or clear the selection"),
    ("?", "this help"),
)

HINTS = (
    "Choosing an op, a buffer or a source line chooses it on every page; the bar under the header says what is chosen.",
    "The address holds page, module, selection, memory space and position: paste it to show someone the same.",
    "Drag in a chart to zoom, double-click to zoom out. Drag the graph to move it, turn the wheel to zoom.",
    "Header cells sort; Ctrl-click sorts by several columns; the mark in a header opens its filter.",
)


def layout(bundles: Bundles, pages: Sequence[tuple[str, str]]) -> Component:
    """The frame; `pages` are (path, title) in the order of the navigation."""
    catalogue = {name: bundles.module_names(name) for name in bundles.names}
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            *(dcc.Store(id=name) for name in STORES),
            dcc.Store(id="chosen"),
            dcc.Store(id="catalogue", data=catalogue),
            html.Div(id="progress", className="progress", **aria(hidden="true")),
            _navigation(pages),
            _header(bundles),
            html.Div(id="selection-bar", className="selection-bar", **aria(live="polite")),
            html.Main(id="page", tabIndex="-1"),
            _help(),
            html.Div(dcc.Graph(id="warm", figure={}), hidden=True),
            html.Div(id="said", role="status"),
            html.Div(id="said-error", role="alert"),
        ],
        id="frame",
        **data(swatches=json.dumps(swatches())),
    )


def _navigation(pages: Sequence[tuple[str, str]]) -> Component:
    links = [
        html.A(words, href="/" if page == "overview" else f"/{page}", className="nav-link", **going(page=page))
        for page, words in pages
    ]
    foot = html.Button("Keys  ?", id="help-button", className="nav-foot", title="Keys and hints (?)")
    return html.Nav([html.Div("hlotrace", className="brand"), *links, html.Div(className="spring"), foot])


def _header(bundles: Bundles) -> Component:
    def picker(name: str, label: str, shown: bool = True) -> Component:
        drop = dcc.Dropdown(id=name, options=[], clearable=False, searchable=True, className="picker", maxHeight=360)
        # No html.Label: the list opens inside it, and a click there would press the button again.
        parts = [html.Span(label), drop]
        return html.Div(parts, className="picking" if shown else "picking hidden", role="group", **aria(label=label))

    search = html.Div(
        [
            dcc.Input(
                id="search",
                type="search",
                placeholder="Search ops, source lines, scopes    /",
                debounce=False,
                autoComplete="off",
                spellCheck=False,
            ),
            html.Div(id="search-results", role="listbox"),
        ],
        className="search",
    )
    return html.Header(
        [
            picker("bundle-picker", "bundle", len(bundles.names) > 1),
            picker("module-picker", "module"),
            html.Div(id="chip", className="chip"),
            html.Div(className="spring"),
            search,
            html.Button("Copy link", id="copy-link", className="tool", title="Copy a link to exactly this"),
            html.Button("◐", id="theme-switch", className="tool", title="Light or dark", **aria(label="Light or dark")),
        ]
    )


def _help() -> Component:
    rows = [html.Tr([html.Td(html.Kbd(key)), html.Td(meaning)]) for key, meaning in KEYS]
    box: list[Any] = [
        html.H2("Keys"),
        html.Table(html.Tbody(rows)),
        html.H2("How it works"),
        html.Ul([html.Li(hint) for hint in HINTS]),
        html.H2("Where figures are from"),
        html.P(
            [
                html.Span("measured", className="origin origin-measured"),
                " a clock or a counter. ",
                html.Span("compiler", className="origin origin-compiler"),
                " the compiler's own figure or estimate. ",
                html.Span("predicted", className="origin origin-predicted"),
                " our model.",
            ]
        ),
    ]
    return html.Div(html.Div(box, className="help-box", role="dialog"), id="help")
