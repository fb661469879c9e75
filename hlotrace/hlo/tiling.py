"""Bytes of a shape: as its layout's tiles allocate it, and without padding.

A layout names the order of the dimensions and the tiles that the most minor of them are cut into. The first tile
rounds those dimensions up; a tile after it cuts the one before and rounds only where it does not divide it.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hlotrace.hlo.shape import Layout, Shape

ELEMENT_BITS: dict[str, int] = {
    "pred": 8,
    "s1": 1,
    "s2": 2,
    "s4": 4,
    "s8": 8,
    "s16": 16,
    "s32": 32,
    "s64": 64,
    "u1": 1,
    "u2": 2,
    "u4": 4,
    "u8": 8,
    "u16": 16,
    "u32": 32,
    "u64": 64,
    "f4e2m1fn": 4,
    "f8e3m4": 8,
    "f8e4m3": 8,
    "f8e4m3fn": 8,
    "f8e4m3b11fnuz": 8,
    "f8e4m3fnuz": 8,
    "f8e5m2": 8,
    "f8e5m2fnuz": 8,
    "f8e8m0fnu": 8,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "token": 0,
    "opaque": 0,
}
"""Bits that a value of each element type needs; a layout may give it more or, for `pred`, fewer."""

_TILED_SIZES_HEADER = 1024
"""Measured on TPU v2 to 7x, whose layouts may write it as `M(1024)`."""


def allocated_bytes(shape: Shape) -> int | None:
    """Bytes that a value of `shape` takes in memory, tile padding included, a tuple's elements summed.

    The table of pointers that a tuple itself may have is not counted; tokens and opaque values take nothing here.
    Bounded dynamic dimensions take their bound, and the array a header for its sizes at run time. None where a
    dimension has no bound or the type is not known.
    """
    if shape.elements or shape.is_tuple:
        return _sum(map(allocated_bytes, shape.elements))
    layout = shape.layout
    bits = element_bits(shape.dtype, layout)
    if bits is None or -1 in shape.dims:
        return None
    if layout is None:
        return (prod(shape.dims) * bits + 7) // 8 + _sizes_header(shape)
    count = padded_element_count(shape.dims, layout)
    if layout.tail_alignment > 1:
        count = -(-count // layout.tail_alignment) * layout.tail_alignment
    return (count * bits + 7) // 8 + _sizes_header(shape)


def logical_bytes(shape: Shape) -> int | None:
    """Bytes of the elements alone, at the bits their type needs, a tuple's elements summed; None as above."""
    if shape.elements or shape.is_tuple:
        return _sum(map(logical_bytes, shape.elements))
    bits = ELEMENT_BITS.get(shape.dtype)
    if bits is None or -1 in shape.dims:
        return None
    return (prod(shape.dims) * bits + 7) // 8


def padded_element_count(dims: Sequence[int], layout: Layout) -> int:
    """How many elements an array of `dims` takes once every tile of `layout` is filled."""
    tiles = layout.tiles
    if not tiles:
        return prod(dims)
    physical = [dims[number] for number in reversed(layout.minor_to_major)]
    return prod(_cut(physical, tiles[0])[: -_sizes(tiles[0])]) * _filled_tile(tiles)


@lru_cache
def _filled_tile(tiles: tuple[tuple[int, ...], ...]) -> int:
    """Elements of the first tile once those inside it are filled."""
    inside = [step for step in tiles[0] if step >= 0]
    for tile in tiles[1:]:
        inside = _cut(inside, tile)
    return prod(inside)


def _sizes(tile: tuple[int, ...]) -> int:
    return len(tile) - tile.count(-1)


def _cut(physical: list[int], tile: tuple[int, ...]) -> list[int]:
    """Cut the most minor dimensions of `physical` (major to minor) into `tile`: outer counts, then the tile.

    A -1 in the tile joins its dimension to the next one.
    """
    split = len(physical) - len(tile)
    if split < 0:
        physical, split = [1] * -split + physical, 0
    cut, joined = physical[:split], 1
    for size, step in zip(physical[split:], tile, strict=True):
        if step < 0:
            joined *= size
        else:
            cut.append(-(-joined * size // step))
            joined = 1
    cut.extend(step for step in tile if step >= 0)
    return cut


def element_bits(dtype: str, layout: Layout | None) -> int | None:
    """Bits that one element takes in memory: `E(n)` of the layout, else whole bytes of its type."""
    if layout is not None and layout.element_bits:
        return layout.element_bits
    bits = ELEMENT_BITS.get(dtype)
    return None if bits is None else -(-bits // 8) * 8


def _sizes_header(shape: Shape) -> int:
    """Bytes that a dynamic array takes for its sizes: a block of its own on TPU (tiled), else an s32 a dimension."""
    if True not in shape.dynamic:
        return 0
    return _TILED_SIZES_HEADER if shape.layout and shape.layout.tiles else 4 * len(shape.dims)


def _sum(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
