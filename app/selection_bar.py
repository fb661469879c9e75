"""The bar under the header: what is selected, what is known of it, and the way to it on each page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from dash import html

from hlotrace.analyses.modules import records
from hlotrace.analyses.op_counts import scope_of
from hlotrace.app.chosen import source_of
from hlotrace.app.links import going, link, name_head
from hlotrace.app.wiring import data
from hlotrace.units import end_of, format_bytes, format_count

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from hlotrace.app.chosen import Chosen
    from hlotrace.app.data import Module
    from hlotrace.app.state import Selection

KIND_WORDS = {
    "op": "op",
    "before": "op before optimisation",
    "buffer": "buffer",
    "source": "source line",
    "scope": "scope",
    "opcode": "opcode",
    "category": "category",
}


def bar(module: Module, selection: Selection | None, chosen: Chosen | None) -> Component:
    """The description of the selection; an invitation where there is none."""
    if chosen is None or selection is None:
        words = "Nothing selected: choose an op, a buffer or a source line, or press / to search."
        return html.Div(words, className="nothing")
    head = [
        html.Span(KIND_WORDS[selection.kind], className="selection-kind"),
        html.Button(
            end_of(selection.name, 60),
            className="selection-name",
            title=f"{selection.name} (click to copy)",
            **data(copy=selection.name),
        ),
    ]
    facts = (
        list(_facts(module, selection, chosen))
        if chosen.found
        else [html.Span("not in this module", className="absent")]
    )
    ways = [link(words, f"Show it on the page {words}", page=page) for page, words in _ways(chosen)]
    clear = html.Button("✕", className="tool clear", title="Clear the selection (Esc)", **going(select=None))
    return html.Div(
        [*head, html.Div(facts, className="facts"), html.Div(ways, className="ways"), clear], className="selected"
    )


def _ways(chosen: Chosen) -> Iterable[tuple[str, str]]:
    yield "ops", "Ops"
    if chosen.fusions:
        yield "fusions", "Fusions"
    if chosen.positions or chosen.spans:
        yield "memory", "Memory"


def _facts(module: Module, selection: Selection, chosen: Chosen) -> Iterable[Component]:
    if selection.kind == "buffer":
        rows = module.buffer_groups("value").rows(selection.name)
        yield from _buffer_facts(records(module.buffers.iloc[rows[:1]])[0])
    elif selection.kind in ("op", "before"):
        lookup = module.lookup if selection.kind == "op" else module.before_lookup
        rows = lookup.groups("instruction").rows(selection.name)
        yield from _op_facts(records(lookup.frame.iloc[rows[:1]])[0], chosen, selection.name)
        if selection.kind == "before":
            yield _fact(f"{chosen.count:,} ops after optimisation come from it")
    else:
        yield _fact(f"{chosen.count:,} ops")
        if chosen.fusions:
            yield _fact(f"in {len(chosen.fusions):,} fusions")
        if chosen.values:
            yield _fact(f"{len(chosen.values):,} buffers")


def _op_facts(row: dict[str, Any], chosen: Chosen, name: str) -> Iterable[Component]:
    yield link(row["opcode"], f"All {row['opcode']}", select=f"opcode:{row['opcode']}")
    if row["category"]:
        yield link(row["category"], f"All of category {row['category']}", select=f"category:{row['category']}")
    yield _fact(name_head(row["shape"] or ""), row["shape"] or "")
    if row["bytes"]:
        yield _fact(format_bytes(row["bytes"]))
    if row["estimated_cycles"] is not None:
        yield _fact(f"{format_count(row['estimated_cycles'])} cycles", "the compiler's estimate of one execution")
    if row["schedule_index"] is not None:
        yield link(
            f"position {row['schedule_index']}", "Show this position in memory", page="memory", at=row["schedule_index"]
        )
    for fusion in chosen.fusions[:1]:
        if fusion != name:
            yield link(f"in {fusion}", "The fusion that holds it", select=f"op:{fusion}")
    yield from _origin_facts(row)


def _buffer_facts(row: dict[str, Any]) -> Iterable[Component]:
    yield _fact(row["category"])
    yield _fact(format_bytes(row["bytes"]), "as assigned")
    if row["padding_bytes"]:
        yield _fact(f"{format_bytes(row['padding_bytes'])} padding")
    if row["live_from"] is not None:
        yield link(
            f"live {row['live_from']}–{row['live_to']}", "Show where it begins", page="memory", at=row["live_from"]
        )
    if row["instruction"]:
        yield link(
            f"by {end_of(row['instruction'], 32)}",
            "The instruction that defines it",
            select=f"op:{row['instruction']}",
        )
    yield from _origin_facts(row)


def _origin_facts(row: dict[str, Any]) -> Iterable[Component]:
    place = source_of(row)
    if place:
        file, _, line = place.rpartition(":")
        yield link(f"{PurePosixPath(file).name}:{line}", place, select=f"source:{place}")
    if row["op_name"]:
        yield link(end_of(row["op_name"], 48), row["op_name"], select=f"scope:{scope_of(row['op_name'])}")


def _fact(words: str, title: str = "") -> Component:
    return html.Span(words, className="fact", title=title or words)
