"""How well do the shapes of the products fit the matrix units?

jit_layer on v6e:2x2
usable share of the matrix units 69.6 %   matrix unit 256 x 256
Products
op              product                    padded                      usable (%)  FLOPs (G)  change
fusion.7        8 x [1024,64] x [64,4096]  8 x [1024,256] x [256,4096]       25.0       4.29  k 64 → 256
"""

from __future__ import annotations

from hlotrace.analyses import costs, mxu
from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import SOURCE, cut, opening, problems_tail, rows_of, telling, with_source
from hlotrace.views.roofline import nothing
from hlotrace.views.view import MODULE, TOP, Tables, View

QUESTION = "How well do the shapes of the products fit the chip's matrix units?"

COLUMNS = (
    ShownColumn("launch", "op", emphasis="code"),
    ShownColumn("product", "product [m,k] x [k,n]", emphasis="code"),
    ShownColumn("padded", "padded", emphasis="code"),
    ShownColumn("mxu_share", "usable", "share", "predicted"),
    ShownColumn("change", "change"),
    ShownColumn("dtype", "type"),
    ShownColumn("flops_total", "FLOPs", "flop", "predicted"),
    ShownColumn("wasted_flops", "padding", "flop", "predicted"),
    ShownColumn("execution_count", "runs", "count", "predicted"),
    SOURCE,
)
NOTE = (
    "Usable is the most that the shape lets the matrix units do: [m,k] x [k,n] with k and one of m and n padded to the "
    "unit, the other to 8 rows. What streams through them may still be too little to keep them busy."
)


def build(tables: Tables, *, module: str | None, top: int) -> list[Block]:
    """Each dot and convolution with the tiles that it fills, those that waste most first."""
    row, blocks = opening(tables, module, QUESTION)
    chip = costs.chip_of(row)
    if chip is None:
        return [*blocks, nothing(row), *problems_tail(tables)]
    name, size = str(row["module"]), int(chip.mxu_size.value)
    instructions = rows_of(tables, "instructions", name, mxu.COLUMNS)
    found = mxu.products(instructions, rows_of(tables, "computations", name), row["final_stage"], size)
    if found.empty:
        return [*blocks, Note("There is no dot and no convolution in it.", "missing"), *problems_tail(tables)]
    units = f"{int(chip.mxus.value)} a core, {chip.mxu_size.source}"
    figures = (
        Figure(
            "usable share of the matrix units", mxu.usable_share(found), "share", "predicted", "all products together"
        ),
        Figure("matrix unit", f"{size} x {size}", detail=units),
    )
    frame = with_source(found)
    blocks += [
        Figures(figures),
        Grid("Products", cut(frame, top), telling(frame, COLUMNS), len(frame), NOTE, "instruction"),
    ]
    return [*blocks, *problems_tail(tables)]


VIEW = View("mxu", "MXU", QUESTION, (MODULE, TOP), build)
