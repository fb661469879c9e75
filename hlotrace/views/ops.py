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

from hlotrace.analyses import costs, op_counts, sources
from hlotrace.units import format_percent, is_missing
from hlotrace.views.blocks import Bars, Block, Figure, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import (
    SOURCE,
    command,
    cut,
    module_option,
    opening,
    problems_tail,
    rows_of,
    telling,
    with_source,
)
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.tables import Unit

QUESTION = "Which ops are there before and after optimisation, how many are started, and which cost most?"
MOST_BARS = 16
INSTRUCTION_COLUMNS = (*costs.COLUMNS, *op_counts.COLUMNS, "bytes")

BY = Parameter("by", "string", "what to count by", default="category", choices=op_counts.GROUPINGS)
FROM = Parameter("source", "string", "only the ops that come from FILE:LINE, by any frame of their stacks")
DEPTH = Parameter("depth", "int", "levels of a named scope that make one group; 0 takes all", default=4)

GROUP_LABELS = {"opcode": "opcode", "category": "category", "source": "source line", "scope": "named scope"}
BY_WHOLE = "category"
"""A grouping that counts each op once, as scopes do not."""
NO_SCOPE = "(no scope)"
RANKING_WORDS = {
    "cycles_total": "the compiler's cycles",
    "flops_total": "FLOPs: the compiler gave no cycles",
    "hbm_bytes_total": "HBM bytes: the compiler gave no cycles, and no FLOPs are known",
}

COST_FIGURES: dict[str, tuple[str, Unit]] = {
    "cycles_total": ("cycles", "cycles"),
    "flops_total": ("FLOPs", "flop"),
    "hbm_bytes_total": ("HBM bytes", "bytes"),
}


def build(tables: Tables, *, module: str | None, by: str, depth: int, source: str | None, top: int) -> list[Block]:
    """Headline counts, counts in groups as a table and as bars, the largest launches; or the ops of one line."""
    row, blocks = opening(tables, module, QUESTION)
    name = str(row["module"])
    if source is not None:
        return [*blocks, *from_line(tables, row, source, top), *problems_tail(tables)]
    instructions = rows_of(tables, "instructions", name, INSTRUCTION_COLUMNS)
    computations = rows_of(tables, "computations", name)
    counts = op_counts.op_counts(instructions, computations, after=row["final_stage"], by=by, depth=depth)
    whole = (
        counts
        if by != "scope"
        else op_counts.op_counts(instructions, computations, after=row["final_stage"], by=BY_WHOLE)
    )
    blocks.append(figures_of(tables, row, whole))
    blocks += missing(row, instructions)
    if instructions["branch"].notna().any():
        blocks.append(Note(f"The launches above are of {costs.BRANCH_WORDS}; below all branches count."))
    blocks += [counts_grid(counts, by, top), *bars(counts, by)]
    launched = costs.launches(instructions, row["final_stage"])
    if len(launched):
        blocks.append(launches_grid(launched, top))
    named = counts[by].dropna()
    if by == "source" and len(named):
        line = str(named.iloc[0]).rpartition("/")[2]
        example = command(tables, "ops", module_option(tables, row), source=line)
        blocks.append(Note("The ops of one line, by any frame of their stacks:", command=example))
    others = [grouping for grouping in op_counts.GROUPINGS if grouping != by]
    blocks.append(
        Note(f"Also by {', '.join(others)}.", command=command(tables, "ops", module_option(tables, row), by=others[-1]))
    )
    return [*blocks, *problems_tail(tables)]


def figures_of(tables: Tables, row: dict[str, Any], counts: pd.DataFrame) -> Figures:
    """Ops, launches and fusions of a module, each beside what it was before optimisation."""
    fusions = len(rows_of(tables, "fusions", str(row["module"])))
    before, after = (_known(counts[name].sum(min_count=1)) for name in ("before", "after"))
    details = filter(None, (_before(before), _not_counted(row["instruction_count"], after)))
    return Figures(
        (
            Figure("ops", after, "count", detail="; ".join(details)),
            Figure("launches", row["launches"], "count", detail=_before(row["launches_before"])),
            Figure("fusions", fusions, "count"),
        )
    )


def _known(value: Any) -> int | None:
    return None if is_missing(value) else int(value)


def _not_counted(instructions: int | None, ops: int | None) -> str:
    """What stands between the ops and the instructions that other views count."""
    left = 0 if instructions is None or ops is None else instructions - ops
    return (
        f"of {instructions:,} instructions, {left:,} parameters inside and reducer bodies not counted" if left else ""
    )


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
    note = "Counts are instructions of the program as written; launches, cycles and FLOPs are times their executions."
    if by == "scope":
        counts = counts.assign(scope=counts[by].fillna(NO_SCOPE))
        note += " A function that several places call counts in each."
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
    labels = tuple(shown[by].fillna(NO_SCOPE if by == "scope" else "(none)").astype(str))
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
        SOURCE,
    )
    title = f"Largest ops, by {RANKING_WORDS[by]}"
    return Grid(title, cut(frame, top), columns, len(frame), selects="instruction")


def from_line(tables: Tables, row: dict[str, Any], source: str, top: int) -> list[Block]:
    """The ops of the final program that come from a line of source, the costliest first, and what they add up to.

    Raises:
        HlotraceError: none does.
    """
    name, final = str(row["module"]), row["final_stage"]
    instructions = rows_of(tables, "instructions", name, (*INSTRUCTION_COLUMNS, "source_stack"))
    instructions = instructions[(instructions["stage"] == final).fillna(False).astype(bool)]
    chosen = instructions.iloc[sources.rows_from(sources.by_any_frame(instructions), source)]
    held = rows_of(tables, "fusions", name, ("fusion", "computation")).set_index("computation")["fusion"]
    launched = costs.launches(instructions, final)
    by = costs.ranking(launched)
    frame = costs.top_launches(costs.with_totals(chosen), by).drop(columns=["share", "source_stack"])
    frame = with_source(frame.assign(fusion=frame["computation"].map(held.to_dict())))
    figures = (
        ShownColumn("cycles_total", "cycles", "cycles", emphasis="bar"),
        ShownColumn("flops_total", "FLOPs", "flop", "predicted"),
        ShownColumn("hbm_bytes_total", "HBM bytes", "bytes", "predicted"),
        ShownColumn("execution_count", "runs", "count", "predicted"),
    )
    columns = (
        ShownColumn("instruction", "op", emphasis="code"),
        ShownColumn("opcode", "opcode"),
        ShownColumn("category", "category"),
        *telling(frame, figures),
        *telling(frame, (ShownColumn("fusion", "in fusion", emphasis="code"),)),
        SOURCE,
    )
    note = "What is in a fusion has no cost of its own: its fusion has."
    grid = Grid(f"Ops from {source}", cut(frame, top), columns, len(frame), note, "instruction")
    return [_line_figures(frame, launched, by), grid]


def _line_figures(frame: pd.DataFrame, launched: pd.DataFrame, by: costs.Ranking) -> Figures:
    """How much comes from a line: ops, those that are launches, their part of what all launches cost."""
    own = frame[frame["is_launch"].fillna(False).astype(bool)]
    cost, total = (float(rows[by].sum()) for rows in (own, launched))
    label, unit = COST_FIGURES[by]
    share = f"{format_percent(cost / total)} of the module" if total else ""
    return Figures(
        (
            Figure("ops", len(frame), "count", detail=f"in {frame['fusion'].nunique():,} fusions"),
            Figure("launches", int(own["execution_count"].fillna(1).sum()), "count"),
            Figure(label, cost, unit, "compiler" if by == "cycles_total" else "predicted", share),
        )
    )


VIEW = View("ops", "Ops", QUESTION, (MODULE, BY, DEPTH, FROM, TOP), build)
