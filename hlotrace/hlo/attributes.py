"""Attributes of an instruction, read from their text: windows, dimension labels, lists of dimensions, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

_CACHED = 1 << 14


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window; `low` and `high` are padding, negative where the window is cut."""

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1


@dataclass(frozen=True, slots=True)
class DimensionLabels:
    """Where a convolution's dimensions stand; `lhs_spatial[i]` is spatial dimension i of the lhs, and so on."""

    lhs_batch: int
    lhs_feature: int
    lhs_spatial: tuple[int, ...]
    rhs_input: int
    rhs_output: int
    rhs_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@lru_cache(_CACHED)
def number(attributes: str, name: str, absent: int) -> int:
    """The integer of `name=…`, `absent` where the attributes lack it."""
    match = re.search(rf"\b{name}=(-?\d+)", attributes)
    return int(match[1]) if match else absent


@lru_cache(_CACHED)
def numbers(attributes: str, name: str) -> tuple[int, ...]:
    """The integers of `name={1,2}`; empty where the attributes lack it."""
    match = re.search(rf"\b{name}=\{{([\d,\s]*)\}}", attributes)
    return tuple(int(part) for part in match[1].split(",") if part.strip()) if match else ()


@lru_cache(_CACHED)
def window(attributes: str) -> tuple[WindowDimension, ...]:
    """The dimensions of `window={size=2x3 stride=1x2 pad=0_1x0_0 lhs_dilate=… rhs_dilate=…}`; empty without one."""
    match = re.search(r"\bwindow=\{([^}]*)\}", attributes)
    if not match:
        return ()
    fields = dict(re.findall(r"(\w+)=(\S+)", match[1]))
    sizes = _by_x(fields.get("size", ""))
    ones = [1] * len(sizes)
    pads = [part.split("_") for part in fields["pad"].split("x")] if "pad" in fields else [["0", "0"]] * len(sizes)
    columns = [_by_x(fields[name]) if name in fields else ones for name in ("stride", "lhs_dilate", "rhs_dilate")]
    return tuple(
        WindowDimension(size, stride, int(pad[0]), int(pad[-1]), lhs, rhs)
        for size, stride, lhs, rhs, pad in zip(sizes, *columns, pads, strict=False)
    )


def window_elements(attributes: str) -> int:
    """How many elements the window covers; 1 without one."""
    return prod(dimension.size for dimension in window(attributes))


@lru_cache(_CACHED)
def dimension_labels(attributes: str) -> DimensionLabels | None:
    """The labels of `dim_labels=b01f_01io->b01f`; None where there are none that make sense."""
    match = re.search(r"\bdim_labels=(\w+?)_(\w+?)->(\w+)", attributes)
    if not match or not all("b" in side and "f" in side for side in (match[1], match[3])):
        return None
    lhs, rhs, output = match.groups()
    if "i" not in rhs or "o" not in rhs:
        return None
    spatial = [tuple(side.find(str(digit)) for digit in range(len(side) - 2)) for side in (lhs, rhs, output)]
    if len({len(side) for side in spatial}) != 1 or any(-1 in side for side in spatial):
        return None
    return DimensionLabels(
        lhs.index("b"),
        lhs.index("f"),
        spatial[0],
        rhs.index("i"),
        rhs.index("o"),
        spatial[1],
        output.index("b"),
        output.index("f"),
        spatial[2],
    )


def _by_x(text: str) -> list[int]:
    return [int(part) for part in text.split("x") if part]
