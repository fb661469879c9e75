"""Writes docs/accuracy.md and hlotrace/hlo/calibration.csv from measurements: `python docs/make_accuracy.py`.

The measurements are benchmarks/tpu_measurements.csv, which `benchmarks/tpu_traces.py` made from two real traces.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hlotrace.hlo.calibration import ANY_CLASS, ENOUGH_KINDS, Factors
from hlotrace.hlo.operation_class import CLASSES
from hlotrace.hlo.predictions import scaled_floor

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "benchmarks" / "tpu_measurements.csv"
CALIBRATION = ROOT / "hlotrace" / "hlo" / "calibration.csv"
PAGE = Path(__file__).with_name("accuracy.md")
UNITS = {"compute": "compute_floor_ns", "HBM": "hbm_floor_ns", "VMEM": "vmem_floor_ns"}
FIELDS = ("class", "basis", "unit", "kinds", "runs", "median", "low", "high", "error", "chips")
PLAIN = 0.05
"""An operation whose VMEM floor is less than this part of its HBM floor hardly touches VMEM."""
TINY_NS = 5.0
"""A floor below this says nothing of a launch that touches HBM: what is measured then is how long starting takes."""
FUSED = "matmul with fused inputs"
"""What the measurements call a product that computes one of its inputs."""
WITHIN_A_CHIP = ("tpu7x", "collective")
"""Its groups were the two devices of one chip, between which no link of the torus lies."""


@dataclass(frozen=True)
class Kind:
    """A distinct operation: what was measured, and its raw figures in ns; None where there is none."""

    chip: str
    name: str
    operation: str
    runs: int
    measured: float
    floors: dict[str, float]
    model: float | None
    link: float | None

    @property
    def floor(self) -> float:
        """The largest of its floors."""
        return max(self.floors.values())

    @property
    def is_product(self) -> bool:
        """Whether matrix units do most of it."""
        return self.rule == "matmul fusion"

    @property
    def rule(self) -> str:
        """The class that its rule is for."""
        return "matmul fusion" if self.name == FUSED else self.name

    @property
    def is_tiny(self) -> bool:
        """Whether starting it took longer than what it does."""
        return self.floor < TINY_NS and self.floors["HBM"] > 0


def kinds() -> list[Kind]:
    """The measurements; operations of one chip and class with the same raw figures are one kind, their median."""
    alike: dict[tuple[object, ...], list[dict[str, str]]] = defaultdict(list)
    with MEASUREMENTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            figures = (row[name] for name in (*UNITS.values(), "model_ns", "link_ns"))
            alike[row["chip"], row["class"], *figures].append(row)
    return [_kind(rows) for rows in alike.values()]


def _kind(rows: list[dict[str, str]]) -> Kind:
    first = rows[0]
    number = {name: float(first[name]) if first[name] else None for name in ("model_ns", "link_ns")}
    return Kind(
        first["chip"],
        first["class"],
        first["operation"],
        sum(int(row["runs"]) for row in rows),
        statistics.median(float(row["measured_ns"]) for row in rows),
        {unit: float(first[column]) for unit, column in UNITS.items()},
        number["model_ns"],
        number["link_ns"],
    )


def usable(measured: list[Kind]) -> list[Kind]:
    """Those whose time says something of what they do."""
    return [kind for kind in measured if not kind.is_tiny and (kind.chip, kind.name) != WITHIN_A_CHIP]


def factors(measured: list[Kind]) -> Factors:
    """What the HBM floor and the VMEM floor of memory-bound operations are worth in measured time.

    The first from those that hardly touch VMEM, the second from what it leaves of the others: medians both.
    """
    memory = [kind for kind in usable(measured) if not kind.link and kind.floors["compute"] < kind.floor]
    plain = [kind for kind in memory if kind.floors["VMEM"] < PLAIN * kind.floors["HBM"]]
    hbm = statistics.median(kind.measured / kind.floors["HBM"] for kind in plain)
    others = [kind for kind in memory if kind not in plain and not kind.is_product]
    left = [(kind.measured - hbm * kind.floors["HBM"]) / kind.floors["VMEM"] for kind in others]
    return Factors(hbm, statistics.median(value for value in left if value > 0))


def ratios(measured: list[Kind]) -> dict[tuple[str, str, str], list[tuple[Kind, float]]]:
    """Measured time over each raw figure, by class, basis and unit."""
    found: dict[tuple[str, str, str], list[tuple[Kind, float]]] = defaultdict(list)
    worth = factors(measured)
    for kind in usable(measured):
        if kind.model:
            found[kind.rule, "cost model", ""].append((kind, kind.measured / kind.model))
        if kind.link:
            found[kind.rule, "link model", ""].append((kind, kind.measured / kind.link))
            continue
        raw, unit = scaled_floor(*(kind.floors[unit] for unit in UNITS), worth=worth)
        if raw:
            for name in (kind.rule, ANY_CLASS):
                found[name, "floor", unit].append((kind, kind.measured / raw))
    return found


def split_error(values: list[float]) -> float | None:
    """Every second one predicted with the median of the others: the median error; None for too few."""
    if len(values) < 2 * ENOUGH_KINDS:
        return None
    median = statistics.median(values[::2])
    return statistics.median(abs(median / value - 1) for value in values[1::2])


def calibration_rows(measured: list[Kind]) -> list[dict[str, str]]:
    """The rows of calibration.csv."""
    rows = []
    everything = ratios(measured)
    order = [*CLASSES, ANY_CLASS]
    for (name, basis, unit), found in sorted(everything.items(), key=lambda item: (order.index(item[0][0]), item[0])):
        values = [ratio for _, ratio in found]
        chips = "+".join(sorted({kind.chip for kind, _ in found}))
        rows.append(_row(name, basis, unit, sum(kind.runs for kind, _ in found), values, chips))
    lowest, highest = (
        pick(pick(ratio for _, ratio in found) / statistics.median(ratio for _, ratio in found) for found in given)
        for pick, given in ((min, everything.values()), (max, everything.values()))
    )
    single = [ratio for (_, basis, _), found in everything.items() if basis != "floor" for _, ratio in found]
    low, high = (_text(pick(value, *single)) for pick, value in ((min, lowest), (max, highest)))
    rows.append(_row(ANY_CLASS, ANY_CLASS, "", 0, [1.0], "") | {"low": low, "high": high, "kinds": "0"})
    worth = factors(measured)
    for unit, value in (("HBM", worth.hbm), ("VMEM", worth.vmem)):
        rows.append(_row(ANY_CLASS, "factor", unit, 0, [value], "") | {"kinds": "0"})
    tiny = [kind for kind in measured if kind.is_tiny and not kind.link]
    chips = "+".join(sorted({kind.chip for kind in tiny}))
    times = [kind.measured for kind in tiny]
    rows.append(_row(ANY_CLASS, "overhead", "", sum(kind.runs for kind in tiny), times, chips))
    return rows


def _row(name: str, basis: str, unit: str, runs: int, values: list[float], chips: str) -> dict[str, str]:
    error = split_error(values)
    cells = (
        *(name, basis, unit, str(len(values)), str(runs)),
        *map(_text, (statistics.median(values), min(values), max(values))),
        "" if error is None else _text(error),
        chips,
    )
    return dict(zip(FIELDS, cells, strict=True))


def held_out_error(measured: list[Kind]) -> float:
    """Floors of memory-bound kinds, both factors fitted on every second one: the median error on the others."""
    memory = [kind for kind in usable(measured) if not kind.link and not kind.is_product]
    worth = factors(memory[::2])
    predicted = [(kind, scaled_floor(*(kind.floors[unit] for unit in UNITS), worth=worth)[0]) for kind in memory[1::2]]
    return statistics.median(abs(value / kind.measured - 1) for kind, value in predicted)


def _text(value: float) -> str:
    return f"{value:.4g}"


INTRODUCTION = """\
# Accuracy

How far the predicted times can be trusted: each class of launches against what was measured on real TPUs. This page
and the factors that predictions use (`hlotrace/hlo/calibration.csv`) are made by `python docs/make_accuracy.py` from
`benchmarks/tpu_measurements.csv`, a row a distinct operation, which `benchmarks/tpu_traces.py` makes from two traces:

- TPU v6e: `tpu_inference_2.xplane.pb` of openxla/xprof (Apache-2.0). Its HLO is whole, with the cost model's cycles.
- TPU7x: a decoding language model of vllm-project/tpu-inference (Apache-2.0). The text of each operation is left, so
  that floors can be told. Its products were rebuilt from their operands and compiled for tpu7x, for the cost model's
  word on them.

Cycles become time at the clocks in `hlotrace/devices.py`: 1.75 GHz for v6e and 2.2 GHz for tpu7x, both inferred from
published peaks, so that an error of a clock is in the factors. Nothing was measured on v2, v3, v4, v5e or v5p: there
the factors of v6e and tpu7x stand in.

## Factors

Raw figures are the compiler's cycles over the clock, or floors; what was measured over them is their factor. The
compiler's figures are predictions as they are, floors are multiplied by the median factor of their class; the range
goes from the smallest to the largest factor, and nothing is predicted below its floor. *Error*: the kinds halved, one
half predicted with the median of the other, the median error. A class with fewer than {enough} kinds is
**uncalibrated**: the factors of all classes stand in where there are some, and else the widest range.

A floor is no time yet: no unit reaches its peak, and one does not hide the other. Two factors for all memory-bound
operations make it one: {hbm} times the HBM floor plus {vmem} times the VMEM floor (the compute floor, where that is
longer). Fitted on every second kind, they miss the others by {held:.0%} in the median. *Floor, HBM* and *floor, VMEM*
below say which of the two parts is the larger.

"""

LIMITS = """\

## What this does not tell

- Rebuilt products are kept in the memory that the compiler chooses anew, which need not be where they were in the run.
  Those that compute an input (a norm, an activation) ran in {fused} of what the cost model says of the rebuilt
  ones, those that read theirs as they are in {plain}. Whether the cost model or the rebuilding is at fault for the
  first cannot be told from this: no factor is applied, the range covers both.
- No other class has a cost-model factor: of memory-bound operations the v6e trace measures two kinds (f32 broadcast
  adds at {adds} of the cost model's time, a bare broadcast at {broadcast}), too few to trust it there. They are
  predicted from their floor.
- Operations bound by VMEM stray most: layouts and element types, which the floor does not know, decide there.
- Collectives: one kind on links, the all-reduce of v6e, took {reduce} of the link model's time. The all-reduces of
  TPU7x stay within a chip and say nothing of links. So collectives are uncalibrated.
- Not checked at all: gathers and scatters, sorts, Pallas calls (the TPU7x trace has ragged paged attention, whose work
  depends on the lengths in the cache), async copies, host transfers.
- The TPU7x trace does not name its chip; its tiles, its products' speed and its bandwidth fit no other.
"""


def page(measured: list[Kind], rows: list[dict[str, str]]) -> str:
    """The whole text of docs/accuracy.md."""
    worth = factors(measured)
    lines = [
        INTRODUCTION.format(
            enough=ENOUGH_KINDS, hbm=_text(worth.hbm), vmem=_text(worth.vmem), held=held_out_error(measured)
        )
    ]
    lines.append("| class | raw figure | kinds | runs | median | smallest | largest | error | measured on | |")
    lines.append("| --- | --- | --: | --: | --: | --: | --: | --: | --- | --- |")
    lines += [_line(row) for row in rows if row["basis"] != "overhead" and row["kinds"] != "0"]
    covered = {row["class"] for row in rows}
    lines += [f"| {name} | – | 0 | 0 | – | – | – | – | – | uncalibrated |" for name in CLASSES if name not in covered]
    overhead, widest = (next(row for row in rows if row["basis"] == basis) for basis in ("overhead", ANY_CLASS))
    lines.append(
        f"\nA launch that touches HBM took {overhead['median']} ns at the least ({overhead['low']} to "
        f"{overhead['high']}, {overhead['kinds']} kinds on {overhead['chips']} with next to nothing to do):\n"
        "shorter predictions are raised to that. Where not even a class's basis was measured, the range is "
        f"{widest['low']} to {widest['high']} times the raw figure.\n"
    )
    found = ratios(measured)
    lines.append(
        LIMITS.format(
            fused=_span([item for item in found["matmul fusion", "cost model", ""] if item[0].name == FUSED]),
            plain=_span([item for item in found["matmul fusion", "cost model", ""] if item[0].name != FUSED]),
            adds=_percent(found["loop fusion", "cost model", ""]),
            broadcast=_percent(found["bare broadcast, copy or convert", "cost model", ""]),
            reduce=_percent(found["collective", "link model", ""]),
        )
    )
    lines.append(_measurements(measured))
    return "\n".join(lines)


def _percent(found: list[tuple[Kind, float]]) -> str:
    return " and ".join(f"{ratio:.0%}" for _, ratio in found)


def _span(found: list[tuple[Kind, float]]) -> str:
    values = [ratio for _, ratio in found]
    return f"{min(values):.0%} to {max(values):.0%}"


def _line(row: dict[str, str]) -> str:
    basis = f"{row['basis']}, {row['unit']}" if row["unit"] else row["basis"]
    verdict = "" if int(row["kinds"]) >= ENOUGH_KINDS else "uncalibrated"
    name = "all classes" if row["class"] == ANY_CLASS else row["class"]
    error = f"{float(row['error']):.0%}" if row["error"] else "–"
    cells = (
        name,
        basis,
        row["kinds"],
        row["runs"],
        row["median"],
        row["low"],
        row["high"],
        error,
        row["chips"],
        verdict,
    )
    return f"| {' | '.join(cells)} |"


def _measurements(measured: list[Kind]) -> str:
    head = (
        "\n## Every kind\n\n| chip | class | operation | runs | measured (us) | compute floor | HBM floor | VMEM floor "
        "| cost model |\n"
        "| --- | --- | --- | --: | --: | --: | --: | --: | --: |\n"
    )
    return head + "\n".join(
        f"| {kind.chip} | {kind.name} | `{kind.operation}` | {kind.runs} | {kind.measured / 1e3:,.2f} | "
        + " | ".join(_us(value) for value in (*kind.floors.values(), kind.model))
        + " |"
        for kind in measured
    ) + "\n"  # fmt: skip


def _us(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e3:,.3f}"


def main() -> None:
    """Write both files."""
    measured = kinds()
    rows = calibration_rows(measured)
    with CALIBRATION.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    PAGE.write_text(page(measured, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
