"""All views in the order people meet them."""

from __future__ import annotations

from hlotrace.errors import unknown_name
from hlotrace.views import (
    chips,
    collectives,
    fusions,
    memory,
    modules,
    mxu,
    ops,
    problems,
    profile,
    roofline,
    steps,
    summary,
)
from hlotrace.views.view import Parameter, Tables, View

VIEWS: tuple[View, ...] = (
    *(summary.VIEW, ops.VIEW, fusions.VIEW, memory.VIEW),
    *(roofline.VIEW, mxu.VIEW, chips.VIEW),
    *(profile.VIEW, steps.VIEW, collectives.VIEW),
    *(modules.VIEW, problems.VIEW),
)


def view_named(name: str) -> View:
    """The view of that name.

    Raises:
        HlotraceError: there is none; the nearest names are in the remedy.
    """
    for view in VIEWS:
        if view.name == name:
            return view
    raise unknown_name("view", name, [view.name for view in VIEWS])


__all__ = ["VIEWS", "Parameter", "Tables", "View", "view_named"]
