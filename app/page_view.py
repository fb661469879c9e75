"""A plain page for a view that has no interactive page of its own: its blocks from top to bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dash import html

from hlotrace.app import blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from dash.development.base_component import Component

    from hlotrace.app.data import Module
    from hlotrace.views.view import View


def page_of(view: View) -> Callable[[Module], Component]:
    """The page of a view: all rows, since the grids scroll."""
    names = {parameter.name for parameter in view.parameters}

    def page(module: Module) -> Component:
        values = {"top": 0, "module": module.name}
        made = view.build(module.bundle, **{name: value for name, value in values.items() if name in names})
        return html.Div(blocks.draw_all(made, view.name), className="page plain")

    return page
