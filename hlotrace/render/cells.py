"""A grid's cells as text, column by column: one unit a column, named in its heading. All drawers share this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotrace.units import NOTHING, column_scale, is_missing

if TYPE_CHECKING:
    from hlotrace.views.blocks import Grid, ShownColumn


@dataclass(frozen=True)
class Column:
    """A shown column with its texts.

    Attributes:
        heading: the label with the unit of the column: `size (MiB)`.
        values: what the frame holds, None where it is missing.
        parts: of each value, its part of the column's largest, for bars; empty when no bars are asked for.
    """

    shown: ShownColumn
    heading: str
    texts: list[str]
    values: list[Any]
    parts: list[float]

    @property
    def is_number(self) -> bool:
        """Whether the column has a unit, and is aligned to the right."""
        return self.shown.unit is not None

    @property
    def is_code(self) -> bool:
        """Whether it shows names from the program, to be set in a fixed width."""
        return self.shown.emphasis in ("code", "path")


def columns_of(grid: Grid) -> list[Column]:
    """The columns that people see, in order."""
    return [_column(shown, _values(grid, shown.name)) for shown in grid.columns]


def _values(grid: Grid, name: str) -> list[Any]:
    return [None if is_missing(value) else value for value in grid.frame[name].astype(object)]


def _column(shown: ShownColumn, values: list[Any]) -> Column:
    if shown.unit is None:
        return Column(shown, shown.label, [_text(value) for value in values], values, [])
    scale = column_scale(values, shown.unit)
    heading = f"{shown.label} ({scale.suffix})" if scale.suffix else shown.label
    parts = _parts(values) if shown.emphasis == "bar" else []
    return Column(shown, heading, [scale.format(value) for value in values], values, parts)


def _text(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:,.4g}"
    return ", ".join(str(item) for item in value) if hasattr(value, "__iter__") else str(value)


def _parts(values: list[Any]) -> list[float]:
    largest = max((float(value) for value in values if value is not None), default=0.0)
    return [float(value) / largest if value is not None and largest > 0 else 0.0 for value in values]
