"""The colours that every chart shares, in the app and in the report, safe for colour blindness."""

from __future__ import annotations

BUFFER_COLOURS: dict[str, str] = {
    "argument": "#0072B2",
    "alias": "#56B4E9",
    "output": "#D55E00",
    "temp": "#F0E442",
    "constant": "#8C8C8C",
    "preallocated": "#E69F00",
    "thread_local": "#CC79A7",
}
"""By the category of a buffer, in the order they stack: what stays for the whole program lies at the bottom."""

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

STAGE_COLOURS: dict[str, str] = {"before": "#B0B0B0", "after": "#0072B2"}
"""Bars that compare the program before optimisation with the one after it."""

UNKNOWN = "#B8B8B8"
"""What has no colour of its own; drawn hatched."""


def colour(name: str) -> str:
    """The colour of a buffer's or an instruction's category, or of a stage; grey for a name that has none."""
    return BUFFER_COLOURS.get(name) or CATEGORY_COLOURS.get(name) or STAGE_COLOURS.get(name) or UNKNOWN


def has_colour(name: str) -> bool:
    """Whether `name` has a colour of its own; others are drawn hatched."""
    return name in BUFFER_COLOURS or name in CATEGORY_COLOURS or name in STAGE_COLOURS
