"""Overview: what was compiled, whether it fits, where time and memory go, what stands out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from dash import html

from hlotrace.analyses import costs
from hlotrace.analyses.findings import Finding, findings
from hlotrace.analyses.modules import is_small, records
from hlotrace.app import blocks
from hlotrace.app.grids import swatches
from hlotrace.app.links import link
from hlotrace.app.words import meaning
from hlotrace.units import Scale, column_scale
from hlotrace.views import memory, ops, summary
from hlotrace.views import modules as modules_view
from hlotrace.views.blocks import Grid, Heading, Note
from hlotrace.views.common import problems_tail, title

if TYPE_CHECKING:
    import pandas as pd
    from dash.development.base_component import Component

    from hlotrace.app.data import Module
    from hlotrace.views.summary import Subject

TOP = 8
LAUNCH_COLUMNS = ("instruction", "category", "share", "source")


def page(module: Module) -> Component:
    """The headline of one module, then time and memory side by side."""
    subject = summary.subject_of(module.tables, module.row)
    found = findings(subject.row, subject.launched, subject.at_peak)
    notes = [
        *blocks.draw_all(summary.failure_notes(subject), "failure"),
        *map(finding, found),
        *blocks.draw_all(summary.no_time(subject), "no-time"),
    ]
    columns = [
        html.Div(list(_time(module, subject)), className="column"),
        html.Div(list(_memory(subject)), className="column"),
    ]
    return html.Div(
        [
            blocks.heading(Heading(title(module.row), summary.QUESTION)),
            *blocks.draw_all(summary.what(subject), "what"),
            blocks.headline(summary.headline(subject)),
            html.Div(notes, className="findings"),
            html.Div(columns, className="columns"),
            *_modules(module),
            *_problems(module),
        ],
        className="page overview",
    )


def finding(found: Finding) -> Component:
    """A finding; one that names an op or a buffer leads to it."""
    select = f"op:{found.op}" if found.op else f"buffer:{found.value}" if found.value else None
    if select is None:
        return blocks.note(Note(found.text, "finding"))
    title = f"Choose {found.op or found.value} on the page {found.view.capitalize()}"
    return html.Div(link(found.text, title, page=found.view, select=select), className="note note-finding", role="note")


def _time(module: Module, subject: Subject) -> Iterable[Component]:
    launched = subject.launched
    if launched.empty:
        yield blocks.note(
            Note("No launches: the program that runs is not among the files.", "missing", "hlotrace capture MODEL.py")
        )
        return
    by = costs.ranking(launched)
    words = {
        "cycles_total": "Where time goes",
        "flops_total": "Where FLOPs go",
        "hbm_bytes_total": "Where HBM traffic goes",
    }
    units_of = {"cycles_total": "cycles", "flops_total": "flop", "hbm_bytes_total": "bytes"}
    totals = launched.groupby("category")[by].sum().sort_values(ascending=False)
    shares = [(str(name), float(value)) for name, value in totals.items() if value > 0]
    yield _shares(words[by], shares, units_of[by], "category", "compiler" if by == "cycles_total" else "predicted")
    yield blocks.grid(summary.narrow(ops.launches_grid(launched, TOP), (by, *LAUNCH_COLUMNS)), "overview-launches")
    yield link(f"All {len(module.final):,} instructions", "Open the page Ops", page="ops")


def _memory(subject: Subject) -> Iterable[Component]:
    if subject.peak is None or subject.at_peak is None:
        yield blocks.note(memory.missing(subject.row))
        return
    row = subject.row
    shares = [(role, float(size)) for role, size in memory.by_role(subject.peak)]
    title = f"Where memory goes: the peak, at position {subject.peak.index}"
    yield _shares(title, shares, "bytes", "", memory.alive_origin(row))
    grid = memory.alive_grid(subject.at_peak, "at the peak", TOP, memory.buffers_origin(row))
    yield blocks.grid(summary.narrow(grid, summary.VALUE_COLUMNS), "overview-alive")
    yield link(
        f"All {len(subject.at_peak):,} values at the peak", "Open the page Memory", page="memory", at=subject.peak.index
    )


def _shares(title: str, shares: list[tuple[str, float]], unit: str, kind: str, origin: str) -> Component:
    """A bar of shares under its title, which says the one unit of its amounts."""
    scale = column_scale((value for _, value in shares), unit)
    words = html.Span(scale.words(unit), className="muted")
    return blocks.section([title, words, blocks.origin(origin)], share_bar(shares, scale, kind))


def share_bar(shares: list[tuple[str, float]], scale: Scale, kind: str) -> Component:
    """One bar cut into shares, with a legend that says each; choosing one selects that `kind` where there is one."""
    colours = swatches()
    total = sum(value for _, value in shares) or 1.0
    parts, legend = [], []
    for name, value in shares:
        words = f"{name}: {scale.format(value)} {scale.suffix}, {100 * value / total:.1f} %"
        style = {"width": f"{100 * value / total:.3f}%", "backgroundColor": colours.get(name)}
        parts.append(html.Div(className="share" if name in colours else "share hatched", style=style, title=words))
        swatch = html.Span(
            className="swatch" if name in colours else "swatch hatched", style={"backgroundColor": colours.get(name)}
        )
        label = [
            swatch,
            html.Span(name),
            html.Span(scale.format(value), className="amount"),
            html.Span(f"{100 * value / total:.1f} %", className="amount"),
        ]
        legend.append(
            link(label, f"Choose {name}. {meaning(name)}".rstrip(), select=f"{kind}:{name}")
            if kind
            else html.Span(label, className="legend-item", title=meaning(name))
        )
    return html.Div([html.Div(parts, className="shares"), html.Div(legend, className="legend")])


def _modules(module: Module) -> Iterable[Component]:
    frame: pd.DataFrame = module.bundle["modules"]
    if len(frame) < 2:
        return
    small = sum(is_small(row) for row in records(frame))
    made = next((block for block in modules_view.build(module.bundle, top=TOP) if isinstance(block, Grid)), None)
    if made is not None:
        yield blocks.grid(made, "overview-modules")
    words = f"All {len(frame):,} modules" + (f", {small:,} of them small" if small else "")
    yield link(words, "Open the page Modules", page="modules")


def _problems(module: Module) -> Iterable[Component]:
    for note in problems_tail(module.bundle):
        shown = blocks.note(replace(note, command=""))
        yield html.Div([shown, link("Show them", page="problems")], className="beside")
