"""What is alive at a schedule position, and where the peak is, in one memory space of one module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotrace.units import is_missing

if TYPE_CHECKING:
    import pandas as pd

CATEGORIES = ("argument", "alias", "output", "temp", "constant", "preallocated")
"""The categories of buffers that the timeline tells apart, in the order they stack."""


@dataclass(frozen=True)
class Position:
    """One schedule position of a timeline."""

    index: int
    instruction: str | None
    computation: str | None
    live_bytes: int
    by_category: dict[str, int]


def spaces(timeline: pd.DataFrame) -> list[int]:
    """The memory spaces of a module's timeline, in order."""
    return sorted(int(space) for space in timeline["memory_space"].dropna().unique())


def position(timeline: pd.DataFrame, space: int, at: int | None = None) -> Position | None:
    """The position `at`, or the first at which most is alive; None where the timeline has no such position."""
    rows = timeline[timeline["memory_space"] == space]
    if at is not None:
        rows = rows[rows["schedule_index"] == at]
    rows = rows[rows["live_bytes"].notna()]
    if rows.empty:
        return None
    row = rows.iloc[int(rows["live_bytes"].to_numpy("int64").argmax())]
    return Position(
        int(row["schedule_index"]),
        _text(row["instruction"]),
        _text(row["computation"]),
        int(row["live_bytes"]),
        {name: _number(row[f"{name}_bytes"]) for name in CATEGORIES if _number(row[f"{name}_bytes"])},
    )


def alive(buffers: pd.DataFrame, space: int, at: int) -> pd.DataFrame:
    """The values alive at a position, largest first.

    Returns:
        The rows of `buffers` with `counted_bytes` added: what each adds to the bytes in use there. A value that
        shares its place with a larger one (an alias, an element of a tuple) adds only what the other does not cover.
    """
    live = (buffers["memory_space"] == space) & (buffers["live_from"] <= at) & (buffers["live_to"] >= at)
    rows = buffers[live.fillna(False).astype(bool) & buffers["category"].isin(CATEGORIES)]
    rows = rows.sort_values(["bytes", "value"], ascending=[False, True], kind="stable")
    covered: dict[Any, list[tuple[int, int]]] = {}
    counted = [
        _cover(covered.setdefault(allocation, []), _number(offset), _number(size))
        for allocation, offset, size in zip(rows["allocation"], rows["offset_bytes"], rows["bytes"], strict=True)
    ]
    return rows.assign(counted_bytes=counted).astype({"counted_bytes": "Int64"})


def _cover(intervals: list[tuple[int, int]], start: int, size: int) -> int:
    """Add [start, start + size) to disjoint intervals; the bytes that none of them held."""
    end, fresh = start + size, size
    low, high, rest = start, end, []
    for first, last in intervals:
        if last < start or first > end:
            rest.append((first, last))
            continue
        fresh -= max(0, min(last, end) - max(first, start))
        low, high = min(low, first), max(high, last)
    intervals[:] = [*rest, (low, high)]
    return fresh


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int:
    return 0 if is_missing(value) else int(value)
