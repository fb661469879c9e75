"""What is known of each distinct shape of a module, in columns; elements of tuples are shapes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _value_kernels
from hlotrace.hlo.tiling import allocated_bytes, logical_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape import Shape

_Sizes = tuple[int, int, int, int]
_UNKNOWN = (-1, -1, -1, -1)

DEFAULT_SPACE = 0
"""XLA's default memory space: HBM on TPU, device memory on GPU, host memory on CPU."""


@dataclass(frozen=True)
class ShapeColumns:
    """One row a shape: first the module's in its order, then the elements of tuples that are not among them.

    Sizes are -1 where they are not known. Of a tuple, `elements` and the byte columns are sums.

    Attributes:
        allocated: bytes in memory, padding included. logical: without padding.
        in_hbm: the allocated bytes that are in the default memory space.
        space: the memory space; -1 for a tuple.
        child_start, child: the shapes of a tuple's elements.
    """

    shapes: list[Shape]
    elements: NDArray[np.int64]
    allocated: NDArray[np.int64]
    logical: NDArray[np.int64]
    in_hbm: NDArray[np.int64]
    space: NDArray[np.int32]
    child_start: NDArray[np.int32]
    child: NDArray[np.int32]

    def in_space(self, space: int) -> NDArray[np.int64]:
        """The allocated bytes of each shape that are in memory space `space`; -1 where not known."""
        if space == DEFAULT_SPACE:
            return self.in_hbm
        found = np.where((self.allocated > 0) & (self.space != space), 0, self.allocated)
        tuples = np.flatnonzero(self.space < 0).tolist()
        for row in sorted(tuples, key=lambda row: _depth(self.shapes[row])):
            if self.allocated[row] >= 0:
                found[row] = found[self.child[self.child_start[row] : self.child_start[row + 1]]].sum()
        return found


def shape_columns(hlo: HloModule) -> ShapeColumns:
    """Measure the shapes of `hlo`, each distinct one once."""
    shapes, children = _with_elements(hlo.shapes)
    sizes = [_UNKNOWN if shape.elements or shape.is_tuple else _measure(shape) for shape in shapes]
    tuples = [row for row, shape in enumerate(shapes) if shape.elements or shape.is_tuple]
    nested = [row for row in tuples if any(part.elements for part in shapes[row].elements)]
    flat = [row for row in tuples if row not in set(nested)] if nested else tuples
    for row in flat + sorted(nested, key=lambda row: _depth(shapes[row])):
        sizes[row] = _total([sizes[part] for part in children[row]])
    elements, allocated, logical, in_hbm = np.array(sizes, np.int64).reshape(-1, 4).T.copy()
    space = np.array([shape.memory_space for shape in shapes], np.int32)
    space[tuples] = -1
    starts = np.zeros(len(shapes) + 1, np.int32)
    np.cumsum([len(child) for child in children], out=starts[1:])
    child = np.array([row for rows in children for row in rows], np.int32)
    return ShapeColumns(shapes, elements, allocated, logical, in_hbm, space, starts, child)


def _with_elements(given: tuple[Shape, ...]) -> tuple[list[Shape], list[list[int]]]:
    """The shapes and after them, each once, those of tuple elements; for each the rows of its elements."""
    shapes = list(given)
    row_of: dict[str, int] = {}
    children: list[list[int]] = []
    for shape in shapes:  # grows while it is walked
        rows = []
        for element in shape.elements:
            row = row_of.get(element.text)
            if row is None:
                row = row_of[element.text] = len(shapes)
                shapes.append(element)
            rows.append(row)
        children.append(rows)
    return shapes, children


def _depth(shape: Shape) -> int:
    """How deep tuples nest in it."""
    return 1 + max(map(_depth, shape.elements), default=0) if shape.elements else 0


def _measure(shape: Shape) -> _Sizes:
    allocated, logical = allocated_bytes(shape), logical_bytes(shape)
    if allocated is None or logical is None:
        return _UNKNOWN
    elements = prod(shape.dims) if shape.dtype not in ("token", "opaque") else 0
    return elements, allocated, logical, allocated if shape.memory_space == DEFAULT_SPACE else 0


def _total(parts: list[_Sizes]) -> _Sizes:
    """Sums over the parts; -1 where one of them is not known."""
    if any(part[0] < 0 for part in parts):
        return _UNKNOWN
    elements, allocated, logical, in_hbm = map(sum, zip(*parts, strict=True)) if parts else (0, 0, 0, 0)
    return elements, allocated, logical, in_hbm


def operand_shapes(hlo: HloModule, columns: ShapeColumns) -> NDArray[np.int32]:
    """For each entry of `hlo.operand` the row of its shape in `columns`; -1 where the operand is not known."""
    found = np.empty(len(hlo.operand), np.int32)
    _value_kernels.operand_shapes(
        hlo.operand, hlo.operand_element, hlo.shape, columns.child_start, columns.child, found
    )
    return found
