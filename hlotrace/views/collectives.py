"""Which collectives ran, how long, and how much of that did the device wait?

Collectives
time in collectives 1.46 s   exposed 1.46 s
Collectives
collective  kind        form  group     size    runs  time (ms)  hidden  exposed (ms)
all-reduce  all-reduce  sync  4 x 2  5.00 GiB    12   1,460.41     0.0%     1,460.41
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import cut, problems_tail, telling, with_source
from hlotrace.views.traced import of_module, opening
from hlotrace.views.view import MODULE, TOP, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Which collectives ran, how long, and how much of that did the device wait?"


def build(tables: Tables, *, module: str | None, top: int) -> list[Block]:
    """Collective time and what of it was exposed, and each collective."""
    blocks = opening(tables, "Collectives", QUESTION)
    if not tables.traces:
        return [*blocks, *problems_tail(tables)]
    found = of_module(tables["collectives"], tables, module)
    if found.empty:
        if tables["op_times"].empty:
            text = "Nothing is known of collectives: no device and no op is in the trace."
            return [*blocks, Note(text, "missing"), *problems_tail(tables)]
        where = "No collective ran" + (f" in the module {module}" if module is not None else "")
        return [*blocks, Note(f"{where}: the traced devices exchanged nothing."), *problems_tail(tables)]
    blocks += [figures_of(found, of_module(tables["op_times"], tables, module)), grid(found, top)]
    return [*blocks, *problems_tail(tables)]


def figures_of(found: pd.DataFrame, op_times: pd.DataFrame) -> Figures:
    """Collective time of all devices, and the exposed part."""
    total, exposed = int(found["duration_ps"].sum()), int(found["exposed_ps"].sum())
    busy = int(op_times["self_ps"].sum())
    share = f"{exposed / total:.0%} of it" if total else ""
    of_ops = f", {exposed / busy:.0%} of the time in ops" if busy else ""
    return Figures(
        (
            Figure("time in collectives", total, "ps", "measured", "all devices, from start to done"),
            Figure("exposed", exposed, "ps", "measured", f"{share}{of_ops}"),
        )
    )


def grid(found: pd.DataFrame, top: int) -> Grid:
    """The collectives, those with the most exposed time first."""
    frame = with_source(found)
    frame = frame.assign(
        hidden=frame["hidden_ps"].astype("float64") / frame["duration_ps"].astype("float64"),
        group=frame["group_count"].astype("string") + " x " + frame["group_size"].astype("string"),
        overlapped=frame["overlapped_with"].map(_listed, na_action="ignore"),
    )
    columns = (
        ShownColumn("instruction", "collective", emphasis="code"),
        ShownColumn("kind", "kind"),
        ShownColumn("form", "form"),
        *telling(frame, (ShownColumn("group", "groups x devices"), ShownColumn("bytes", "size", "bytes"))),
        ShownColumn("execution_count", "runs", "count", "measured"),
        ShownColumn("duration_ps", "time", "ps", "measured"),
        ShownColumn("hidden", "hidden", "share", "measured"),
        ShownColumn("exposed_ps", "exposed", "ps", "measured", "bar"),
        *telling(frame, (ShownColumn("overlapped", "meanwhile"), ShownColumn("source", "source", emphasis="path"))),
    )
    note = "Hidden is the time in which the same device ran other ops; exposed is the rest."
    return Grid("Collectives", cut(frame, top), columns, len(frame), note, "instruction")


def _listed(names: list[str]) -> str | None:
    return ", ".join(names) or None


VIEW = View("collectives", "Collectives", QUESTION, (MODULE, TOP), build)
