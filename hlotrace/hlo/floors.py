"""The least time that one execution of an instruction can take on a chip: what each unit needs for it alone.

FLOPs go over the peak of the element type that is multiplied, all others over the bf16 peak. f32 has no peak of its
own: one bf16 pass of the several it takes is the floor. Bytes go over the bandwidth of the memory they are in: a value
in VMEM is no HBM traffic, an asynchronous copy is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.flops import with_members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.devices import Chip
    from hlotrace.hlo.facts import Facts

UNITS = ("compute", "HBM", "VMEM")
OVERHEAD = "overhead"
NANOSECONDS = 1e9
_BASE = "bf16"


@dataclass(frozen=True)
class Floors:
    """Nanoseconds of one execution by unit, one row an instruction; NaN where not known."""

    compute: NDArray[np.float64]
    hbm: NDArray[np.float64]
    vmem: NDArray[np.float64]

    @property
    def ns(self) -> NDArray[np.float64]:
        """The largest of them; NaN where one that counts is not known."""
        vmem = np.nan_to_num(self.vmem, nan=0.0)
        longest: NDArray[np.float64] = np.maximum(np.maximum(self.compute, self.hbm), vmem)
        return longest

    @property
    def unit(self) -> NDArray[np.int64]:
        """Which of UNITS is the largest."""
        parts = np.stack([np.nan_to_num(part, nan=-1.0) for part in (self.compute, self.hbm, self.vmem)])
        longest: NDArray[np.int64] = parts.argmax(axis=0)
        return longest


def floors(facts: Facts, chip: Chip) -> Floors:
    """The floors of every instruction of a module on a device of `chip`."""
    read, written = facts.traffic.read, facts.traffic.written
    vmem = np.maximum(facts.vmem_traffic.read, facts.vmem_traffic.written)
    vmem_rate = chip.device_vmem_bandwidth if facts.fast_space == 1 else None
    return Floors(
        _over(peak_flops_equivalent(facts, chip), _rate(chip, _BASE)),
        _over(np.where((read < 0) | (written < 0), -1, read + written), chip.device_hbm_bandwidth.value),
        _over(vmem, vmem_rate.value if vmem_rate else None),
    )


def peak_flops_equivalent(facts: Facts, chip: Chip) -> NDArray[np.int64]:
    """FLOPs as bf16 ones that take as long at the peak: those of 8-bit products count less; -1 where not known."""
    shapes, hlo = facts.shapes, facts.hlo
    base = _rate(chip, _BASE)
    rows = facts.products.rows
    less = np.zeros(hlo.instruction_count, np.int64)
    for row, flops in zip(rows.tolist(), facts.products.flops.tolist(), strict=True):
        first = int(hlo.operand_start[row])
        operands = facts.operand_shape[first : first + 2].tolist()
        rates = [_rate(chip, shapes.shapes[shape].dtype) if shape >= 0 else base for shape in operands]
        if flops > 0 and rates and base:
            less[row] = flops - round(flops * base / min(rate or base for rate in rates))
    saved = with_members(hlo, facts.graph, less)
    return np.where(facts.flops < 0, -1, facts.flops - saved)


def _rate(chip: Chip, dtype: str) -> float | None:
    peak = chip.peak_flops(dtype) or chip.peak_flops(_BASE)
    return peak.value if peak else None


def _over(amount: NDArray[np.int64], rate: float | None) -> NDArray[np.float64]:
    if rate is None:
        return np.full(len(amount), np.nan)
    return np.where(amount < 0, np.nan, amount / rate * NANOSECONDS)
