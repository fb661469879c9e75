"""What a view is made of: a few kinds of block that the terminal, the report and the app each can draw.

A block holds data and says what it means (units, origin); how it looks is the drawer's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from hlotrace.tables import Unit

Origin = Literal["measured", "compiler", "predicted"]
"""Where a number comes from: a clock or counter, the compiler's own words, or our model."""


@dataclass(frozen=True)
class Heading:
    """A section's title, with the question it answers."""

    text: str
    question: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence to the reader; `command` is what to run next, shown so that it can be copied."""

    text: str
    kind: Literal["info", "finding", "warning", "missing"] = "info"
    command: str = ""


@dataclass(frozen=True)
class Figure:
    """One headline figure: the value in its unit (or text), where it is from, and a few words of detail."""

    label: str
    value: float | int | str | None
    unit: Unit | None = None
    origin: Origin = "compiler"
    detail: str = ""
    capacity: float | int | None = None
    """What the value is a part of, in the same unit: drawn as a bar."""


@dataclass(frozen=True)
class Figures:
    """Headline figures, side by side."""

    items: tuple[Figure, ...]
    frame: pd.DataFrame | None = None
    """The rows of a table that they are of: the records (JSON, CSV) of a view that is about these rows."""


@dataclass(frozen=True)
class ShownColumn:
    """A column of a Grid: its name in the frame, what people read above it, its unit and origin."""

    name: str
    label: str
    unit: Unit | None = None
    origin: Origin = "compiler"
    emphasis: Literal["plain", "bar", "code", "path", "places"] = "plain"
    """`bar` draws the share of the column's maximum; `code` is monospaced; `path` keeps its end when cut; `places` is a
    list of source lines, the one that tells most first."""
    detail: str = ""
    """A column of the frame that says more, shown where one looks closer; no part of the records."""


@dataclass(frozen=True)
class Grid:
    """A table. `frame` has all columns of the records (JSON, CSV); `columns` are those people see."""

    title: str
    frame: pd.DataFrame
    columns: tuple[ShownColumn, ...]
    total_rows: int
    """How many rows there were before `--top` cut them."""
    note: str = ""
    selects: Literal["instruction", "fusion", "buffer", "module", "source", ""] = ""
    """What a row stands for when it is chosen in the app."""
    is_records: bool = True
    """Whether its rows can be the view's records; not those of one that sums up another."""


@dataclass(frozen=True)
class Bars:
    """Bars for each label, one a series: `series` maps a series' name to a value a label."""

    title: str
    labels: tuple[str, ...]
    series: dict[str, tuple[float, ...]]
    unit: Unit
    origin: Origin = "compiler"
    stacked: bool = False


@dataclass(frozen=True)
class StackedArea:
    """Areas stacked over x (memory over the schedule), with a capacity line and a marked position."""

    title: str
    x: tuple[int, ...]
    x_label: str
    series: dict[str, tuple[float, ...]]
    """Keys are buffer categories or roles: the palette goes by them."""
    unit: Unit
    origin: Origin = "compiler"
    capacity: float | None = None
    peak_x: int | None = None
    hover: tuple[str, ...] = ()
    """A text a position: the instruction there."""

    def totals(self) -> list[float]:
        """The sum of the series at each position; empty where there is no series."""
        return [sum(values) for values in zip(*self.series.values(), strict=True)]

    def peak_at(self, totals: Sequence[float]) -> int:
        """Where in `x` the marked position stands; without one there, where the totals are largest."""
        return self.x.index(self.peak_x) if self.peak_x in self.x else totals.index(max(totals))


@dataclass(frozen=True)
class Treemap:
    """Rectangles by area, grouped: `labels[i]` in `groups[i]` with `values[i]`."""

    title: str
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    values: tuple[float, ...]
    unit: Unit
    origin: Origin = "compiler"
    hover: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """A directed graph: the members of a fusion with bytes on the edges.

    `nodes` maps an id to (label, kind); kind is `member`, `input` or `output`. `edges` are (from, to, label,
    in_memory): whether the value goes through memory or stays inside.
    """

    title: str
    nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    edges: tuple[tuple[str, str, str, bool], ...] = ()


@dataclass(frozen=True)
class Scatter:
    """Points on logarithmic axes under roofs: what each kernel reaches of a chip. All coordinates are above 0.

    Attributes:
        groups: of each point: the palette goes by them.
        roofs: lines by what they are, each as points from left to right.
        hover: a text a point.
    """

    title: str
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    x_label: str
    y_label: str
    roofs: dict[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    origin: Origin = "compiler"
    hover: tuple[str, ...] = ()


Block = Heading | Note | Figures | Grid | Bars | StackedArea | Treemap | Graph | Scatter
