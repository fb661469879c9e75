"""Small words for what Dash takes loosely: attributes of elements, callbacks that run in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction

if TYPE_CHECKING:
    import dash


def data(**values: str) -> dict[str, Any]:
    """`data-…` attributes, which assets/*.js read."""
    return {f"data-{name.replace('_', '-')}": value for name, value in values.items()}


def aria(**values: str) -> dict[str, Any]:
    """`aria-…` attributes."""
    return {f"aria-{name}": value for name, value in values.items()}


def in_browser(app: dash.Dash, function: str, *dependencies: Any, at_once: bool = False) -> None:
    """Call a function of assets/routes.js when an input changes; with `at_once` also when its parts appear."""
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("hlotrace", function), *dependencies, prevent_initial_call=not at_once
    )
