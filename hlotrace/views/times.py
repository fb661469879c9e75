"""The predicted time of a module as headline figures, the same in every view that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import predicted
from hlotrace.units import format_count, format_ns, format_percent
from hlotrace.views.blocks import Block, Figure, Note
from hlotrace.views.common import rows_of

if TYPE_CHECKING:
    from hlotrace.analyses.costs import Floor
    from hlotrace.analyses.predicted import Prediction
    from hlotrace.devices import Chip
    from hlotrace.views.view import Tables


def prediction_of(tables: Tables, row: dict[str, Any]) -> Prediction | None:
    """The prediction of the module of a row of `modules`; None where its chip is not known, or nothing tells a time."""
    name = str(row["module"])
    predictions = rows_of(tables, "predictions", name)
    if predictions.empty:
        return None
    instructions = rows_of(tables, "instructions", name, predicted.INSTRUCTION_COLUMNS)
    return predicted.predict(instructions, rows_of(tables, "computations", name), predictions, row)


def time_figures(found: Prediction, chip: Chip | None, model_flops: int | None = None) -> list[Figure]:
    """The time with its range, and MFU and HFU where they can be told; by the model's FLOPs where they are given."""
    clock = f", at {chip.clock.value / 1e9:g} GHz ({chip.clock.basis})" if chip is not None and chip.clock else ""
    detail = (
        f"{format_ns(found.low_ns)} to {format_ns(found.high_ns)}; {found.compilers_share:.0%} of it the compiler's "
        f"estimate{clock}"
    )
    if found.without:
        detail += f"; without {_missing(found)}"
    figures = [Figure("predicted time of one run", found.ns, "ns", "predicted", detail)]
    if model_flops is not None:
        mfu = found.mfu_of(model_flops, chip)
        words = f"{format_count(model_flops)}FLOP, as given, at the bf16 peak"
        words += "; more than the chip can do in that time" if mfu is not None and mfu > 1 else ""
        figures.append(Figure("MFU", mfu, "share", "predicted", words))
    elif found.mfu is not None and found.hfu is not None:
        again = "" if found.model_share == 1 else f"; with rematerialised products (HFU) {format_percent(found.hfu)}"
        figures.append(Figure("MFU", found.mfu, "share", "predicted", f"FLOPs at the peaks of their types{again}"))
    return figures


def floor_figure(floor: Floor, *, has_kernels: bool = False) -> Figure:
    """The roofline floor, what bounds it, and the other unit alone."""
    if floor.bound_by == "FLOPs":
        limit, other, words = "FLOPs at the peaks of their types", floor.memory_ns, "HBM"
    else:
        limit, other, words = f"HBM bytes at {floor.bandwidth.value / 1e9:,.0f} GB/s", floor.compute_ns, "FLOPs"
    beside = "" if other is None else f"; {words} alone {format_ns(other)}"
    apart = "; without Pallas calls" if has_kernels else ""
    return Figure("roofline floor", floor.ns, "ns", "predicted", f"{limit}{beside}{apart}")


def overlap_figures(found: Prediction) -> list[Figure]:
    """The ends of the range with every launch at its predicted time: all asynchronous work hidden, and none."""
    return [
        Figure("all transfers hidden", found.all_hidden_ns, "ns", "predicted"),
        Figure("none hidden", found.none_hidden_ns, "ns", "predicted"),
    ]


def _missing(found: Prediction) -> str:
    return ", ".join(f"{name} x{format_count(count)}" for name, count in found.without)


def reservations(found: Prediction, model_flops: int | None = None) -> list[Block]:
    """What makes the time less sure: classes without measurements, launches without a figure, no MFU and why."""
    notes: list[Block] = []
    if found.uncalibrated_share > 0:
        share = format_percent(found.uncalibrated_share)
        notes.append(Note(f"{share} of the launches' time is in classes that were never measured: docs/accuracy.md."))
    if found.without:
        notes.append(Note(f"Nothing tells the time of {_missing(found)}: they are not in it.", "warning"))
    if found.has_kernels and model_flops is None:
        text = "No MFU: of a Pallas call only its author's estimate of FLOPs is known. --model-flops gives them."
        notes.append(Note(text))
    elif not found.is_the_compilers and (model_flops is not None or found.model_share is not None):
        enough = f"{predicted.ENOUGH_FOR_MFU:.0%}"
        notes.append(Note(f"No MFU: less than {enough} of the time is the compiler's own estimate."))
    return notes
