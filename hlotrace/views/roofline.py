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
from hlotrace.errors import HlotraceError
from hlotrace.tables import LINES
from hlotrace.units import format_bytes, format_count, format_ns
from hlotrace.views import times
from hlotrace.views.blocks import Block, Figures, Grid, Note, Scatter, ShownColumn
from hlotrace.views.common import SOURCE, cut, opening, problems_tail, rows_of, telling, with_source
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.devices import Chip

QUESTION = "How long would it run on the chip, and what bounds each kernel?"

MODEL_FLOPS = Parameter("model_flops", "int", "FLOPs of one run on one device, for the MFU")
MOST_POINTS = 300
COLOURED_AS = {
    "matmul fusion": "matmul",
    "reduce": "reduction",
    "data movement fusion": "data movement",
    "bare broadcast, copy or convert": "data movement",
    "bare slice or pad": "data movement",
    "gather or scatter": "data movement",
    "Pallas call": "custom call",
    "host transfer": "host",
}
"""The palette's names of classes that have others."""
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
    ShownColumn("intensity", "FLOPs a byte", "count", "predicted"),
    ShownColumn("execution_count", "runs", "count", "predicted"),
    SOURCE,
)
UNUSUAL = (
    ShownColumn("instruction", "op", emphasis="code"),
    ShownColumn("class", "class"),
    ShownColumn("ratio", "times the floor", "count", "predicted"),
    ShownColumn("predicted_total_ns", "predicted", "ns", "predicted"),
    ShownColumn("floor_total_ns", "floor", "ns", "predicted"),
    ShownColumn("basis", "basis"),
    SOURCE,
)


def build(tables: Tables, *, module: str | None, model_flops: int | None, top: int) -> list[Block]:
    """The time of a module, and of each of its launches, against the roofs of the chip."""
    if model_flops is not None and model_flops <= 0:
        raise HlotraceError("expected FLOPs of one run, above 0", place=f"--model-flops {model_flops}")
    row, blocks = opening(tables, module, QUESTION)
    frame = launches(tables, row)
    if frame.empty:
        return [*blocks, nothing(row), *problems_tail(tables)]
    found = times.prediction_of(tables, row)
    if found is not None:
        figures = (*times.time_figures(found, costs.chip_of(row), model_flops), *times.overlap_figures(found))
        blocks += [
            Figures((*figures, times.floor_figure(found.floor, has_kernels=found.has_kernels))),
            *times.reservations(found, model_flops),
        ]
    else:
        blocks.append(
            Note("No time of a run: how often a loop trips is not known, or nothing tells any time.", "missing")
        )
    ordered = frame.sort_values("predicted_total_ns", ascending=False, kind="stable", na_position="last")
    branches = " Each branch of a conditional counts." if frame["branch"].notna().any() else ""
    note = f"Times, FLOPs and bytes are of one run of the module.{branches} VMEM is no HBM traffic, a transfer is."
    blocks.append(Grid("Kernels", cut(ordered, top), telling(ordered, COLUMNS), len(ordered), note, "instruction"))
    blocks += chart(ordered, costs.chip_of(row))
    odd = predicted.unusual(ordered)
    if len(odd):
        least, most = predicted.USUAL_RATIOS
        note = f"Outside {least:g} to {most:g} times the floor, of those with a floor of a microsecond or more."
        blocks.append(Grid("Far from the floor", cut(odd, top), telling(odd, UNUSUAL), len(odd), note, "instruction"))
    return [*blocks, *problems_tail(tables)]


def chart(frame: pd.DataFrame, chip: Chip | None) -> list[Block]:
    """Each kernel with FLOPs and HBM traffic under the roofs of the chip; nothing where there is no such kernel."""
    known = (frame["flops"] > 0) & (frame["hbm_bytes"] > 0) & (frame["predicted_ns"] > 0)
    shown = frame[known.fillna(False).astype(bool)].head(MOST_POINTS)
    peak = chip.peak_flops("bf16") if chip is not None else None
    if shown.empty or chip is None or peak is None:
        return []
    x = [float(value) for value in shown["intensity"]]
    speed = shown["flops"].astype("float64") / shown["predicted_ns"].astype("float64") * 1e9
    y = [float(value) for value in speed]
    slope, top = chip.device_hbm_bandwidth.value, peak.value
    ridge = top / slope
    left, right = min(*x, ridge / 10), max(*x, ridge * 10)
    roofs: dict[str, tuple[tuple[float, float], ...]] = {
        f"HBM {slope / 1e9:,.0f} GB/s": ((left, slope * left), (ridge, top)),
        f"bf16 {format_count(top)}FLOP/s": ((ridge, top), (right, top)),
    }
    hover = (
        f"{name}\n{format_ns(ns)}, {format_count(flops)}FLOP, {format_bytes(moved)}"
        for name, ns, flops, moved in zip(
            shown["instruction"], shown["predicted_ns"], shown["flops"], shown["hbm_bytes"], strict=True
        )
    )
    groups = (COLOURED_AS.get(name, name) for name in shown["class"])
    title = f"Roofline: {len(shown):,} of {len(frame):,} kernels, those with FLOPs and HBM traffic"
    axes = ("FLOPs a byte of HBM", "FLOP/s, predicted")
    return [
        Scatter(
            title,
            tuple(shown["instruction"]),
            tuple(groups),
            tuple(x),
            tuple(y),
            *axes,
            roofs,
            "predicted",
            tuple(hover),
        )
    ]


def launches(tables: Tables, row: dict[str, Any]) -> pd.DataFrame:
    """The predictions of a module with figures of one run, and the source of each."""
    name = str(row["module"])
    frame = predicted.with_totals(rows_of(tables, "predictions", name), costs.chip_of(row))
    instructions = rows_of(tables, "instructions", name, predicted.INSTRUCTION_COLUMNS)
    final = instructions[instructions["stage"] == row["final_stage"]]
    places = final[[*PLACE, "op_name", *LINES]].drop_duplicates(PLACE)
    return with_source(frame.merge(places, on=PLACE, how="left"))


def nothing(row: dict[str, Any]) -> Note:
    """Why there is no prediction, and the command that would bring one."""
    capture = "hlotrace capture MODEL.py --target v5e"
    if row["platform"] not in ("tpu", None):
        return Note("No prediction: it was not compiled for a TPU. The TPU's compiler needs none:", "missing", capture)
    if row["error"] is not None:
        return Note("No prediction: there is no executable.", "missing")
    return Note("No prediction: these files do not say which chip it was compiled for.", "missing", capture)


VIEW = View("roofline", "Roofline", QUESTION, (MODULE, MODEL_FLOPS, TOP), build)
