"""The colours that every chart shares, in the app and in the report, safe for colour blindness."""

from __future__ import annotations

BUFFER_COLOURS: dict[str, str] = {
    "argument": "#0072B2",
    "donated argument": "#56B4E9",
    "output": "#D55E00",
    "temporary": "#E69F00",
    "constant": "#8C8C8C",
    "other": "#CC79A7",
}
"""By the role of a buffer, in the order they stack: what stays for the whole program lies at the bottom."""

CATEGORY_COLOURS: dict[str, str] = {
    "matmul": "#0072B2",
    "convolution": "#56B4E9",
    "loop fusion": "#009E73",
    "elementwise": "#009E73",
    "reduction": "#E69F00",
    "sort": "#A66F00",
    "data movement": "#CC79A7",
    "async copy": "#E5B8D3",
    "collective": "#D55E00",
    "custom call": "#F0E442",
    "control": "#8C8C8C",
    "host": "#5A6B8C",
    "parameter": "#8C8C8C",
}
"""By the category of an instruction or fusion."""

SERIES_COLOURS: dict[str, str] = {"before": "#B0B0B0", "after": "#0072B2", "time": "#0072B2"}
"""Bars: the program before optimisation beside the one after it, and measured time."""

UNKNOWN = "#B8B8B8"
"""What has no colour of its own; drawn hatched."""


def colour(name: str) -> str:
    """The colour of a buffer's role, an instruction's category or a series of bars; grey for a name that has none."""
    return BUFFER_COLOURS.get(name) or CATEGORY_COLOURS.get(name) or SERIES_COLOURS.get(name) or UNKNOWN


def has_colour(name: str) -> bool:
    """Whether `name` has a colour of its own; others are drawn hatched."""
    return name in BUFFER_COLOURS or name in CATEGORY_COLOURS or name in SERIES_COLOURS
