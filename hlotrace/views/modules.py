"""Which programs were compiled, and how large is each?

Modules
module          target    instructions  launches before  after  HBM needed (MiB)  compile (s)
jit_step        v5e:2x2          1,204              812    214          2,310.40        28.91
7 small modules (such as eager primitives and helpers), 41 instructions in all
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import by_size, is_small
from hlotrace.views.blocks import Block, Grid, Heading, Note, ShownColumn
from hlotrace.views.common import command, cut, problems_tail
from hlotrace.views.view import TOP, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Which programs were compiled, and how large is each?"

COLUMNS = (
    ShownColumn("module", "module", emphasis="code"),
    ShownColumn("target", "target"),
    ShownColumn("instruction_count", "instructions", "count"),
    ShownColumn("launches_before", "launches before", "count", "predicted"),
    ShownColumn("launches", "launches after", "count"),
    ShownColumn("flops", "FLOPs", "flop", "predicted"),
    ShownColumn("hbm_needed_bytes", "memory needed", "bytes"),
    ShownColumn("estimated_cycles", "estimated cycles", "cycles"),
    ShownColumn("compile_ns", "compile time", "ns", "measured"),
    ShownColumn("error", "error"),
)
ALWAYS = ("module", "instruction_count", "launches")
"""Columns that stand even where nothing is known of them."""


def build(tables: Tables, *, top: int) -> list[Block]:
    """All modules, largest first; eager primitives and helpers folded into a line unless all are asked for."""
    ordered = by_size(tables["modules"])
    large = [row for row in ordered if not is_small(row)] or ordered[:1]
    shown = ordered if top == 0 else large
    frame = _in_order(tables["modules"], shown)
    blocks: list[Block] = [Heading("Modules", QUESTION)]
    if not ordered:
        return [
            *blocks,
            Note("There is no module in it.", "missing", "hlotrace capture MODEL.py"),
            *problems_tail(tables),
        ]
    columns = tuple(
        _named(column, frame) for column in COLUMNS if column.name in ALWAYS or frame[column.name].notna().any()
    )
    blocks.append(Grid("Modules", cut(frame, top), columns, len(frame), _without_flops(frame), "module"))
    blocks += _folded(tables, [row for row in ordered if row not in shown])
    blocks += _other_compilations(tables)
    return [*blocks, *problems_tail(tables)]


def _named(column: ShownColumn, frame: pd.DataFrame) -> ShownColumn:
    """The memory by its name where all modules are for one platform, and no more certain than each of them."""
    if column.name != "hbm_needed_bytes":
        return column
    label = "HBM needed" if (frame["platform"] == "tpu").all() else column.label
    return replace(
        column, label=label, origin="predicted" if (frame["buffers_from"] == "incomplete").any() else "compiler"
    )


def _without_flops(frame: pd.DataFrame) -> str:
    """What the FLOPs leave out; empty where that is nothing."""
    count = int(frame["launches_without_flops"].fillna(0).sum())
    launches = "1 launch" if count == 1 else f"{count:,} launches"
    return f"FLOPs are without {launches} whose operations are not known." if count else ""


def _in_order(modules: pd.DataFrame, rows: list[dict[str, Any]]) -> pd.DataFrame:
    place = {row["module"]: index for index, row in enumerate(rows)}
    chosen = modules[modules["module"].isin(list(place))]
    return chosen.iloc[chosen["module"].map(place).argsort()]


def _folded(tables: Tables, small: list[dict[str, Any]]) -> list[Block]:
    if not small:
        return []
    instructions = sum(row["instruction_count"] or 0 for row in small)
    noun = "small module" if len(small) == 1 else "small modules"
    # A manifest lists eager primitives and helpers apart: what has a function is a program of the user's.
    is_own = any(row["function"] is not None for row in small)
    kind = "" if is_own else " (such as eager primitives and helpers)"
    text = f"{len(small):,} {noun}{kind}, {instructions:,} instructions in all."
    return [Note(text, command=command(tables, "modules", top=0))]


def _other_compilations(tables: Tables) -> list[Block]:
    compilations = tables["compilations"]
    others = compilations[compilations["module"].isna()]
    if others.empty:
        return []
    count = int(others["count"].fillna(1).sum())
    names = ", ".join(dict.fromkeys(others["name"].dropna().head(5)))
    return [Note(f"{count:,} more compilations were counted and not kept: {names}{', …' if len(others) > 5 else ''}.")]


VIEW = View("modules", "Modules", QUESTION, (TOP,), build)
