"""Charts as inline SVG: crisp, small, printable, readable without scripts; colours of lines and text come from CSS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from hlotrace.render.palette import BUFFER_COLOURS, CATEGORY_COLOURS, SERIES_COLOURS, colour, has_colour
from hlotrace.units import column_scale, end_of, format_percent, format_value

if TYPE_CHECKING:
    from hlotrace.views.blocks import Bars, Origin, StackedArea

WIDTH = 1200.0
MOST_STEPS = 400
"""A timeline is drawn in at most so many steps, each showing the position of its stretch at which most is alive."""
CAPACITY_IN_SIGHT = 3.0
"""A capacity further above the highest value than this many times would flatten the chart: it is told in words."""


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """An SVG element; attribute values are escaped, numbers shortened, `class_` and `stroke_width` become names."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def number(value: float) -> str:
    """A coordinate with no more digits than can be seen."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def picture(height: float, label: str, content: Iterable[str], width: float = WIDTH, *, is_fixed: bool = False) -> str:
    """The whole picture, with a name for screen readers; a fixed one scrolls where it does not fit."""
    body = "".join(content)
    box = f"0 0 {number(width)} {number(height)}"
    style = f"{'width' if is_fixed else 'max-width'}:{number(width)}px"
    return element("svg", body, viewBox=box, role="img", aria_label=label, style=style)


def paint(name: str, origin: Origin) -> dict[str, str | float]:
    """How a surface of that name is filled: measured solid, the compiler's lighter, predicted and unknown hatched."""
    if is_hatched(name, origin):
        return {"fill": f"url(#hatch-{colour(name)[1:]})", "class_": "surface"}
    return {"fill": colour(name), "class_": "surface solid" if origin == "measured" else "surface estimate"}


def is_hatched(name: str, origin: Origin) -> bool:
    """Whether a surface of that name is hatched: a prediction, or something without a colour of its own."""
    return origin == "predicted" or not has_colour(name)


def hatches() -> str:
    """The patterns that hatched surfaces are filled with; they stand once in the page."""
    named = (*BUFFER_COLOURS, *CATEGORY_COLOURS, *SERIES_COLOURS, "unknown")
    patterns = []
    for value in dict.fromkeys(colour(name) for name in named):
        ground = element("rect", width=5.0, height=5.0, fill=value, fill_opacity=0.35)
        stripe = element("rect", width=2.0, height=5.0, fill=value)
        patterns.append(
            element(
                "pattern", ground + stripe, id=f"hatch-{value[1:]}", width=5.0, height=5.0,
                patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
            )
        )  # fmt: skip
    return element("svg", element("defs", "".join(patterns)), class_="defs", aria_hidden="true")


def text(x: float, y: float, content: str, anchor: str = "start", class_: str = "") -> str:
    """A line of text."""
    attributes: dict[str, str | float] = {"x": x, "y": y, "text_anchor": anchor}
    if class_:
        attributes["class_"] = class_
    return element("text", escape(content), **attributes)


def ticks(largest: float, unit: str, count: int = 4) -> list[float]:
    """Round values from 0 to `largest`, in steps that read well in the unit the axis will have."""
    if largest <= 0:
        return [0.0]
    divisor = column_scale([largest], unit).divisor
    rough = largest / divisor / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * 0.999) * power * divisor
    return [index * step for index in range(int(largest / step + 1e-9) + 1)]


# Bars


BAR, GAP, GROUP_GAP = 11.0, 2.0, 9.0
LABEL_WIDTH = 230.0
LABEL_CHARACTERS = 36


def bars(block: Bars) -> str:
    """Bars to the right, one a series for each label, with their values."""
    largest = max((value for values in block.series.values() for value in values), default=0.0) or 1.0
    scale = column_scale((value for values in block.series.values() for value in values), block.unit)
    length = WIDTH - LABEL_WIDTH - 90.0
    height_of_group = len(block.series) * (BAR + GAP) + GROUP_GAP
    parts = []
    for index, label in enumerate(block.labels):
        top = index * height_of_group
        middle = top + (height_of_group - GROUP_GAP) / 2 + 4
        written = text(LABEL_WIDTH - 10, middle, end_of(label, LABEL_CHARACTERS), "end")
        parts.append(element("g", element("title", escape(label)) + written))
        for place, (name, values) in enumerate(block.series.items()):
            y = top + place * (BAR + GAP)
            wide = max(values[index] / largest * length, 1.0 if values[index] else 0.0)
            title = element("title", escape(f"{label}, {name}: {format_value(values[index], block.unit)}"))
            parts.append(
                element("rect", title, x=LABEL_WIDTH, y=y, width=wide, height=BAR, **paint(name, block.origin))
            )
            parts.append(text(LABEL_WIDTH + wide + 6, y + BAR - 1.5, scale.format(values[index]), class_="value"))
    return picture(max(len(block.labels) * height_of_group, 1.0), block.title, parts)


# Areas stacked over the schedule


LEFT, TOP, PLOT_HEIGHT, BOTTOM = 76.0, 26.0, 250.0, 40.0


def stacked_area(block: StackedArea) -> str:
    """The timeline as steps, with its peak marked, the capacity as a line, and what is there on pointing at it."""
    totals = block.totals()
    if not totals or max(totals) <= 0:
        return ""
    highest = max(totals)
    in_sight = block.capacity is not None and block.capacity <= CAPACITY_IN_SIGHT * highest
    top = max(highest, block.capacity or 0.0) * 1.04 if in_sight else highest * 1.06
    columns = _columns(totals, _index(block, block.peak_x))
    plot = _Plot(len(columns), top)
    parts = [*_axis(block, plot), *_layers(block, plot, columns)]
    if in_sight and block.capacity is not None:
        y = plot.y(block.capacity)
        parts.append(element("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="capacity"))
        parts.append(text(WIDTH - 4, y - 5, f"capacity {format_value(block.capacity, block.unit)}", "end", "capacity"))
    parts += _peak(block, plot, columns, totals)
    parts += _pointers(block, plot, columns, totals)
    return picture(TOP + PLOT_HEIGHT + BOTTOM, block.title, parts)


def capacity_in_words(block: StackedArea) -> str:
    """What the chart cannot show when the capacity is far above it."""
    highest = max(block.totals(), default=0.0)
    if block.capacity is None or not highest or block.capacity <= CAPACITY_IN_SIGHT * highest:
        return ""
    share = format_percent(highest / block.capacity)
    return (
        f"The capacity, {format_value(block.capacity, block.unit)}, is far above: the highest point is {share} of it."
    )


class _Plot:
    def __init__(self, count: int, top: float) -> None:
        self.step = (WIDTH - LEFT) / max(count, 1)
        self.top = top

    def x(self, column: float) -> float:
        return LEFT + column * self.step

    def y(self, value: float) -> float:
        return TOP + PLOT_HEIGHT * (1 - value / self.top)


def _index(block: StackedArea, position: int | None) -> int | None:
    return block.x.index(position) if position is not None and position in block.x else None


def _columns(totals: Sequence[float], marked: int | None) -> list[int]:
    """For each step drawn, the index it shows: the marked one where it is there, else that at which most is alive."""
    count = min(len(totals), MOST_STEPS)
    edges = [round(column * len(totals) / count) for column in range(count + 1)]
    stretches = [range(first, max(last, first + 1)) for first, last in pairwise(edges)]
    return [marked if marked in stretch else max(stretch, key=totals.__getitem__) for stretch in stretches]  # type: ignore[misc]


def _axis(block: StackedArea, plot: _Plot) -> list[str]:
    marks = ticks(plot.top, block.unit)
    scale = column_scale([plot.top], block.unit)
    parts = []
    for value in marks:
        y = plot.y(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="grid"))
        label = f"{value / scale.divisor:,.10g} {scale.suffix}" if value else "0"
        parts.append(text(LEFT - 8, y + 4, label, "end", "value"))
    below = TOP + PLOT_HEIGHT + 18
    parts.append(text(LEFT, below, str(block.x[0]), class_="value"))
    parts.append(text(WIDTH, below, f"{block.x[-1]} {block.x_label}", "end", "value"))
    return parts


def _layers(block: StackedArea, plot: _Plot, columns: list[int]) -> list[str]:
    lower = [0.0] * len(columns)
    parts = []
    for name, values in block.series.items():
        upper = [base + values[index] for base, index in zip(lower, columns, strict=True)]
        forth = "".join(
            f"L{number(plot.x(i))},{number(plot.y(v))}H{number(plot.x(i + 1))}" for i, v in enumerate(upper)
        )
        back = "".join(
            f"L{number(plot.x(i + 1))},{number(plot.y(lower[i]))}H{number(plot.x(i))}"
            for i in range(len(columns) - 1, -1, -1)
        )
        parts.append(element("path", "", d=f"M{forth[1:]}{back}Z", **paint(name, block.origin)))
        lower = upper
    return parts


def _peak(block: StackedArea, plot: _Plot, columns: list[int], totals: list[float]) -> list[str]:
    index = _index(block, block.peak_x)
    if index is None:
        return []
    x = plot.x(columns.index(index) + 0.5)
    name = f" {end_of(block.hover[index], 40)}" if index < len(block.hover) and block.hover[index] else ""
    label = f"{format_value(totals[index], block.unit)} at {block.x[index]}{name}"
    side = "end" if x > WIDTH * 0.6 else "start"
    return [
        # Down to the area only, which it would hide where the peak is one position wide.
        element("line", x1=x, x2=x, y1=TOP - 6, y2=plot.y(totals[index]) - 2, class_="peak"),
        text(x + (-6 if side == "end" else 6), TOP - 10, label, side, "peak"),
    ]


def _pointers(block: StackedArea, plot: _Plot, columns: list[int], totals: list[float]) -> list[str]:
    parts = []
    for column, index in enumerate(columns):
        lines = [f"{block.x_label} {block.x[index]}" + (f": {block.hover[index]}" if index < len(block.hover) else "")]
        lines.append(f"alive {format_value(totals[index], block.unit)}")
        lines += [
            f"{name} {format_value(values[index], block.unit)}"
            for name, values in block.series.items()
            if values[index]
        ]
        title = element("title", escape("\n".join(lines)))
        x, wide = plot.x(column), plot.step
        parts.append(element("rect", title, x=x, y=TOP, width=wide, height=PLOT_HEIGHT, class_="pointer"))
    return parts
