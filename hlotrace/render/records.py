"""A view as records for other programs: JSON or CSV of its rows, with all columns of the tables."""

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
    """The rows of the view: numbers unscaled, lists as lists, None for what is not known."""
    return _frame_records(_rows(blocks))


def _rows(blocks: Iterable[Block]) -> pd.DataFrame:
    """The rows of the first block that stands for rows of a table; no rows and no columns where none does."""
    import pandas as pd

    for block in blocks:
        if isinstance(block, Grid) and block.is_records:
            return block.frame.drop(columns=[column.detail for column in block.columns if column.detail])
        if isinstance(block, Figures) and block.frame is not None:
            return block.frame
    return pd.DataFrame()


def _frame_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
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
        names_of_none: the header where no block stands for rows of a table.
    """
    frame = _rows(blocks)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([str(name) for name in frame.columns] or names_of_none)
    for row in _frame_records(frame):
        writer.writerow([json.dumps(value) if isinstance(value, list) else value for value in row.values()])
    return out.getvalue()
