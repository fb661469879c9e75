"""What stands out in one module: at most three sentences, each with its evidence, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.costs import Coverage, coverage, ranking
from hlotrace.units import end_of, format_bytes, format_count, format_percent, is_missing

if TYPE_CHECKING:
    import pandas as pd

MOST = 3
NEARLY_FULL = 0.9
LARGE = 0.10
"""A part of the whole from which on it is worth a sentence."""
LONGEST_NAME = 40
PADDED = 0.05
UNESTIMATED = 0.05

TEMPORARY = ("temp", "preallocated")
"""A TPU's compiler puts its temporaries into one preallocated block."""
VALUE_KIND = ("shape", "user_file", "user_line")
LAUNCH_KIND = ("opcode", "category", "shape", "user_file", "user_line", "flops")
"""What rows have in common that stand for one thing, in each layer of a model."""
RANKED_BY = {"cycles_total": "estimated cycles", "flops_total": "FLOPs", "hbm_bytes_total": "HBM bytes"}
MOVES = ("copy", "transpose", "copy-start", "reshape")


@dataclass(frozen=True)
class Finding:
    """One sentence; `weight` (0 to 1, the part of the whole it concerns) orders them, `view` shows the evidence."""

    text: str
    weight: float
    view: str
    op: str | None = None
    """The instruction that it names."""
    value: str | None = None
    """The buffer's value that it names."""


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
    temporary = alive[alive["category"].isin(TEMPORARY) & (alive["counted_bytes"] > 0)]
    kind = _largest_kind(temporary, "counted_bytes", VALUE_KIND)
    if kind is not None and kind.amount >= LARGE * total:
        what = kind.words("The temporary {} holds", "{} temporaries like {} hold", "value")
        shape = str(kind.first["shape"]).partition("{")[0]
        yield Finding(
            f"{what} {format_bytes(kind.amount)} at the peak, {format_percent(kind.amount / total)} of what is alive "
            f"({shape}{_from(kind.first)}).",
            kind.amount / total,
            "memory",
            value=str(kind.first["value"]),
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
    total = float(launched[by].sum())
    kind = _largest_kind(launched, by, LAUNCH_KIND)
    if kind is not None and total and kind.amount >= LARGE * total:
        what = kind.words("{} has", "{} launches like {} have", "instruction")
        yield Finding(
            f"{what} {format_percent(kind.amount / total)} of the {RANKED_BY[by]} "
            f"({kind.first['category']}{_from(kind.first)}).",
            kind.amount / total,
            "ops",
            op=str(kind.first["instruction"]),
        )
    yield from _unestimated(coverage(launched))
    yield from _moves(launched)


def _unestimated(reach: Coverage) -> Iterator[Finding]:
    if not reach.estimated or 1 - reach.share < UNESTIMATED:
        return
    opcodes = ", ".join(f"{opcode} x{count}" for opcode, count in reach.without[:3])
    missing = reach.total - reach.estimated
    flops, moved = (0.0 if share is None else 1 - share for share in (reach.flops_share, reach.bytes_share))
    part = "" if reach.bytes_share is None else f": {format_percent(moved)} of the HBM bytes"
    yield Finding(
        f"{format_count(missing)} of {format_count(reach.total)} launches have no estimate of the compiler's "
        f"({opcodes}){part}.",
        max(flops, moved),
        "ops",
    )


def _moves(launched: pd.DataFrame) -> Iterator[Finding]:
    moved = launched[launched["opcode"].isin(MOVES) & launched["hbm_bytes_total"].notna()]
    amount, everything = float(moved["hbm_bytes_total"].sum()), float(launched["hbm_bytes_total"].sum())
    if everything and amount >= LARGE * everything:
        yield Finding(
            f"{format_count(int(moved['execution_count'].sum()))} copies and transposes make "
            f"{format_percent(amount / everything)} of the HBM traffic ({format_bytes(amount)}).",
            amount / everything,
            "ops",
        )


@dataclass(frozen=True)
class _Kind:
    """Rows alike, as the layers of a model make them: the largest of them, how many, and their amount together."""

    first: pd.Series
    count: int
    amount: float

    def words(self, one: str, several: str, name: str) -> str:
        """The beginning of a sentence about them."""
        first = end_of(str(self.first[name]), LONGEST_NAME)
        return one.format(first) if self.count == 1 else several.format(f"{self.count:,}", first)


def _largest_kind(frame: pd.DataFrame, amount: str, alike: Sequence[str]) -> _Kind | None:
    """The rows alike that have most of `amount` together; None where nothing has any."""
    known = frame[frame[amount].fillna(0) > 0]
    if known.empty:
        return None
    kinds = known.groupby(list(alike), dropna=False, sort=False).ngroup().to_numpy()
    sums = known[amount].astype("float64").groupby(kinds).sum()
    members = known[kinds == sums.idxmax()].sort_values(amount, ascending=False, kind="stable")
    return _Kind(members.iloc[0], len(members), float(sums.max()))


def _from(row: pd.Series) -> str:
    file, line = row["user_file"], row["user_line"]
    if not isinstance(file, str):
        return ""
    name = PurePosixPath(file).name
    return f", {name}" if is_missing(line) else f", {name}:{int(line)}"
