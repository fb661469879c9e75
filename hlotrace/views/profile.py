"""Where did the time go, by program, category, op, fusion, source line or named scope?

Profile
time of a step 2.39 s   devices busy 98.9 %   time in ops 8.36 s
Time by category
category       time (s)  share  ops  occurrences
matmul             5.21  62.3%   14           42
data movement      1.02  12.2%    9           27
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.traced import GROUPINGS, device_steps, time_by
from hlotrace.tables import to_frame
from hlotrace.views.blocks import Bars, Block, Grid, Note, ShownColumn
from hlotrace.views.common import command, cut, problems_tail, telling, with_source
from hlotrace.views.traced import headline, inferred_note, of_module, opening
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Where did the time go, by program, category, op, fusion, source line or named scope?"
MOST_BARS = 16

BY = Parameter("by", "string", "what to add times up by", default="category", choices=GROUPINGS)
DEPTH = Parameter("depth", "int", "levels of a named scope that make one group; 0 takes all", default=4)

LABELS = {"program": "program", "source": "source line", "scope": "named scope"}
NONE_LABELS = {
    "program": "(no program)",
    "fusion": "(ops that are no fusion)",
    "source": "(no source line)",
    "scope": "(no name)",
}


def build(tables: Tables, *, module: str | None, by: str, depth: int, top: int) -> list[Block]:
    """The headline, times in groups as a table and as bars."""
    blocks = opening(tables, "Profile", QUESTION)
    if not tables.traces:
        return [*blocks, *problems_tail(tables)]
    op_times = of_module(tables["op_times"], tables, module)
    if op_times.empty:
        where = f"the module {module}" if module is not None else "it: no device and no op of the CPU is in the trace"
        return [
            *blocks,
            Note(f"No op times of {where}.", "missing", command(tables, "problems")),
            *problems_tail(tables),
        ]
    blocks += [headline(tables, op_times), *inferred_note(device_steps(tables["steps"]))]
    fusions = to_frame(tables.arrow("fusions", ("module", "fusion"))) if by == "fusion" else None
    times = time_by(op_times, by, fusions=fusions, depth=depth)
    blocks += [grid(times, by, top), *bars(times, by)]
    others = [grouping for grouping in GROUPINGS if grouping != by]
    example = "op" if by != "op" else "category"
    blocks.append(Note(f"Also by {', '.join(others)}.", command=command(tables, "profile", module, by=example)))
    return [*blocks, *problems_tail(tables)]


def grid(times: pd.DataFrame, by: str, top: int) -> Grid:
    """Times in groups."""
    label = LABELS.get(by, by)
    frame = times.assign(**{by: times[by].fillna(NONE_LABELS.get(by, "(none)"))})
    emphasis = "path" if by in ("source", "scope") else "code" if by in ("op", "fusion", "program") else "plain"
    columns = [
        ShownColumn(by, label, emphasis=emphasis),  # type: ignore[arg-type]
        ShownColumn("self_ps", "time", "ps", "measured"),
        ShownColumn("share", "share", "share", "measured", "bar"),
    ]
    if by == "op":
        frame = with_source(frame)
        columns += telling(frame, (ShownColumn("category", "category"),))
        columns.append(ShownColumn("median_ps", "median", "ps", "measured"))
    else:
        columns.append(ShownColumn("ops", "ops", "count", "measured"))
    columns.append(ShownColumn("occurrences", "occurrences", "count", "measured"))
    if by in ("op", "fusion") and frame["module"].nunique() > 1:
        columns.append(ShownColumn("module", "program", emphasis="code"))
    if by == "op":
        columns += telling(frame, (ShownColumn("source", "source", emphasis="path"),))
    note = "Time is that of all devices, without the ops inside an op, so that it adds up."
    selects = {"op": "instruction", "fusion": "fusion", "program": "module", "source": "source"}.get(by, "")
    return Grid(f"Time by {label}", cut(frame, top), tuple(columns), len(frame), note, selects)  # type: ignore[arg-type]


def bars(times: pd.DataFrame, by: str) -> list[Block]:
    """The largest groups as bars."""
    if by not in ("category", "program"):
        return []
    shown = times.head(MOST_BARS)
    labels = tuple(shown[by].fillna(NONE_LABELS.get(by, "(none)")).astype(str))
    values = tuple(float(value) for value in shown["self_ps"])
    return [Bars(f"Time by {LABELS.get(by, by)}", labels, {"time": values}, "ps", "measured")]


VIEW = View("profile", "Profile", QUESTION, (MODULE, BY, DEPTH, TOP), build)
"""`--module` restricts it to one program; all of them when not given."""
