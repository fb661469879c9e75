"""A Grid on a terminal: which width each column gets, and what its cells read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.box import Box
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotrace.render._text_charts import bar
from hlotrace.render.cells import Column, columns_of
from hlotrace.units import NOTHING

if TYPE_CHECKING:
    from hlotrace.views.blocks import Grid

GAP = 2
BAR_WIDTH = 8
_FLOORS = {"path": 14, "code": 18, "plain": 14, "bar": 16}
_HEADER_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


@dataclass
class _Shown:
    """A column ready to draw: its header and cells as text, and the width it gets."""

    header: str
    cells: list[str]
    is_number: bool
    emphasis: str
    width: int = 0

    @property
    def cell_width(self) -> int:
        return max(map(cell_len, self.cells), default=1)

    @property
    def least(self) -> int:
        """The width below which it is not cut: a number keeps all digits, its header may wrap between words."""
        words = max(map(cell_len, self.header.split(" ")), default=1)
        return max(self.cell_width, words) if self.is_number else min(self.width, _FLOORS[self.emphasis])


def draw_grid(grid: Grid, width: int, marks: Mapping[str, str]) -> RenderableType:
    """The grid's title, its columns as far as the width goes, and its note."""
    shown = [_prepared(column, marks) for column in columns_of(grid)]
    kept = _fit(shown, width)
    table = Table(box=_HEADER_RULE, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    for column in kept:
        table.add_column(
            "\n".join(wrap(column.header, column.width)),  # rich would break at the no-break space too
            justify="right" if column.is_number and column.emphasis != "bar" else "left",
            width=column.width,
            no_wrap=column.emphasis != "plain",
            overflow="fold" if column.emphasis == "plain" else "ellipsis",
        )
    cut = [[_cut(column, cell) for cell in column.cells] for column in kept]
    for row in zip(*cut, strict=True):
        table.add_row(*(Text(cell, style="dim" if cell == NOTHING else "") for cell in row))
    parts: list[RenderableType] = [_title(grid), table]
    left_out = [column.header for column in shown if column not in kept]
    if left_out:
        parts.append(Text(f"Not shown for want of width: {', '.join(left_out)}.", style="dim"))
    if grid.note:
        parts.append(Text(grid.note, style="dim"))
    return Group(*parts)


def _title(grid: Grid) -> Text:
    rows = len(grid.frame)
    count = f"  {rows:,} of {grid.total_rows:,}" if rows < grid.total_rows else ""
    return Text.assemble((grid.title, "bold cyan"), (count, "dim"))


def _prepared(column: Column, marks: Mapping[str, str]) -> _Shown:
    is_number = column.is_number or all(isinstance(value, int | float) for value in column.values if value is not None)
    origin = f"\N{NO-BREAK SPACE}{marks[column.shown.origin]}" if column.is_number else ""
    texts = _with_bars(column) if column.parts else column.texts
    header = column.heading + origin
    width = max([cell_len(header), *map(cell_len, texts)])
    return _Shown(header, texts, is_number and any(column.values), column.shown.emphasis, width)


def _with_bars(column: Column) -> list[str]:
    digits = max(map(cell_len, column.texts), default=0)
    pairs = zip(column.texts, column.parts, strict=True)
    return [f"{text:>{digits}} {bar(part, BAR_WIDTH)}" for text, part in pairs]


def _fit(columns: list[_Shown], width: int) -> list[_Shown]:
    """Narrow the widest columns until all fit; columns that still do not are left out, the last ones first."""
    kept = list(columns)
    while True:
        over = sum(column.width for column in kept) + GAP * (len(kept) - 1) - width
        if over <= 0:
            return kept
        loose = [column for column in kept if column.width > column.least]
        if loose:
            widest = max(loose, key=lambda column: column.width)
            widest.width = max(widest.least, widest.width - max(1, over // 2))
        elif len(kept) > 1:
            kept.pop()
        else:
            kept[0].width = width
            return kept


def _cut(column: _Shown, cell: str) -> str:
    """A path keeps its end, whole components where they fit; code keeps its beginning."""
    if column.emphasis == "plain" or cell_len(cell) <= column.width:
        return cell
    if column.emphasis == "path":
        return keep_end(cell, column.width)
    return set_cell_size(cell, column.width - 1).rstrip() + "…"


def keep_end(path: str, width: int) -> str:
    """The end of a long name: `…/mlp/dot_general`."""
    if cell_len(path) <= width:
        return path
    end = path[len(path) - (width - 1) :]
    slash = end.find("/")
    if 0 <= slash < len(end) - 1 and len(end) - slash >= width // 2:
        end = end[slash:]
    return f"…{end}"
