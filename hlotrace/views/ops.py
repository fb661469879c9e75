"""Which ops are there before and after optimisation, how many are started, and which cost most?

jit_layer on v5e:2x2
instructions 83 (118 before)   launches 21 (96 before)   fusions 17
By category
category        before  after  in fusions  launches before  after  cycles (M)
matmul               9      9           9                9      9        1.05
elementwise         41     38          38               41      0           –
Largest ops, by the compiler's cycles
op          category  cycles (k)  share  FLOPs (G)  source
fusion.12   matmul        362.10  34.2%      34.36  …/layer.py:20
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import costs, op_counts
from hlotrace.units import is_missing
from hlotrace.views.blocks import Bars, Block, Figure, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import command, cut, module_option, opening, problems_tail, rows_of, telling, with_source
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Which ops are there before and after optimisation, how many are started, and which cost most?"
MOST_BARS = 16
INSTRUCTION_COLUMNS = (*costs.COLUMNS, "bytes")

BY = Parameter("by", "string", "what to count by", default="category", choices=op_counts.GROUPINGS)
DEPTH = Parameter("depth", "int", "levels of a named scope that make one group; 0 takes all", default=4)

GROUP_LABELS = {"opcode": "opcode", "category": "category", "source": "source line", "scope": "named scope"}
RANKING_WORDS = {
    "cycles_total": "the compiler's cycles",
    "flops_total": "FLOPs: the compiler gave no cycles",
    "hbm_bytes_total": "HBM bytes: the compiler gave no cycles, and there are no FLOPs",
}


def build(tables: Tables, *, module: str | None, by: str, depth: int, top: int) -> list[Block]:
    """Headline counts, counts in groups as a table and as bars, the largest launches."""
    row, blocks = opening(tables, module, QUESTION)
    name = str(row["module"])
    instructions = rows_of(tables, "instructions", name, INSTRUCTION_COLUMNS)
    computations = rows_of(tables, "computations", name)
    counts = op_counts.op_counts(instructions, computations, after=row["final_stage"], by=by, depth=depth)
    blocks.append(figures_of(tables, row, counts))
    blocks += missing(row, instructions)
    blocks += [counts_grid(counts, by, top), *bars(counts, by)]
    launched = costs.launches(instructions, row["final_stage"])
    if len(launched):
        blocks.append(launches_grid(launched, top))
    others = [grouping for grouping in op_counts.GROUPINGS if grouping != by]
    blocks.append(
        Note(f"Also by {', '.join(others)}.", command=command(tables, "ops", module_option(tables, row), by=others[-1]))
    )
    return [*blocks, *problems_tail(tables)]


def figures_of(tables: Tables, row: dict[str, Any], counts: pd.DataFrame) -> Figures:
    """Ops, launches and fusions of a module, each beside what it was before optimisation."""
    fusions = len(rows_of(tables, "fusions", str(row["module"])))
    before, after = (counts[name].sum(min_count=1) for name in ("before", "after"))
    return Figures(
        (
            Figure("ops", _known(after), "count", detail=_before(_known(before))),
            Figure("launches", row["launches"], "count", detail=_before(row["launches_before"])),
            Figure("fusions", fusions, "count"),
        )
    )


def _known(value: Any) -> int | None:
    return None if is_missing(value) else int(value)


def _before(value: int | None) -> str:
    return "" if value is None else f"{value:,} before optimisation"


def missing(row: dict[str, Any], instructions: pd.DataFrame) -> list[Block]:
    """What cannot be compared because a stage is not there, and what would bring it."""
    stages = row["stages"] or []
    if op_counts.BEFORE not in stages:
        text = "The program before optimisation is not among the files, so nothing stands beside the counts after it."
        return [Note(text, "missing", "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' python MODEL.py")]
    if row["final_stage"] == op_counts.BEFORE or instructions.empty:
        text = "Only the program before optimisation is among the files: what runs is not known."
        return [Note(text, "missing", "hlotrace capture MODEL.py")]
    return []


def counts_grid(counts: pd.DataFrame, by: str, top: int) -> Grid:
    """Counts in groups, before and after optimisation side by side."""
    columns = [
        ShownColumn(by, GROUP_LABELS[by], emphasis="path" if by in ("source", "scope") else "plain"),
        ShownColumn("before", "before", "count"),
        ShownColumn("after", "after", "count", emphasis="bar"),
        ShownColumn("after_fused", "in fusions", "count"),
        ShownColumn("launches_before", "launches before", "count"),
        ShownColumn("launches_after", "launches after", "count"),
    ]
    if counts["cycles_total"].notna().any():
        columns.append(ShownColumn("cycles_total", "cycles", "cycles"))
    columns.append(ShownColumn("flops_total", "FLOPs", "flop", "predicted"))
    note = "Counts are instructions of the program as written; launches, cycles and FLOPs are those of one run."
    return Grid(f"Counts by {GROUP_LABELS[by]}", cut(counts, top), tuple(columns), len(counts), note, _selects(by))


def _selects(by: str) -> Any:
    return "source" if by == "source" else ""


def bars(counts: pd.DataFrame, by: str) -> list[Block]:
    """The largest groups as bars; nothing where there is nothing to count."""
    shown = counts.head(MOST_BARS)
    series = {
        name: tuple(float(value) for value in shown[name].fillna(0))
        for name in ("before", "after")
        if counts[name].notna().any()
    }
    if not series or shown.empty:
        return []
    labels = tuple(shown[by].fillna("(none)").astype(str))
    return [Bars(f"Ops by {GROUP_LABELS[by]}", labels, series, "count")]


def launches_grid(launched: pd.DataFrame, top: int) -> Grid:
    """The largest launches; the columns that say nothing here are left out."""
    by = costs.ranking(launched)
    frame = with_source(costs.top_launches(launched, by))
    figures = (
        ShownColumn("cycles_total", "cycles", "cycles"),
        ShownColumn("share", "share", "share", "compiler" if by == "cycles_total" else "predicted", "bar"),
        ShownColumn("flops_total", "FLOPs", "flop", "predicted"),
        ShownColumn("hbm_bytes_total", "HBM bytes", "bytes", "predicted"),
        ShownColumn("execution_count", "runs", "count", "predicted"),
    )
    columns = (
        ShownColumn("instruction", "op", emphasis="code"),
        ShownColumn("category", "category"),
        *telling(frame, figures),
        ShownColumn("source", "source", emphasis="path"),
    )
    title = f"Largest ops, by {RANKING_WORDS[by]}"
    return Grid(title, cut(frame, top), columns, len(frame), selects="instruction")


VIEW = View("ops", "Ops", QUESTION, (MODULE, BY, DEPTH, TOP), build)
