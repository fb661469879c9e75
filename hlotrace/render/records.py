"""A view as records for other programs: JSON or CSV of its first grid, with all columns of the tables."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hlotrace.units import is_missing
from hlotrace.views.blocks import Block, Figures, Grid

if TYPE_CHECKING:
    import pandas as pd


def records(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """The rows of the view's first grid: numbers unscaled, lists as lists, None for what is not known.

    A view that has no grid gives its headline figures.
    """
    blocks = list(blocks)
    for block in blocks:
        if isinstance(block, Grid):
            return frame_records(block.frame)
    return [
        {"label": item.label, "value": _plain(item.value), "unit": item.unit, "origin": item.origin}
        for block in blocks
        if isinstance(block, Figures)
        for item in block.items
    ]


def frame_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as plain Python values."""
    columns = {str(name): [_plain(value) for value in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_missing(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


def to_json(blocks: Iterable[Block]) -> str:
    """The records as one JSON array, a record a line."""
    lines = (json.dumps(record, ensure_ascii=False) for record in records(blocks))
    text = ",\n ".join(lines)
    return f"[{text}]\n"


def to_csv(blocks: Iterable[Block], names_of_none: Sequence[str] = ()) -> str:
    """The records as CSV with a header; lists are written as JSON, what is not known is empty.

    Args:
        names_of_none: the header where there is no grid to take one from.
    """
    rows = records(blocks)
    names = list(rows[0]) if rows else _column_names(blocks) or names_of_none
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([json.dumps(value) if isinstance(value, list) else value for value in row.values()])
    return out.getvalue()


def _column_names(blocks: Iterable[Block]) -> list[str]:
    return next(([str(name) for name in block.frame.columns] for block in blocks if isinstance(block, Grid)), [])
