"""Parts of a page that lead somewhere: a click goes to the present state with some of it changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dash import html

from hlotrace.app.wiring import aria, data

if TYPE_CHECKING:
    from dash.development.base_component import Component


def going(**patch: Any) -> dict[str, Any]:
    """The attributes that make a click change these parts of the state; None clears one."""
    values = {name: None if value is None else str(value) for name, value in patch.items()}
    return data(go=json.dumps(values))


def link(words: Any, title: str = "", **patch: Any) -> Component:
    """Words that change the state when clicked."""
    return html.Button(words, className="link", title=title, **going(**patch))


def switch(name: str, choices: Sequence[tuple[str, str]], default: str, label: str) -> Component:
    """A row of choices for one parameter of the URL, as (value, words); the browser marks the one that holds."""
    buttons = [
        html.Button(words, className="choice", **data(value=value), **going(**{name: value}))
        for value, words in choices
    ]
    return html.Div(
        [html.Span(label, className="switch-label"), *buttons],
        className="switch",
        role="group",
        **data(name=name, default=default),
        **aria(label=label),
    )


def name_head(text: str, longest: int = 44) -> str:
    """A text that keeps its beginning, such as a shape: its layout at the end tells less."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
