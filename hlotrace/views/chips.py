"""Which chip does the program fit, and how fast would it be there?

jit_layer on 5 targets
target   fits  HBM (MiB)  there is (GiB)  predicted (us)  at least  at most   floor  bound by       MFU (%)
v5e:2x2  yes      161.92           15.75          754.31    597.55  1087.18  375.78  HBM bandwidth     37.1
v6e:2x2  yes      161.37           31.24          291.50    230.90   461.47  187.89  HBM bandwidth     22.2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import chips
from hlotrace.units import format_bytes
from hlotrace.views import times
from hlotrace.views.blocks import Block, Grid, Heading, Note, ShownColumn
from hlotrace.views.common import problems_tail, rows_of, telling
from hlotrace.views.view import MODULE, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Which chips does the program fit, and how fast would it be there?"

COLUMNS = (
    ShownColumn("target", "target", emphasis="code"),
    ShownColumn("verdict", "fits"),
    ShownColumn("hbm_needed_bytes", "HBM", "bytes"),
    ShownColumn("hbm_peak_bytes", "at peak", "bytes"),
    ShownColumn("hbm_capacity_bytes", "there is", "bytes"),
    ShownColumn("predicted_ns", "predicted", "ns", "predicted"),
    ShownColumn("low_ns", "at least", "ns", "predicted"),
    ShownColumn("high_ns", "at most", "ns", "predicted"),
    ShownColumn("floor_ns", "floor", "ns", "predicted"),
    ShownColumn("bound_by", "bound by"),
    ShownColumn("mfu", "MFU", "share", "predicted"),
    ShownColumn("vmem_peak_bytes", "VMEM peak", "bytes"),
    ShownColumn("compile_ns", "compile", "ns", "measured"),
)
ALWAYS = ("target", "verdict", "predicted_ns")
NOTE = (
    "Times are of one run on one device, which is a core on v2, v3, v4 and tpu7x and a chip elsewhere. HBM is what one "
    "device needs, code included, the most that is alive at once, and what it has. Which classes of kernels were "
    "measured: docs/accuracy.md."
)


def build(tables: Tables, *, module: str | None) -> list[Block]:
    """One row a target: fit, time and use of the chip."""
    found = chips.places(tables["modules"], tables.manifest, module)
    rows = [_record(tables, place) for place in found]
    frame = _frame(rows)
    name = next((place.module["name"] for place in found if place.module), "")
    several = "1 target" if len(found) == 1 else f"{len(found)} targets"
    blocks: list[Block] = [Heading(f"{name} on {several}", QUESTION)]
    columns = [column for column in COLUMNS if column.name in ALWAYS or column in telling(frame, COLUMNS)]
    blocks.append(Grid("Chips", frame, tuple(columns), len(frame), NOTE, "module"))
    blocks += [Note(f"{row['target']}: {trouble}", "warning") for row in rows if (trouble := _trouble(row))]
    if len(found) == 1:
        text = "Several chips side by side:"
        blocks.append(Note(text, command="hlotrace chips MODEL.py --targets v5e,v6e,tpu7x -o chips.hlotrace"))
    return [*blocks, *problems_tail(tables)]


def _record(tables: Tables, place: chips.Place) -> dict[str, Any]:
    if place.module is None:
        return chips.record(place, None, ())
    timeline = rows_of(tables, "memory_timeline", str(place.module["module"]), ("memory_space", "live_bytes"))
    live = zip(timeline["memory_space"].tolist(), timeline["live_bytes"].tolist(), strict=True)
    return chips.record(place, times.prediction_of(tables, place.module), live)


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(records)
    for name in frame.columns:
        if name.endswith(("_ns", "_bytes")):
            frame[name] = frame[name].astype("Int64")
        elif name in ("mfu", "compilers_share"):
            frame[name] = frame[name].astype("float64")
        elif name == "fits":
            frame[name] = frame[name].astype("boolean")
    return frame.assign(verdict=[_verdict(row) for row in records])


def _verdict(row: dict[str, Any]) -> str:
    if row["fits"] is None:
        return "not known" if row["error"] is None else "no executable"
    return "yes" if row["fits"] else "no"


def _trouble(row: dict[str, Any]) -> str | None:
    """What stands in the way on a target, in a sentence; None where nothing does."""
    needed, capacity = row["hbm_needed_bytes"], row["hbm_capacity_bytes"]
    if row["fits"] is False and needed is not None and capacity is not None and needed > capacity:
        over = format_bytes(needed - capacity)
        return f"does not fit by {over}: it needs {format_bytes(needed)}, there are {format_bytes(capacity)}"
    if row["without"]:
        return f"nothing tells the time of {', '.join(row['without'])}: they are not in it"
    return row["error"]


VIEW = View("chips", "Chips", QUESTION, (MODULE,), build)
