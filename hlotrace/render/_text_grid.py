"""A Grid on a terminal: which width each column gets, and what its cells read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from hlotrace.render._text_charts import bar
from hlotrace.render.cells import Column, columns_of
from hlotrace.units import NOTHING

if TYPE_CHECKING:
    from hlotrace.views.blocks import Grid

GAP = 2
BAR_WIDTH = 8
_FLOORS = {"path": 14, "places": 14, "code": 12, "plain": 12, "bar": 16}
_FIRST_FLOOR = 20
_INDENT = "    "


@dataclass
class _Shown:
    """A column ready to draw: its header and cells as text, and the width it gets."""

    source: Column
    header: str
    cells: list[str]
    is_number: bool
    emphasis: str
    natural: int
    floor: int
    width: int = 0

    def __post_init__(self) -> None:
        self.width = self.natural

    @property
    def is_right(self) -> bool:
        """Whether its cells stand at the right; bars begin at the left."""
        return self.is_number and self.emphasis != "bar"

    @property
    def cell_width(self) -> int:
        return max(map(cell_len, self.cells), default=1)

    @property
    def least(self) -> int:
        """The width below which it is not cut: a number keeps all digits, its header may wrap between words."""
        words = max(map(cell_len, self.header.split(" ")), default=1)
        return max(self.cell_width, words) if self.is_number else min(self.width, self.floor)


def draw_grid(grid: Grid, width: int, marks: Mapping[str, str]) -> Text:
    """The grid's title, header and rows, and its note; columns for which there is no room follow under each row."""
    shown = [_prepared(column, marks) for column in columns_of(grid)]
    kept = _fit(shown, width)
    rest = [column for column in shown if column not in kept]
    rule = "─" * min(width, sum(column.width for column in kept) + GAP * (len(kept) - 1))
    lines = [_title(grid)]
    lines += [Text(line, style="bold") for line in _bottom_aligned(kept)]
    lines.append(Text(rule, style="dim"))
    for row in range(len(grid.frame)):
        lines += _lines([_wrapped(column, column.cells[row]) for column in kept], kept)
        if under := _under(rest, row):
            lines += [Text(_INDENT + line, style="dim") for line in wrap(under, width - len(_INDENT))]
    if grid.note:
        lines.append(Text(grid.note, style="dim"))
    return Text("\n").join(lines)


def _bottom_aligned(columns: list[_Shown]) -> list[str]:
    wrapped = [wrap(column.header, column.width) or [""] for column in columns]  # it keeps a no-break space
    height = max(map(len, wrapped))
    return [line.plain for line in _lines([[""] * (height - len(lines)) + lines for lines in wrapped], columns)]


def _lines(cells: list[list[str]], columns: list[_Shown]) -> list[Text]:
    """The lines of one row whose cells may have several each."""
    made = []
    for number in range(max(map(len, cells))):
        line = Text()
        for texts, column in zip(cells, columns, strict=True):
            text = texts[number] if number < len(texts) else ""
            blank = " " * max(0, column.width - cell_len(text))
            text = blank + text if column.is_right else text + blank
            line.append(text + " " * GAP, style="dim" if text.strip() == NOTHING else "")
        line.rstrip()
        made.append(line)
    return made


def _wrapped(column: _Shown, cell: str) -> list[str]:
    """A sentence goes over several lines; a name stays on one, cut where it must be."""
    return wrap(cell, column.width) or [""] if column.emphasis == "plain" else [_cut(column, cell)]


def _under(columns: list[_Shown], row: int) -> str:
    """What there was no room for, in words: `source …/layer.py:12`."""
    parts = [(column.source.heading, column.source.texts[row]) for column in columns]
    return "  ".join(f"{heading} {text}" for heading, text in parts if text and text != NOTHING)


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
    is_list = any(isinstance(value, list | tuple) or hasattr(value, "tolist") for value in column.values)
    emphasis = "code" if is_list else column.shown.emphasis
    return _Shown(column, header, texts, is_number and any(column.values), emphasis, width, _FLOORS[emphasis])


def _with_bars(column: Column) -> list[str]:
    digits = max(map(cell_len, column.texts), default=0)
    pairs = zip(column.texts, column.parts, strict=True)
    return [f"{text:>{digits}} {bar(part, BAR_WIDTH)}" for text, part in pairs]


def _fit(columns: list[_Shown], width: int) -> list[_Shown]:
    """Narrow the widest columns until all fit; where that is not enough leave out long names, then the last column."""
    kept = list(columns)
    kept[0].floor = max(kept[0].floor, min(_FIRST_FLOOR, width // 4))
    while True:
        over = sum(column.width for column in kept) + GAP * (len(kept) - 1) - width
        if over <= 0:
            return kept
        loose = [column for column in kept if column.width > column.least]
        if loose:
            widest = max(loose, key=lambda column: column.width)
            widest.width = max(widest.least, widest.width - max(1, over // 2))
        elif len(kept) > 1:
            names = [column for column in kept[1:] if column.emphasis == "code"]
            kept.remove(names[-1] if names else kept[-1])
            for column in kept:
                column.width = column.natural
        else:
            kept[0].width = width
            return kept


def _cut(column: _Shown, cell: str) -> str:
    """A path keeps its end, whole components where they fit; code keeps its beginning."""
    if cell_len(cell) <= column.width:
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
