"""How a raw figure of each class of launches became a measured time: factors with their spread, from real traces.

`calibration.csv` is made from measurements by `docs/make_accuracy.py`, which writes docs/accuracy.md beside it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Basis = Literal["cost model", "bundles", "floor", "link model", "kernel estimate", "unknown"]
"""What a predicted time was made of: `basis` of `predictions`."""

ANY_CLASS = "any"
"""The row that stands for classes without measurements."""
ENOUGH_KINDS = 3
"""Distinct operations that have to be measured before a class counts as calibrated."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Measured time over a raw figure: the median over distinct operations, and the smallest and largest.

    Attributes:
        kinds: distinct operations that were measured. runs: executions of them.
        error: half of the kinds predicted with the other half's median: the median error, a share.
        chips: where it was measured.
    """

    kinds: int
    runs: int
    median: float
    low: float
    high: float
    error: float | None
    chips: str


@dataclass(frozen=True, slots=True)
class Factors:
    """What the HBM floor and the VMEM floor of a memory-bound operation are worth in measured time."""

    hbm: float = 1.0
    vmem: float = 1.0


@dataclass(frozen=True)
class Calibration:
    """The rules by (class, basis, unit), the factors of floors, and the least ns of a launch that touches HBM."""

    rules: dict[tuple[str, str, str], Rule]
    factors: Factors
    overhead_ns: float

    def rule(self, name: str, basis: Basis, unit: str = "") -> tuple[Rule, bool]:
        """The rule of a class, and whether it is calibrated: its own, of enough kinds.

        Else that of all classes for this basis, and where that was not measured either a median of 1 with the widest
        spread of any.

        Args:
            unit: for a floor, the unit that it is of: what VMEM bounds strays further than what HBM does.
        """
        found = self.rules.get((name, basis, unit))
        if found is not None and found.kinds >= ENOUGH_KINDS:
            return found, True
        return self.rules.get((ANY_CLASS, basis, unit), self.rules[ANY_CLASS, ANY_CLASS, ""]), False


@cache
def calibration() -> Calibration:
    """What comes with this version."""
    text = files("hlotrace.hlo").joinpath("calibration.csv").read_text(encoding="utf-8")
    rules = {(row["class"], row["basis"], row["unit"]): _rule(row) for row in csv.DictReader(text.splitlines())}
    hbm, vmem = (rules.pop((ANY_CLASS, "factor", unit)).median for unit in ("HBM", "VMEM"))
    return Calibration(rules, Factors(hbm, vmem), rules.pop((ANY_CLASS, "overhead", "")).median)


def _rule(row: dict[str, str]) -> Rule:
    return Rule(
        int(row["kinds"]),
        int(row["runs"]),
        float(row["median"]),
        float(row["low"]),
        float(row["high"]),
        float(row["error"]) if row["error"] else None,
        row["chips"],
    )
