"""Blocks on a terminal: columns that fit its width, one unit a column, every number with its origin.

Piped, the same text comes out without colours.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotrace.render._text_charts import draw_area, draw_bars, draw_graph, draw_scatter, draw_treemap, meter
from hlotrace.render._text_grid import draw_grid
from hlotrace.units import format_percent, format_value, is_missing
from hlotrace.views.blocks import (
    Bars,
    Block,
    Figure,
    Figures,
    Graph,
    Grid,
    Heading,
    Note,
    Scatter,
    StackedArea,
    Treemap,
)

NARROWEST = 20
"""Columns that are always taken: a narrower terminal breaks the lines itself."""
MARKS = {"measured": "●", "compiler": "◐", "predicted": "○"}
ORIGINS = {"measured": "measured", "compiler": "the compiler's figure", "predicted": "our model"}
_NOTE_SIGNS = {"info": "", "finding": "▸ ", "warning": "! ", "missing": "– "}
_NOTE_STYLES = {"info": "", "finding": "cyan", "warning": "yellow", "missing": "dim"}


def draw(blocks: Iterable[Block], *, width: int = 100, color: bool = False) -> str:
    """The blocks as text, no line longer than `width` but for commands, which stay whole to be copied.

    Args:
        blocks: what a view built.
        width: columns of the terminal.
        color: whether to use ANSI styles; without it the text is plain.
    """
    width = max(width, NARROWEST)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    blocks = list(blocks)
    with console.capture() as capture:
        for position, block in enumerate(blocks):
            if isinstance(block, Bars | Scatter) and position and isinstance(blocks[position - 1], Grid):
                continue  # the grid above has these numbers
            if position and isinstance(block, Heading):
                console.print()
            _print(console, block, width)
        if legend := _legend(blocks):
            console.print(Text(legend, style="dim"))
    text = "\n".join(line.rstrip() for line in capture.get().split("\n")) if not color else capture.get()
    return text.rstrip("\n") + "\n"


def _print(console: Console, block: Block, width: int) -> None:
    if isinstance(block, Note):
        _print_note(console, block, width)
    else:
        console.print(_drawn(block, width))


def _drawn(block: Block, width: int) -> RenderableType:
    match block:
        case Heading():
            question = f"  {block.question}" if block.question else ""
            return Text.assemble((block.text, "bold"), (question, "dim"))
        case Figures():
            return _figures(block)
        case Grid():
            return draw_grid(block, width, MARKS)
        case Bars():
            return draw_bars(block, width)
        case StackedArea():
            return draw_area(block, width)
        case Treemap():
            return draw_treemap(block, width)
        case Graph():
            return draw_graph(block)
        case Scatter():
            return draw_scatter(block)
    raise TypeError(f"no way to draw a {type(block).__name__}")


def _print_note(console: Console, note: Note, width: int) -> None:
    sign = _NOTE_SIGNS[note.kind]
    text = Text(sign + note.text, style=_NOTE_STYLES[note.kind])
    if note.command and len(text) + len(note.command) + 4 <= width:
        text.append(f"  $ {note.command}", style="bold" if not note.text else "green")
        console.print(text)
        return
    if note.text:
        console.print(Padding(text, 0))
    if note.command:
        console.print(Text(f"  $ {note.command}", style="green"), soft_wrap=True)


def _figures(block: Figures) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for figure in block.items:
        table.add_row(figure.label, Text(format_value(figure.value, figure.unit), style="bold"), _figure_detail(figure))
    return Group(table)


def _figure_detail(figure: Figure) -> Text:
    text = Text()
    capacity, value = figure.capacity, figure.value
    if capacity and not is_missing(capacity) and isinstance(value, int | float) and not is_missing(value):
        share = value / capacity
        text.append(f"of {format_value(capacity, figure.unit)} ")
        text.append(meter(share), style="red" if share > 1 else "cyan")
        text.append(f" {format_percent(share)}  ")
    if figure.detail:
        text.append(f"{figure.detail}  ")
    if figure.unit is not None and not isinstance(value, str) and not is_missing(value):
        text.append(MARKS[figure.origin], style="dim")
    return text


def _legend(blocks: list[Block]) -> str:
    used: set[str] = set()
    for block in blocks:
        if isinstance(block, Figures):
            used |= {item.origin for item in block.items if item.unit is not None}
        elif isinstance(block, Grid):
            used |= {column.origin for column in block.columns if column.unit is not None}
        elif isinstance(block, Bars | Scatter | StackedArea | Treemap):
            used.add(block.origin)
    return "   ".join(f"{mark} {ORIGINS[origin]}" for origin, mark in MARKS.items() if origin in used)
