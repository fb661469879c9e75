"""One program on several chips: a row a target of the capture, whatever became of it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import by_size, chosen_module

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from hlotrace.analyses.predicted import Prediction
    from hlotrace.bundle import Failure, Manifest

VMEM = 1
"""XLA's number of the memory space."""


@dataclass(frozen=True)
class Place:
    """A target, the row of `modules` of the program there, and what went wrong, each None where there is none."""

    target: str | None
    module: dict[str, Any] | None
    failure: Failure | None
    error: str | None


def places(modules: pd.DataFrame, manifest: Manifest | None, wanted: str | None = None) -> list[Place]:
    """The targets in the order of the capture, each with its build of the program `wanted`, the largest for None.

    Raises:
        HlotraceError: there is no such module, or none at all.
    """
    name = chosen_module(modules, _any_of(modules, wanted))["name"]
    builds: dict[str | None, dict[str, Any]] = {}
    for row in by_size(modules):
        if row["name"] == name:
            builds.setdefault(row["target"], row)
    failures = {program.module: program.failure for program in manifest.programs} if manifest else {}
    asked = {target.target: target.error for target in manifest.targets} if manifest else {}
    return [
        Place(target, row, failures.get(row["module"]) if row else None, _why(row, asked.get(target or ""), str(name)))
        for target in [*asked, *(target for target in builds if target not in asked)]
        for row in [builds.get(target)]
    ]


def _any_of(modules: pd.DataFrame, wanted: str | None) -> str | None:
    """A module of that name, whichever: a program has one for each target."""
    named = modules.loc[modules["name"] == wanted, "module"]
    return str(named.iloc[0]) if len(named) else wanted


def _why(row: dict[str, Any] | None, error: str | None, name: str) -> str | None:
    if row is None:
        return error or f"{name} was not compiled for it"
    return str(row["error"]).partition("\n")[0] if row["error"] else None


def record(place: Place, found: Prediction | None, timeline: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """The figures of one target; what is not known, or has no meaning without an executable, is None.

    Args:
        found: the prediction of its module. timeline: (memory space, live bytes) of its schedule's positions.
    """
    row = place.module or {}
    works = place.module is not None and place.error is None
    needed, capacity = row.get("hbm_needed_bytes"), row.get("hbm_capacity_bytes")
    if place.failure is not None and place.failure.memory_space != "vmem":
        needed, capacity = place.failure.needed_bytes or needed, place.failure.available_bytes or capacity
    told = found if works else None
    return {
        "target": place.target,
        "fits": _fits(place, needed, capacity),
        "hbm_needed_bytes": needed,
        "hbm_peak_bytes": row.get("hbm_peak_bytes"),
        "hbm_capacity_bytes": capacity,
        "predicted_ns": told and round(told.ns),
        "low_ns": told and round(told.low_ns),
        "high_ns": told and round(told.high_ns),
        "floor_ns": told and round(told.floor.ns),
        "bound_by": told and told.floor.bound_by,
        "mfu": told and told.mfu,
        "compilers_share": told and told.compilers_share,
        "without": [f"{name} x{count}" for name, count in told.without] if told else [],
        "vmem_peak_bytes": max((size for space, size in timeline if space == VMEM), default=None),
        "compile_ns": row.get("compile_ns"),
        "error": place.error,
        "module": row.get("module"),
        "device_kind": row.get("device_kind"),
    }


def _fits(place: Place, needed: int | None, capacity: int | None) -> bool | None:
    if place.failure is not None and place.failure.kind == "out_of_memory":
        return False
    if place.module is None or place.error is not None or needed is None or capacity is None:
        return None
    return needed <= capacity
