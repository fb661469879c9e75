"""Dots and convolutions: their floating-point operations, and whether a convolution is a matrix product.

The TPU compiler writes matrix products as convolutions, batch and contracted dimensions as spatial ones. A convolution
is a matrix product when along every spatial dimension nothing slides: each output position meets one position of the
window (a batch or a free dimension), or there is one output position alone (a contracted dimension).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo import _graph_kernels, _value_kernels
from hlotrace.hlo.attributes import WindowDimension, dimension_labels, number, numbers, window
from hlotrace.hlo.call_graph import ASYNC, FUSION
from hlotrace.hlo.tiling import ELEMENT_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape_columns import ShapeColumns

_FUSED_MULTIPLY_ADD = 2
CONTRACTIONS = ("dot", "convolution", "ragged-dot", "scaled-dot")


@dataclass(frozen=True)
class Contractions:
    """The dots and convolutions of a module, one row each; `flops` is -1 where it cannot be told."""

    rows: NDArray[np.int64]
    flops: NDArray[np.int64]
    is_matmul: NDArray[np.bool_]


def contractions(hlo: HloModule, shapes: ShapeColumns, operand_shape: NDArray[np.int32]) -> Contractions:
    """Find and measure the dots and convolutions of `hlo`, each distinct one once."""
    rows = np.flatnonzero(hlo.has_opcode(*CONTRACTIONS))
    flops = np.full(len(rows), -1, np.int64)
    is_matmul = np.ones(len(rows), bool)
    attributes = hlo.raw_attributes.take(rows).to_pylist()
    starts, ends = hlo.operand_start[rows].tolist(), hlo.operand_start[rows + 1].tolist()
    results, opcodes = hlo.shape[rows].tolist(), hlo.opcode[rows].tolist()
    done: dict[tuple[object, ...], tuple[int, bool]] = {}
    for at, (start, end, result, opcode, text) in enumerate(
        zip(starts, ends, results, opcodes, attributes, strict=True)
    ):
        if end - start < 2:
            continue
        lhs, rhs = operand_shape[start : start + 2].tolist()
        key = (opcode, result, lhs, rhs, text)
        if key not in done:
            given = [shapes.shapes[row].dims if row >= 0 else (-1,) for row in (result, lhs, rhs)]
            done[key] = _measure(hlo.opcodes[opcode], text or "", *given)
        flops[at], is_matmul[at] = done[key]
    return Contractions(rows, flops, is_matmul)


def _measure(
    opcode: str, attributes: str, result: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> tuple[int, bool]:
    known = -1 not in result + lhs + rhs
    if opcode == "convolution":
        return _convolution(attributes, result, lhs, rhs) if known else (-1, False)
    contracted = numbers(attributes, "lhs_contracting_dims")
    if not known or any(dimension >= len(lhs) for dimension in contracted):
        return -1, True
    return _FUSED_MULTIPLY_ADD * prod(result) * prod(lhs[dimension] for dimension in contracted), True


def _convolution(
    attributes: str, result: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> tuple[int, bool]:
    labels = dimension_labels(attributes)
    if labels is None or not len(result) == len(lhs) == len(rhs) == len(labels.lhs_spatial) + 2:
        return -1, False
    dimensions = window(attributes) or tuple(WindowDimension(rhs[at]) for at in labels.rhs_spatial)
    if len(dimensions) != len(labels.lhs_spatial):
        return -1, False
    valid, matmul = 1, True
    for dimension, at_lhs, at_output in zip(dimensions, labels.lhs_spatial, labels.output_spatial, strict=True):
        positions = valid_positions(dimension, lhs[at_lhs], result[at_output])
        valid *= positions
        matmul &= result[at_output] == 1 or positions <= result[at_output]
    batches = lhs[labels.lhs_batch] // number(attributes, "batch_group_count", 1)
    products = rhs[labels.rhs_input] * result[labels.output_feature] * batches * valid
    return _FUSED_MULTIPLY_ADD * products, matmul


@lru_cache(1 << 14)
def valid_positions(dimension: WindowDimension, lhs_size: int, output_size: int) -> int:
    """Pairs of a window and an output position, along one dimension, that meet an element of the lhs."""
    return _value_kernels.valid_positions(
        dimension.size,
        dimension.stride,
        dimension.low,
        dimension.lhs_dilate,
        dimension.rhs_dilate,
        lhs_size,
        output_size,
    )


def product_dtypes(
    hlo: HloModule,
    shapes: ShapeColumns,
    operand_shape: NDArray[np.int32],
    products: Contractions,
    graph: CallGraph,
) -> pa.StringArray:
    """For each instruction the narrowest type that the products in it multiply, null for none.

    A product multiplies in the wider of its operands' types.
    """
    known = {shape.dtype for shape in shapes.shapes if ELEMENT_BITS.get(shape.dtype)}
    dtypes = sorted(known, key=lambda dtype: (ELEMENT_BITS[dtype], dtype))
    code = np.array([dtypes.index(s.dtype) if s.dtype in dtypes else -1 for s in shapes.shapes] + [-1], np.int64)
    bits = np.zeros(hlo.instruction_count, np.int64)
    rows = products.rows[np.diff(hlo.operand_start)[products.rows] > 1]
    first = hlo.operand_start[rows]
    wider = np.maximum(code[operand_shape[first]], code[operand_shape[first + 1]])
    bits[rows[wider >= 0]] = 1 << wider[wider >= 0]
    inside = bits.copy()
    whole = (graph.role == FUSION) | (graph.role == ASYNC)
    _graph_kernels.contents(
        graph.order,
        hlo.computation_start,
        hlo.called_start,
        np.where(whole, hlo.called, np.int32(-1)),
        bits,
        np.zeros(hlo.computation_count, np.int64),
        inside,
    )
    narrowest = np.log2(np.maximum(inside & -inside, 1)).astype(np.int64)
    return pa.array(dtypes, pa.string()).take(pa.array(narrowest, mask=inside == 0))
