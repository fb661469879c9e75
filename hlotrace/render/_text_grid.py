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
LONGEST_NAME = 32
"""A name is cut to this where it stands under a row, and is in it no shorter; lists of names wrap."""
_PLAIN_FLOOR, _PATH_FLOOR, _FIRST_FLOOR = 12, 14, 20
_PATH_WANTED = 24
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
    width: int = 0

    @property
    def is_right(self) -> bool:
        """Whether its cells stand at the right; bars begin at the left."""
        return self.is_number and self.emphasis != "bar"

    @property
    def cell_width(self) -> int:
        return max(map(cell_len, self.cells), default=1)

    @property
    def is_name(self) -> bool:
        """Whether its texts are names from the program, which come last where there is little room."""
        return self.emphasis in ("path", "places", "code") and not self.is_number

    @property
    def wraps(self) -> bool:
        """Whether a text without room goes over several lines; a single name is cut instead."""
        return self.emphasis == "plain" or (self.emphasis == "code" and any(", " in text for text in self.cells))

    @property
    def capped(self) -> int:
        """The width at which it says as much as it does under a row."""
        return min(self.natural, LONGEST_NAME) if self.is_name else self.least

    @property
    def least(self) -> int:
        """The width at which nothing is lost: a number keeps all digits, its header may wrap between words."""
        words = max(map(cell_len, self.header.split(" ")), default=1)
        if self.is_number:
            return max(self.cell_width, words)
        return min(self.natural, LONGEST_NAME if self.is_name else max(words, _PLAIN_FLOOR))


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
    """A sentence or a list goes over several lines; a name stays on one, cut where it must be."""
    return wrap(cell, column.width) or [""] if column.wraps else [_cut(column, cell)]


def _under(columns: list[_Shown], row: int) -> str:
    """What there was no room for, in words: `source …/layer.py:12`."""
    texts = [column.source.texts[row] for column in columns]
    parts = [
        (column.source.heading, text if column.wraps or not column.is_name else _cut(column, text))
        for column, text in zip(columns, texts, strict=True)
    ]
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
    return _Shown(column, header, texts, is_number and any(column.values), emphasis, width)


def _with_bars(column: Column) -> list[str]:
    digits = max(map(cell_len, column.texts), default=0)
    pairs = zip(column.texts, column.parts, strict=True)
    return [f"{text:>{digits}} {bar(part, BAR_WIDTH)}" for text, part in pairs]


def _fit(columns: list[_Shown], width: int) -> list[_Shown]:
    """The columns that stand in a row of that width, with their widths; a wider row never shows less of any.

    What there is room for is given away in an order that does not depend on the width: the first column, those
    with bars (by which people compare, and mostly the rows are sorted) and the source, each cut short; the other
    figures and sentences; more of the first column and the source; the other names; at last the rest of all.
    """
    first, rest = columns[0], columns[1:]
    keys = [column for column in rest if column.emphasis == "bar"]
    paths = [column for column in rest if column.emphasis in ("path", "places")][-1:]
    others = [column for column in rest if column not in keys and column not in paths]
    for column in columns:
        column.width = column.capped
    room = width - _take(first, min(first.least, _FIRST_FLOOR, width))
    kept = [first]
    for column in [*keys, *paths, *(column for column in others if not column.is_name)]:
        needed = min(column.least, _PATH_FLOOR) if column in paths else column.least
        if room < GAP + needed:
            return _in_order(columns, kept)
        kept.append(column)
        room -= GAP + _take(column, needed)
    room -= _grow(first, first.capped, room)
    for column in paths:
        room -= _grow(column, min(_PATH_WANTED, column.natural), room)
    for column in (column for column in others if column.is_name):
        if room < GAP + column.capped:
            return _in_order(columns, kept)
        kept.append(column)
        room -= GAP + _take(column, column.capped)
    while (loose := [column for column in kept if column.width < column.natural]) and room > 0:
        narrowest = min(loose, key=lambda column: column.width)
        room -= _grow(narrowest, narrowest.natural, 1)
    return _in_order(columns, kept)


def _take(column: _Shown, width: int) -> int:
    column.width = width
    return width


def _grow(column: _Shown, limit: int, room: int) -> int:
    """Widen a column towards `limit` as far as there is room; what it took."""
    more = max(0, min(limit - column.width, room))
    column.width += more
    return more


def _in_order(columns: list[_Shown], kept: list[_Shown]) -> list[_Shown]:
    return [column for column in columns if column in kept]


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
