"""Points under roofs on logarithmic axes, as SVG: a roofline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from hlotrace.render import svg
from hlotrace.render.palette import colour

if TYPE_CHECKING:
    from hlotrace.views.blocks import Scatter

HEIGHT = 340.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 16.0, 36.0
RADIUS = 4.5


@dataclass(frozen=True)
class Axis:
    """Whole decades from `low` to `high` (exponents of 10), drawn from `start` to `end`."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: list[float], start: float, end: float) -> Axis:
        """The decades that hold `values`."""
        low = math.floor(math.log10(min(values)))
        return cls(low, max(math.ceil(math.log10(max(values))), low + 1), start, end)

    def place(self, value: float) -> float:
        """Where a value stands."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def scatter(block: Scatter) -> str:
    """The picture; where there is no point it has the roofs alone."""
    corners = [point for roof in block.roofs.values() for point in roof]
    across = [*block.x, *(x for x, _ in corners)]
    up = [*block.y, *(y for _, y in corners)]
    if not across:
        return svg.picture(1.0, block.title, [])
    x = Axis.over(across, LEFT, svg.WIDTH - RIGHT)
    y = Axis.over(up, HEIGHT - BOTTOM, TOP)
    return svg.picture(HEIGHT, block.title, [*_grid(x, y), *_roofs(block, x, y), *_points(block, x, y)])


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    for value in x.ticks():
        at = x.place(value)
        yield svg.element("line", x1=at, x2=at, y1=y.start, y2=y.end, class_="grid")
        yield svg.text(at, HEIGHT - BOTTOM + 18, power_of_ten(value), "middle", "value")
    for value in y.ticks():
        at = y.place(value)
        yield svg.element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="grid")
        yield svg.text(LEFT - 8, at + 4, power_of_ten(value), "end", "value")


def power_of_ten(value: float) -> str:
    """A tick's label: plain where it is short."""
    return f"{value:g}" if 1e-3 <= value < 1e5 else f"1e{round(math.log10(value))}"


def _roofs(block: Scatter, x: Axis, y: Axis) -> Iterator[str]:
    for name, roof in block.roofs.items():
        for (x1, y1), (x2, y2) in pairwise(roof):
            line = (x.place(x1), y.place(y1), x.place(x2), y.place(y2))
            title = svg.element("title", escape(name))
            yield svg.element("line", title, x1=line[0], y1=line[1], x2=line[2], y2=line[3], class_="peak")
        last_x, last_y = roof[-1]
        yield svg.text(min(x.place(last_x), x.end) - 4, y.place(last_y) - 5, name, "end", "value")


def _points(block: Scatter, x: Axis, y: Axis) -> Iterator[str]:
    hover = block.hover or block.labels
    for group, across, up, words in zip(block.groups, block.x, block.y, hover, strict=True):
        title = svg.element("title", escape(words))
        place = {"cx": x.place(across), "cy": y.place(up), "r": RADIUS}
        yield svg.element("circle", title, **place, fill=colour(group), fill_opacity=0.8, class_="surface")
