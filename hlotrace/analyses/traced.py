"""Measured times in groups, and steps one a row, whatever number of devices they ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.op_counts import group_keys
from hlotrace.tables import LINES

if TYPE_CHECKING:
    import pandas as pd

GROUPINGS = ("program", "category", "op", "fusion", "source", "scope")


def time_by(op_times: pd.DataFrame, by: str, *, fusions: pd.DataFrame | None = None, depth: int = 0) -> pd.DataFrame:
    """Self time of all devices in groups, those with the most first.

    Args:
        by: one of GROUPINGS.
        fusions: columns `module` and `fusion`, needed by `fusion`: other ops make one group together.
        depth: how many levels of a scope make a group; 0 takes all.

    Returns:
        Columns: the grouping's name, null for what has none; `module` by op and by fusion; `occurrences`, `self_ps`,
        `share` (of all self time), `ops` (how many ops it holds), and by op `median_ps` (the longest of the devices'),
        `category`, `op_name`, and the columns of LINES.
    """
    keys = _keys(op_times, by, fusions, depth)
    names = [by]
    table = op_times.assign(**{by: keys})
    if by in ("op", "fusion"):
        names = ["module", by]
        table = table.assign(module=op_times["module"].where(keys.notna()))
    grouped = table.groupby(names, dropna=False, sort=False)
    found = grouped[["occurrences", "self_ps"]].sum()
    if by == "op":
        found["median_ps"] = grouped["median_ps"].max()
        shared = ["category", "op_name", *LINES]
        found[shared] = grouped[shared].first()
    ops = op_times["module"].fillna("") + " " + op_times["instruction"].fillna(op_times["name"])
    found["ops"] = ops.groupby([table[name] for name in names], dropna=False, sort=False).nunique()
    found = found.reset_index().sort_values("self_ps", ascending=False, kind="stable")
    total = float(found["self_ps"].sum())
    found["share"] = found["self_ps"].astype("float64") / total if total else float("nan")
    return found


def _keys(op_times: pd.DataFrame, by: str, fusions: pd.DataFrame | None, depth: int) -> pd.Series:
    import pandas as pd

    if by == "program":
        return op_times["module"]
    if by == "op":
        return op_times["instruction"].fillna(op_times["name"])
    if by == "fusion":
        known = set() if fusions is None else set(zip(fusions["module"], fusions["fusion"], strict=True))
        pairs = zip(op_times["module"], op_times["instruction"], strict=True)
        is_fusion = pd.Series([pair in known for pair in pairs], op_times.index, dtype=bool)
        return op_times["instruction"].where(is_fusion)
    return group_keys(op_times, by, depth)


def device_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Steps one a row, in the order of time, of the devices that ran them; of the host where no device has steps.

    Returns:
        Columns: `step`, `start_ps`, `duration_ps` (of the slowest device), `busy_ps` (the mean), `busy` (the share of
        the devices' time), `slowest` (device, where there are several), `devices`, `inferred`, `basis`.
    """
    chosen = steps[steps["device"].notna()]
    chosen = steps if chosen.empty else chosen
    ordered = chosen.sort_values("duration_ps", ascending=False, kind="stable")
    found = ordered.groupby("step", sort=True).agg(
        start_ps=("start_ps", "min"),
        duration_ps=("duration_ps", "max"),
        time_ps=("duration_ps", "sum"),
        busy_ps=("busy_ps", "mean"),
        total_busy_ps=("busy_ps", "sum"),
        slowest=("device", "first"),
        devices=("device", "nunique"),
        inferred=("inferred", "max"),
        basis=("basis", "first"),
    )
    found["busy"] = found["total_busy_ps"].astype("float64") / found["time_ps"].astype("float64")
    found.loc[found["busy_ps"].isna(), "busy"] = float("nan")
    found["busy_ps"] = found["busy_ps"].round().astype("Int64")
    found["slowest"] = found["slowest"].where(found["devices"] > 1)
    return found.reset_index().sort_values("start_ps", kind="stable").drop(columns=["time_ps", "total_busy_ps"])
