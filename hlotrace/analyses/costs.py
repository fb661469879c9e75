"""What the launches of a program cost, by the compiler's estimate where it gave one, and the chip's floor under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hlotrace import devices
from hlotrace.hlo.branches import costliest
from hlotrace.tables import LINES

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.devices import Chip, Sourced


Ranking = Literal["cycles_total", "flops_total", "hbm_bytes_total"]

BRANCH_WORDS = "the costliest branch of each conditional"

COLUMNS = (
    "stage",
    "computation",
    "instruction",
    "opcode",
    "category",
    "is_launch",
    "shape",
    "fusion_kind",
    "custom_call_target",
    "op_name",
    *LINES,
    "flops",
    "execution_count",
    "branch",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "estimated_cycles",
)
"""The columns of `instructions` that this reads."""


def with_totals(instructions: pd.DataFrame) -> pd.DataFrame:
    """The instructions with `cycles_total`, `flops_total`, `hbm_bytes_total`: one execution times its count.

    Null where the figure or the count is not known.
    """
    count = instructions["execution_count"]
    moved = instructions["hbm_read_bytes"] + instructions["hbm_write_bytes"]
    return instructions.assign(
        cycles_total=instructions["estimated_cycles"] * count,
        flops_total=instructions["flops"] * count,
        hbm_bytes_total=moved * count,
    )


def launches(instructions: pd.DataFrame, stage: str | None) -> pd.DataFrame:
    """The launches of a stage, with totals."""
    chosen = (instructions["stage"] == stage) & instructions["is_launch"]
    return with_totals(instructions[chosen.fillna(False).astype(bool)])


def ranking(launched: pd.DataFrame) -> Ranking:
    """What launches can be ranked by: estimated cycles, without these FLOPs, without these HBM bytes."""
    for name in ("cycles_total", "flops_total"):
        if (launched[name].fillna(0) > 0).any():
            return name
    return "hbm_bytes_total"


def top_launches(launched: pd.DataFrame, by: Ranking | None = None) -> pd.DataFrame:
    """The launches by cost, largest first, with `share`: the part of the total of those that have a figure."""
    by = by or ranking(launched)
    order = [by, *(name for name in ("flops_total", "hbm_bytes_total") if name != by)]
    ordered = launched.sort_values(order, ascending=False, kind="stable", na_position="last")
    total = float(ordered[by].sum())
    share = ordered[by].astype("Float64").astype("float64") / total if total else float("nan")
    return ordered.assign(share=share)


@dataclass(frozen=True)
class Coverage:
    """How many launches of one run have an estimate, and the opcodes of those that have none, most first.

    `flops_share` and `bytes_share` are the parts of all known FLOPs and HBM bytes that stand behind an estimate, None
    where none are known; `without_flops` counts launches whose FLOPs are not.
    """

    estimated: int
    total: int
    without: tuple[tuple[str, int], ...]
    flops_share: float | None
    bytes_share: float | None
    without_flops: int

    @property
    def share(self) -> float:
        """The part of the launches that has an estimate."""
        return self.estimated / self.total if self.total else 0.0


def coverage(launched: pd.DataFrame) -> Coverage:
    """How far the compiler's estimates reach; a launch of unknown count counts once. `while` itself does no work."""
    working = launched[~launched["opcode"].isin(("while", "conditional", "call"))]
    count = working["execution_count"].fillna(1)
    has = working["estimated_cycles"].notna()
    missing = count[~has].groupby(working["opcode"]).sum().sort_values(ascending=False)
    return Coverage(
        int(count[has].sum()),
        int(count.sum()),
        tuple((str(opcode), int(n)) for opcode, n in missing.items()),
        _part(working["flops_total"], has),
        _part(working["hbm_bytes_total"], has),
        int(count[working["flops"].isna()].sum()),
    )


def _part(amounts: pd.Series, has: pd.Series) -> float | None:
    total = float(amounts.sum())
    return float(amounts[has].sum()) / total if total else None


def chip_of(module: dict[str, Any]) -> Chip | None:
    """The chip that a row of `modules` was compiled for; None for CPU, GPU and unknown."""
    return devices.chip_of(module.get("target"), module.get("device_kind"))


@dataclass(frozen=True)
class Floor:
    """The least time one run can take on a chip, whatever overlaps: the slower of its matrix units and its HBM."""

    compute_ns: float | None
    memory_ns: float | None
    bandwidth: Sourced

    @property
    def ns(self) -> float:
        """The larger of the two."""
        return max(self.compute_ns or 0.0, self.memory_ns or 0.0)

    @property
    def bound_by(self) -> str:
        """Which of the two it is."""
        return "FLOPs" if (self.compute_ns or 0.0) >= (self.memory_ns or 0.0) else "HBM bandwidth"


def floor(predictions: pd.DataFrame, chip: Chip | None) -> Floor | None:
    """The roofline floor of the launches in `predictions`; None where the chip or both amounts are unknown.

    Each FLOP is held against the peak of its own element type, so the floor stays one when 8-bit products run faster
    than bf16 ones. Of a conditional's branches the costliest counts.
    """
    if chip is None:
        return None
    count = predictions["execution_count"]
    compute, memory = (_of_one_run(predictions, predictions[f"{unit}_floor_ns"] * count) for unit in ("compute", "hbm"))
    if compute is None and memory is None:
        return None
    return Floor(compute, memory, chip.device_hbm_bandwidth)


def _of_one_run(predictions: pd.DataFrame, amounts: pd.Series) -> float | None:
    """The sum of what is known, of a conditional's branches the costliest; None where nothing is."""
    known = amounts.dropna()
    if known.empty:
        return None
    by_branch = known.groupby(predictions.loc[known.index, "branch"].fillna("").astype(str)).sum().astype("float64")
    return float(costliest(zip(by_branch.index.tolist(), by_branch.tolist(), strict=True)))
