"""What stands out in one module: at most three sentences, each with its evidence, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.costs import Coverage, coverage, ranking, top_launches
from hlotrace.units import format_bytes, format_count, format_percent, is_missing

if TYPE_CHECKING:
    import pandas as pd

MOST = 3
NEARLY_FULL = 0.9
LARGE = 0.10
"""A part of the whole from which on it is worth a sentence."""
LONGEST_NAME = 40
PADDED = 0.05
UNESTIMATED = 0.05

MOVES = ("copy", "transpose", "copy-start", "reshape")


@dataclass(frozen=True)
class Finding:
    """One sentence; `weight` (0 to 1, the part of the whole it concerns) orders them, `view` shows the evidence."""

    text: str
    weight: float
    view: str


def findings(module: dict[str, Any], launched: pd.DataFrame, alive_at_peak: pd.DataFrame | None) -> list[Finding]:
    """At most three findings on a module, the weightiest first.

    Args:
        module: its row of `modules`.
        launched: its launches with totals (`costs.launches`).
        alive_at_peak: what `alive.alive` gives at the peak of its HBM; None without a timeline.
    """
    found = [*_capacity(module), *_memory(alive_at_peak), *_ops(launched)]
    return sorted(found, key=lambda finding: -finding.weight)[:MOST]


def _capacity(module: dict[str, Any]) -> Iterator[Finding]:
    needed, capacity = module["hbm_needed_bytes"], module["hbm_capacity_bytes"]
    if needed and capacity and NEARLY_FULL <= needed / capacity <= 1:
        left = format_bytes(capacity - needed)
        yield Finding(
            f"It fits with little room: {format_percent(needed / capacity)} of the HBM is taken, {left} is left.",
            needed / capacity,
            "memory",
        )


def _memory(alive: pd.DataFrame | None) -> Iterator[Finding]:
    if alive is None or alive.empty:
        return
    total = int(alive["counted_bytes"].sum())
    if not total:
        return
    temporary = alive[(alive["category"] == "temp") & (alive["counted_bytes"] > 0)]
    if len(temporary) and int(temporary["counted_bytes"].iloc[0]) >= LARGE * total:
        row = temporary.iloc[0]
        share = int(row["counted_bytes"]) / total
        yield Finding(
            f"The largest temporary at the peak, {_named(row['value'])}, is {format_percent(share)} of what is alive: "
            f"{format_bytes(int(row['bytes']))}{_from(row)}.",
            share,
            "memory",
        )
    padding = int(alive.loc[alive["counted_bytes"] > 0, "padding_bytes"].sum())
    if padding >= PADDED * total:
        yield Finding(
            f"Tile padding takes {format_bytes(padding)} at the peak, {format_percent(padding / total)} of it all.",
            padding / total,
            "memory",
        )


def _ops(launched: pd.DataFrame) -> Iterator[Finding]:
    if launched.empty:
        return
    by = ranking(launched)
    top = top_launches(launched, by).iloc[0]
    share = top["share"]
    if share == share and share >= LARGE:
        words = {"cycles_total": "estimated cycles", "flops_total": "FLOPs", "hbm_bytes_total": "HBM bytes"}[by]
        yield Finding(
            f"{_named(top['instruction'])} has {format_percent(share)} of the {words} ({top['category']}){_from(top)}.",
            float(share),
            "ops",
        )
    reach = coverage(launched)
    if reach.estimated and 1 - reach.share >= UNESTIMATED:
        yield _unestimated(reach)
    moved = launched[launched["opcode"].isin(MOVES) & launched["hbm_bytes_total"].notna()]
    everything = launched["hbm_bytes_total"].sum()
    if everything and moved["hbm_bytes_total"].sum() >= LARGE * everything:
        part = float(moved["hbm_bytes_total"].sum() / everything)
        yield Finding(
            f"{format_count(int(moved['execution_count'].sum()))} copies and transposes make "
            f"{format_percent(part)} of the HBM traffic ({format_bytes(float(moved['hbm_bytes_total'].sum()))}).",
            part,
            "ops",
        )


def _unestimated(reach: Coverage) -> Finding:
    opcodes = ", ".join(f"{opcode} x{count}" for opcode, count in reach.without[:3])
    missing = reach.total - reach.estimated
    return Finding(
        f"{format_count(missing)} of {format_count(reach.total)} launches have no estimate and are not in the time "
        f"({opcodes}).",
        1 - reach.share,
        "ops",
    )


def _from(row: pd.Series) -> str:
    file, line = row["source_file"], row["source_line"]
    if not isinstance(file, str):
        return ""
    name = PurePosixPath(file).name
    return f", {name}" if is_missing(line) else f", {name}:{int(line)}"


def _named(name: object) -> str:
    """A name short enough for a sentence: its end tells more."""
    text = str(name)
    return text if len(text) <= LONGEST_NAME else f"…{text[1 - LONGEST_NAME :]}"
