"""The predicted time of one run of a program: a range, what it is made of, and how well it would use the chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotrace.analyses import costs, overlap
from hlotrace.analyses.overlap import Schedule, Span
from hlotrace.tables import LINES

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.devices import Chip

COMPILERS_OWN = ("cost model", "bundles")
ENOUGH_FOR_MFU = 0.8
"""The part of the time that has to be the compiler's own estimate before one MFU is given."""
USUAL_RATIOS = (0.9, 3.0)
"""Times over the floor; what is outside is worth a look: the floor or the estimate is off, or the chip is ill used."""
MEASURABLE_NS = 1_000
"""Launches with a smaller floor are bound by starting, and their ratio says nothing."""
PRODUCTS = ("dot", "convolution", "ragged-dot", "scaled-dot")
_REMATERIALISED = r"\.remat"
_REMATERIALISED_SCOPE = r"rematted_computation"

INSTRUCTION_COLUMNS = (
    *overlap.COLUMNS,
    *("op_name", *LINES, "flops", "execution_count", "hbm_read_bytes", "hbm_write_bytes"),
)
"""The columns of `instructions` that a prediction of a program reads."""


@dataclass(frozen=True)
class Prediction:
    """One run of a program.

    Attributes:
        ns: as scheduled. low_ns: all asynchronous work hidden, each launch at its least; high_ns: none hidden, at most.
        all_hidden_ns, none_hidden_ns: the same with each launch at its predicted time.
        compilers_share: the part of the time of all launches that is the compiler's own estimate.
        uncalibrated_share: the part in classes without measurements.
        without: launches that nothing is predicted of, by class, with the executions; they are in no time above.
        floor: no run is faster.
        model_share: the part of the products' FLOPs that is no rematerialisation; None without products.
        has_kernels: whether there are Pallas calls, whose FLOPs only their authors estimate.
    """

    ns: float
    low_ns: float
    high_ns: float
    all_hidden_ns: float
    none_hidden_ns: float
    compilers_share: float
    uncalibrated_share: float
    without: tuple[tuple[str, int], ...]
    floor: costs.Floor
    model_share: float | None
    has_kernels: bool

    @property
    def hfu(self) -> float | None:
        """All FLOPs at the peak of their types over the time: hardware FLOPs utilisation."""
        return (self.floor.compute_ns or 0.0) / self.ns if self._tells_utilisation else None

    @property
    def mfu(self) -> float | None:
        """The same without rematerialised products: model FLOPs utilisation."""
        return self.hfu * self.model_share if self.hfu is not None and self.model_share is not None else None

    def mfu_of(self, model_flops: int, chip: Chip | None) -> float | None:
        """The MFU by given FLOPs of one run on one device, at the bf16 peak; also with Pallas calls."""
        peak = chip.peak_flops("bf16") if chip is not None else None
        return model_flops / peak.value * 1e9 / self.ns if peak is not None and self.is_the_compilers else None

    @property
    def is_the_compilers(self) -> bool:
        """Whether enough of the time is the compiler's own estimate to tell how well the chip is used."""
        return self.ns > 0 and self.compilers_share >= ENOUGH_FOR_MFU

    @property
    def _tells_utilisation(self) -> bool:
        return self.is_the_compilers and not self.has_kernels


def predict(
    instructions: pd.DataFrame, computations: pd.DataFrame, predictions: pd.DataFrame, module: dict[str, Any]
) -> Prediction | None:
    """The prediction of a module; None where its chip, its final stage's loops or all its launches are unknown.

    Args:
        instructions: its rows, INSTRUCTION_COLUMNS of them, computations and predictions: its rows of these tables.
        module: its row of `modules`.
    """
    chip: Chip | None = costs.chip_of(module)
    floor = costs.floor(predictions, chip)
    if floor is None or predictions["predicted_ns"].isna().all():
        return None
    final = instructions[instructions["stage"] == module["final_stage"]]
    schedule = Schedule(final, computations[computations["stage"] == module["final_stage"]])
    spans: list[Span] = []
    for column in ("predicted_ns", "low_ns", "high_ns"):
        span = schedule.span(predictions, column)
        if span is None:
            return None
        spans.append(span)
    usual, low, high = spans
    total = (predictions["predicted_ns"] * predictions["execution_count"]).fillna(0)
    least = max(min(low.all_hidden, usual.all_hidden), floor.ns)
    return Prediction(
        ns=max(usual.scheduled, floor.ns),
        low_ns=least,
        high_ns=max(high.none_hidden, floor.ns),
        all_hidden_ns=max(usual.all_hidden, floor.ns),
        none_hidden_ns=max(usual.none_hidden, floor.ns),
        compilers_share=_share(total, predictions["basis"].isin(COMPILERS_OWN)),
        uncalibrated_share=_share(total, ~predictions["is_calibrated"].fillna(True).astype(bool)),
        without=_without(predictions),
        floor=floor,
        model_share=_model_share(final),
        has_kernels=bool((predictions["class"] == "Pallas call").any()),
    )


def _share(amounts: pd.Series, chosen: pd.Series) -> float:
    total = float(amounts.sum())
    return float(amounts[chosen].sum()) / total if total else 0.0


def _without(predictions: pd.DataFrame) -> tuple[tuple[str, int], ...]:
    missing = predictions[predictions["predicted_ns"].isna()]
    counts = missing["execution_count"].fillna(1).groupby(missing["class"]).sum().sort_values(ascending=False)
    return tuple((str(name), int(count)) for name, count in counts.items())


def _model_share(final: pd.DataFrame) -> float | None:
    """Of the FLOPs of dots and convolutions, members of fusions too, the part that is computed for the first time."""
    products = final[final["opcode"].isin(PRODUCTS)]
    flops = (products["flops"] * products["execution_count"]).fillna(0).astype("float64")
    total = float(flops.sum())
    if not total:
        return None
    again = products["instruction"].str.contains(_REMATERIALISED, na=False)
    again |= products["op_name"].str.contains(_REMATERIALISED_SCOPE, na=False)
    return float(flops[~again].sum()) / total


def with_totals(predictions: pd.DataFrame, chip: Chip | None) -> pd.DataFrame:
    """The predictions with figures of one run: times, FLOPs and bytes times the executions, and their intensity.

    Adds `predicted_total_ns`, `low_total_ns`, `high_total_ns`, `floor_total_ns`, `flops_total`, `hbm_bytes_total`,
    `intensity` (FLOPs a byte; null without traffic) and `ratio` (the compiler's time where it is the basis, else the
    predicted one, over the floor; null where the floor is too small to tell).
    """
    count = predictions["execution_count"]
    names = {"predicted_ns": "predicted_total_ns", "low_ns": "low_total_ns", "high_ns": "high_total_ns"}
    names |= {"floor_ns": "floor_total_ns", "flops": "flops_total", "hbm_bytes": "hbm_bytes_total"}
    made = predictions.assign(**{total: predictions[one] * count for one, total in names.items()})
    figures = {name: made[name].astype("Float64") for name in ("flops", "hbm_bytes", "floor_ns")}
    told = figures["floor_ns"].where(figures["floor_ns"] >= MEASURABLE_NS)
    return made.assign(
        intensity=(figures["flops"] / figures["hbm_bytes"].where(figures["hbm_bytes"] > 0)).astype("float64"),
        ratio=(_raw_ns(made, chip) / told).astype("float64"),
    )


def _raw_ns(predictions: pd.DataFrame, chip: Chip | None) -> pd.Series:
    """The compiler's time as it stands where a prediction was made of it, which may lie below the floor."""
    raw = predictions["predicted_ns"].astype("Float64")
    if chip is None or chip.clock is None:
        return raw
    for basis, column in (("cost model", "estimated_cycles"), ("bundles", "bundle_cycles")):
        raw = raw.mask(predictions["basis"] == basis, predictions[column] * (1e9 / chip.clock.value))
    return raw


def unusual(predictions: pd.DataFrame) -> pd.DataFrame:
    """Launches whose `ratio` to the floor is outside USUAL_RATIOS, those that take longest first."""
    least, most = USUAL_RATIOS
    found = predictions[(predictions["ratio"] < least) | (predictions["ratio"] > most)]
    return found.sort_values("predicted_total_ns", ascending=False, kind="stable")
