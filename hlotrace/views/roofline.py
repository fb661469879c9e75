"""How long would it run, and what bounds each kernel?

jit_layer on v5e:2x2
predicted time of one run  754.31 us  598.21 us to 1.09 ms; 90% of it the compiler's estimate, at 1.5 GHz (published)
Kernels
op         class          predicted (us)  floor (us)  bound by  FLOPs (G)  HBM (MiB)  FLOPs a byte  basis
fusion.3   matmul fusion         238.08      163.88  HBM            4.36     128.00          32.5  cost model
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import costs, predicted
from hlotrace.views import times
from hlotrace.views.blocks import Block, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import cut, opening, problems_tail, rows_of, telling, with_source
from hlotrace.views.view import MODULE, TOP, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "How long would it run on the chip, and what bounds each kernel?"

PLACE = ["computation", "instruction"]
COLUMNS = (
    ShownColumn("instruction", "op", emphasis="code"),
    ShownColumn("class", "class"),
    ShownColumn("predicted_total_ns", "predicted", "ns", "predicted", emphasis="bar"),
    ShownColumn("low_total_ns", "at least", "ns", "predicted"),
    ShownColumn("high_total_ns", "at most", "ns", "predicted"),
    ShownColumn("floor_total_ns", "floor", "ns", "predicted"),
    ShownColumn("bound_by", "bound by"),
    ShownColumn("basis", "basis"),
    ShownColumn("flops_total", "FLOPs", "flop", "predicted"),
    ShownColumn("hbm_bytes_total", "HBM bytes", "bytes", "predicted"),
    ShownColumn("intensity", "FLOPs a byte"),
    ShownColumn("execution_count", "runs", "count", "predicted"),
    ShownColumn("source", "source", emphasis="path"),
)
UNUSUAL = (
    ShownColumn("instruction", "op", emphasis="code"),
    ShownColumn("class", "class"),
    ShownColumn("ratio", "times the floor"),
    ShownColumn("predicted_total_ns", "predicted", "ns", "predicted"),
    ShownColumn("floor_total_ns", "floor", "ns", "predicted"),
    ShownColumn("basis", "basis"),
    ShownColumn("source", "source", emphasis="path"),
)


def build(tables: Tables, *, module: str | None, top: int) -> list[Block]:
    """The time of a module, and of each of its launches, against the roofs of the chip."""
    row, blocks = opening(tables, module, QUESTION)
    frame = launches(tables, row)
    if frame.empty:
        return [*blocks, nothing(row), *problems_tail(tables)]
    found = times.prediction_of(tables, row)
    if found is not None:
        figures = (*times.time_figures(found, costs.chip_of(row)), *times.overlap_figures(found))
        blocks += [Figures((*figures, times.floor_figure(found.floor))), *times.reservations(found)]
    else:
        blocks.append(
            Note("No time of a run: how often a loop trips is not known, or nothing tells any time.", "missing")
        )
    ordered = frame.sort_values("predicted_total_ns", ascending=False, kind="stable", na_position="last")
    note = "Times, FLOPs and bytes are of one run of the module. A value in VMEM is no HBM traffic, a transfer is."
    blocks.append(Grid("Kernels", cut(ordered, top), telling(ordered, COLUMNS), len(ordered), note, "instruction"))
    odd = predicted.unusual(ordered)
    if len(odd):
        least, most = predicted.USUAL_RATIOS
        note = f"Outside {least:g} to {most:g} times the floor, of those with a floor of a microsecond or more."
        blocks.append(Grid("Far from the floor", cut(odd, top), telling(odd, UNUSUAL), len(odd), note, "instruction"))
    return [*blocks, *problems_tail(tables)]


def launches(tables: Tables, row: dict[str, Any]) -> pd.DataFrame:
    """The predictions of a module with figures of one run, and the source of each."""
    name = str(row["module"])
    frame = predicted.with_totals(rows_of(tables, "predictions", name), costs.chip_of(row))
    instructions = rows_of(tables, "instructions", name, predicted.INSTRUCTION_COLUMNS)
    final = instructions[instructions["stage"] == row["final_stage"]]
    places = final[[*PLACE, "op_name", "source_file", "source_line"]].drop_duplicates(PLACE)
    return with_source(frame.merge(places, on=PLACE, how="left"))


def nothing(row: dict[str, Any]) -> Note:
    """Why there is no prediction, and the command that would bring one."""
    capture = "hlotrace capture MODEL.py --target v5e"
    if row["platform"] not in ("tpu", None):
        return Note("No prediction: it was not compiled for a TPU. The TPU's compiler needs none:", "missing", capture)
    if row["error"] is not None:
        return Note("No prediction: there is no executable.", "missing")
    return Note("No prediction: these files do not say which chip it was compiled for.", "missing", capture)


VIEW = View("roofline", "Roofline", QUESTION, (MODULE, TOP), build)
