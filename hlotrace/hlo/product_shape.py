"""The matrix product that a dot or a convolution is: batches of [m, k] times [k, n]."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hlotrace.hlo.attributes import WindowDimension, dimension_labels, numbers, window
from hlotrace.hlo.contractions import valid_positions

SUBLANES = 8
"""Rows that a vector register holds: what streams through a matrix unit is padded to a multiple of them."""
_LITTLE = 0.02


@dataclass(frozen=True)
class ProductShape:
    """`batch` products of an [m, k] matrix with a [k, n] one."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def text(self) -> str:
        """As people write it: `8 x [1024,64] x [64,1024]`."""
        one = f"[{self.m},{self.k}] x [{self.k},{self.n}]"
        return f"{self.batch} x {one}" if self.batch != 1 else one

    def padded(self, size: int) -> ProductShape:
        """As matrix units of `size` rows and columns compute it, either operand held in them, whichever wastes less.

        What is held is padded to `size` both ways, the rows that stream through it to SUBLANES.
        """
        k = _up(self.k, size)
        held_right = ProductShape(self.batch, _up(self.m, SUBLANES), k, _up(self.n, size))
        held_left = ProductShape(self.batch, _up(self.m, size), k, _up(self.n, SUBLANES))
        return min(held_right, held_left, key=lambda shape: shape.m * shape.n)

    def share(self, size: int) -> float:
        """The part of the padded product that is the product's own: what of the matrix units it can use at best."""
        whole = self.padded(size)
        return self.m * self.k * self.n / (whole.m * whole.k * whole.n)

    def change(self, size: int) -> str | None:
        """The dimension that wastes most and what would waste nothing, as `k 64 → 128`; None where little is wasted."""
        whole = self.padded(size)
        sides = [("m", self.m, whole.m), ("k", self.k, whole.k), ("n", self.n, whole.n)]
        name, useful, filled = max(sides, key=lambda side: side[2] / side[1])
        if useful >= filled * (1 - _LITTLE):
            return None
        below = useful // size * size
        return f"{name} {useful} → {f'{below} or ' if below and name == 'k' else ''}{filled}"


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def product_shape(
    opcode: str, attributes: str, result: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> ProductShape | None:
    """What a `dot` or `convolution` of these dimensions multiplies; None where that cannot be told.

    Of a convolution's spatial dimensions one with a window of 1 is a free dimension of the lhs, one with a single
    output position is contracted, and where each position meets one element it is a batch dimension, or, with a lhs of
    1, a free dimension of the rhs. Any other slides: positions go into m, the window's elements into k.
    """
    if any(size < 1 for size in (*result, *lhs, *rhs)):
        return None
    return _of_convolution(attributes, result, lhs, rhs) if opcode == "convolution" else _of_dot(attributes, lhs, rhs)


def _of_dot(attributes: str, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> ProductShape | None:
    left, right = (numbers(attributes, f"{side}_contracting_dims") for side in ("lhs", "rhs"))
    left_batch, right_batch = (numbers(attributes, f"{side}_batch_dims") for side in ("lhs", "rhs"))
    if max((*left, *left_batch), default=-1) >= len(lhs) or max((*right, *right_batch), default=-1) >= len(rhs):
        return None
    return ProductShape(
        prod(lhs[at] for at in left_batch),
        prod(size for at, size in enumerate(lhs) if at not in (*left, *left_batch)),
        prod(lhs[at] for at in left),
        prod(size for at, size in enumerate(rhs) if at not in (*right, *right_batch)),
    )


def _of_convolution(
    attributes: str, result: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> ProductShape | None:
    labels = dimension_labels(attributes)
    if labels is None or not len(result) == len(lhs) == len(rhs) == len(labels.lhs_spatial) + 2:
        return None
    batch, m, k, n = 1, result[labels.output_batch], rhs[labels.rhs_input], result[labels.output_feature]
    dimensions = window(attributes) or tuple(WindowDimension(rhs[at]) for at in labels.rhs_spatial)
    if len(dimensions) != len(labels.lhs_spatial):
        return None
    for at, dimension in enumerate(dimensions):
        inputs, positions = lhs[labels.lhs_spatial[at]], result[labels.output_spatial[at]]
        if dimension.size == 1:
            m *= positions
        elif positions == 1:
            k *= dimension.size
        elif valid_positions(dimension, inputs, positions) != positions:
            m, k = m * positions, k * dimension.size
        elif inputs == 1:
            n *= positions
        else:
            batch *= positions
    return ProductShape(batch, m, k, n)
