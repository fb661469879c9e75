"""A predicted time for each launch of a module, by the rule of its class: with its range, its basis and its floor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo.calibration import calibration
from hlotrace.hlo.floors import NANOSECONDS, OVERHEAD, UNITS, Floors, floors
from hlotrace.hlo.links import link_ns
from hlotrace.hlo.operation_class import CLASSES, operation_classes
from hlotrace.tables import PREDICTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.devices import Chip
    from hlotrace.hlo.calibration import Basis, Factors
    from hlotrace.hlo.facts import Facts

BASES: dict[str, tuple[Basis, ...]] = {
    "matmul fusion": ("bundles", "cost model", "floor"),
    "Pallas call": ("bundles", "kernel estimate"),
    "custom call": ("bundles", "cost model", "floor"),
    "collective": ("link model",),
    "host transfer": (),
}
"""What a class is predicted from, the best first; the others are bound by memory, where the floor tells more."""
LINKS = "links"
_USUAL: tuple[Basis, ...] = ("bundles", "floor", "cost model")
_KERNEL_BYTES = re.compile(r'"bytes_accessed":\s*"?(\d+)')


@dataclass(frozen=True)
class Raw:
    """Times before any rule, in ns, one row a launch; NaN where not known.

    Attributes:
        floor: the scaled one (`scaled_floor`). unit: what it is mostly of.
    """

    unit: list[str]
    model: NDArray[np.float64]
    bundles: NDArray[np.float64]
    floor: NDArray[np.float64]
    link: NDArray[np.float64]
    kernel: NDArray[np.float64]

    def of(self, basis: Basis) -> NDArray[np.float64]:
        """The column that a basis means."""
        columns = {
            "cost model": self.model, "bundles": self.bundles, "floor": self.floor, "link model": self.link,
            "kernel estimate": self.kernel,
        }  # fmt: skip
        return columns[basis]


@dataclass(frozen=True)
class Predicted:
    """Nanoseconds with their range, one row a launch; NaN where nothing tells, and `basis` is then `unknown`."""

    ns: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    basis: NDArray[np.object_]
    calibrated: NDArray[np.bool_]


def predict(
    named: NDArray[np.int32], raw: Raw, floor_ns: NDArray[np.float64], touches_hbm: NDArray[np.bool_]
) -> Predicted:
    """Apply the rule of each launch's class (`named`, into CLASSES) to the best figure there is of it.

    The compiler's own figures are taken as they are, with the measured spread as their range; floors are scaled.
    Nothing is predicted below its floor, nor below the least time of a launch that touches HBM.
    """
    known = calibration()
    ns, low, high = (np.full(len(named), np.nan) for _ in range(3))
    basis = np.full(len(named), "unknown", object)
    calibrated = np.zeros(len(named), bool)
    least = np.maximum(np.where(touches_hbm, known.overhead_ns, 0.0), np.nan_to_num(floor_ns))
    for number in np.unique(named).tolist():
        name = CLASSES[number]
        for choice in BASES.get(name, _USUAL):
            value = raw.of(choice)
            chosen = (named == number) & np.isnan(ns) & ~np.isnan(value)
            units = np.array(raw.unit if choice == "floor" else [""] * len(named), object)
            for unit in sorted(set(units[chosen])):
                rows = chosen & (units == unit)
                rule, calibrated[rows] = known.rule(name, choice, unit)
                basis[rows] = choice
                ns[rows] = np.maximum(value[rows] * rule.median if choice == "floor" else value[rows], least[rows])
                low[rows] = np.clip(value[rows] * rule.low, least[rows], ns[rows])
                high[rows] = np.maximum(value[rows] * rule.high, ns[rows])
    return Predicted(ns, low, high, basis, calibrated)


def predictions_table(facts: Facts, chip: Chip | None, *, module: str) -> pa.Table:
    """The table `predictions` of a module's final stage; empty where the chip is not known."""
    schema = PREDICTIONS.arrow_schema()
    if chip is None:
        return schema.empty_table()
    rows = np.flatnonzero(facts.is_launch)
    least = floors(facts, chip)
    named = operation_classes(facts)[rows]
    told = ~np.isin(named, _WITHOUT_FLOOR)
    floor_ns = np.where(told, least.ns[rows], np.nan)
    moved = facts.traffic.read[rows] + facts.traffic.written[rows]
    known = (facts.traffic.read[rows] >= 0) & (facts.traffic.written[rows] >= 0)
    is_kernel = named == CLASSES.index("Pallas call")
    raw = _raw(facts, rows, chip, least)
    found = predict(named, raw, floor_ns, known & (moved > 0))
    hlo = facts.hlo
    take = pa.array(rows)
    columns = {
        "module": pa.repeat(pa.scalar(module), len(rows)),
        "computation": pa.array([hlo.computation_names[at] for at in facts.graph.computation[rows]], pa.string()),
        "instruction": hlo.names.take(take),
        "class": pa.array([CLASSES[number] for number in named.tolist()], pa.string()),
        "basis": pa.array(found.basis, pa.string()),
        "is_calibrated": pa.array(found.calibrated, mask=np.isnan(found.ns)),
        "predicted_ns": _whole_ns(found.ns),
        "low_ns": _whole_ns(found.low),
        "high_ns": _whole_ns(found.high),
        "floor_ns": _whole_ns(floor_ns),
        "bound_by": _bound_by(least, rows, floor_ns, found.basis == "link model"),
        "compute_floor_ns": _whole_ns(np.where(told, least.compute[rows], np.nan)),
        "hbm_floor_ns": _whole_ns(np.where(told, least.hbm[rows], np.nan)),
        "vmem_floor_ns": _whole_ns(np.where(told, least.vmem[rows], np.nan)),
        "estimated_cycles": _or_null(facts.cycles[0][rows]),
        "bundle_cycles": _or_null(facts.cycles[1][rows]),
        "flops": _or_null(np.where(is_kernel, -1, facts.flops[rows])),
        "hbm_bytes": _or_null(np.where(known & ~is_kernel, moved, -1)),
        "execution_count": _or_null(facts.execution.executions[facts.graph.computation[rows]]),
        "branch": facts.branch.take(take),
    }
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)


_WITHOUT_FLOOR = [CLASSES.index(name) for name in ("Pallas call", "host transfer")]
"""A kernel may leave most of an operand untouched (pages of a cache); a host's link is not among a chip's figures."""


def scaled_floor(compute: float, hbm: float, vmem: float, *, worth: Factors) -> tuple[float, str]:
    """A time from the three floors in ns, and the unit that most of it is of: no unit reaches its peak."""
    memory = hbm * worth.hbm + vmem * worth.vmem
    if compute > memory:
        return compute, "compute"
    return memory, "HBM" if hbm * worth.hbm >= vmem * worth.vmem else "VMEM"


def _raw(facts: Facts, rows: NDArray[np.int64], chip: Chip, least: Floors) -> Raw:
    compute, hbm, vmem = (part[rows].tolist() for part in (least.compute, least.hbm, np.nan_to_num(least.vmem)))
    worth = calibration().factors
    scaled = [scaled_floor(*values, worth=worth) for values in zip(compute, hbm, vmem, strict=True)]
    cycle = NANOSECONDS / chip.clock.value if chip.clock else np.nan
    model, bundles = (np.where(column[rows] < 0, np.nan, column[rows] * cycle) for column in facts.cycles)
    kernel = np.full(len(rows), np.nan)
    for at in np.flatnonzero(facts.targets.calls("tpu_custom_call")[rows]).tolist():
        row = int(rows[at])
        kernel[at] = _kernel_ns(int(facts.flops[row]), facts.hlo.backend_config[row].as_py() or "", chip)
    time = np.where(np.isnan(least.ns[rows]), np.nan, np.array([ns for ns, _ in scaled]))
    return Raw([unit for _, unit in scaled], model, bundles, time, link_ns(facts, rows, chip), kernel)


def _kernel_ns(flops: int, backend_config: str, chip: Chip) -> float:
    """What a kernel's CostEstimate, whose FLOPs are `flops`, takes at the chip's peaks; NaN where it states none."""
    moved = _KERNEL_BYTES.search(backend_config)
    amounts = ((flops, chip.peak_flops("bf16")), (int(moved[1]) if moved else 0, chip.device_hbm_bandwidth))
    times = (amount / rate.value * NANOSECONDS for amount, rate in amounts if amount > 0 and rate)
    return max(times, default=np.nan)


def _bound_by(
    least: Floors, rows: NDArray[np.int64], floor_ns: NDArray[np.float64], linked: NDArray[np.bool_]
) -> pa.Array:
    """The unit that needs longest; `overhead` where starting takes longer than any; `links` for a collective."""
    overhead = calibration().overhead_ns
    words = np.array([*UNITS, OVERHEAD], object)[np.where(floor_ns < overhead, len(UNITS), least.unit[rows])]
    words[linked] = LINKS
    return pa.array(words, pa.string(), mask=np.isnan(floor_ns))


def _whole_ns(values: NDArray[np.float64]) -> pa.Array:
    """Whole nanoseconds; what takes some takes at least one."""
    return pa.array(np.where(values > 0, np.maximum(np.rint(values), 1), 0).astype(np.int64), mask=np.isnan(values))


def _or_null(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=values < 0)
